/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, and whether they may: tokens and roles, and what keeps a browser on this machine from being made
 * to speak for a page elsewhere. */
#include "control/admin_internal.h"

/* Names that a page on the web cannot have its own name resolve to: without a token, only those are answered,
 * or else any page could have the visitor's browser speak to us (DNS rebinding). */
static bool is_local_name(struct slice authority)
{
    struct slice host;
    uint16_t port;
    struct ip_addr ip;
    if (authority.len == 0)
        return true;
    return http_host_parse(authority, &host, &port) &&
           (slice_caseeq(host, SLICE("localhost")) || ip_parse(host, &ip));
}

/* An Origin that is not ourselves: a page elsewhere has a browser send this. */
static bool is_cross_site(struct api_call *call)
{
    struct slice origin = api_field(call, "origin"), authority = call->request->authority;
    size_t scheme = slice_starts(origin, SLICE("https://"))  ? 8
                    : slice_starts(origin, SLICE("http://")) ? 7
                                                             : 0;
    return origin.ptr && !slice_caseeq(slice_of(origin.ptr + scheme, origin.len - scheme), authority);
}

bool access_identify(const struct admin *admin, struct api_call *call)
{
    if (!admin->auth) {
        call->role = API_ADMIN;
        call->who = SLICE("local");
        return true;
    }
    struct slice name, authorization = api_field(call, "authorization");
    call->role = API_OPEN;
    if (!authorization.ptr)
        return true;
    if (auth_find(admin->auth, authorization, &call->role, &name)) {
        call->who = arena_slice(&call->arena, name);
        return true;
    }
    api_fail(call, 401, "unauthorized", "", "the token is not known");
    return false;
}

bool access_allow(const struct admin *admin, struct api_call *call, enum router_result found)
{
    bool is_metrics = slice_eq(call->request->path, SLICE("/metrics"));
    enum api_role needed = found == ROUTER_FOUND ? call->route->role : API_READ;
    if (call->role < needed && call->role == API_OPEN) {
        api_fail(call, 401, "unauthorized", "",
                 "expected Authorization: Bearer TOKEN with a token of admin.token_file");
        return false;
    }
    if (call->role < needed) {
        api_fail(call, 403, "forbidden", "", "the token's role is %s, this needs %s",
                 api_role_word(call->role), api_role_word(needed));
        return false;
    }
    if (found != ROUTER_FOUND || needed == API_OPEN || is_metrics)
        return true;
    if (is_cross_site(call)) {
        api_fail(call, 403, "forbidden", "", "the request comes from a page of another site");
        return false;
    }
    if (!admin->auth && !admin->server && !is_local_name(call->request->authority)) {
        api_fail(call, 403, "forbidden", "",
                 "without a token_file only requests to an IP address or to localhost are answered");
        return false;
    }
    return true;
}
