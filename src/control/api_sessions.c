/* SPDX-License-Identifier: Apache-2.0 */
/* /api/sessions: which server a client is bound to, since when and for how long; and letting it go. A
 * session's id is the value of its cookie, or the client's address where that is what binds it. Source: 001
 * "Session Management"; G5, C2. */
#include "control/onepool.h"
#include "control/handlers.h"

#include "core/clock.h"
#include "proxy/affinity.h"

/* Does the group keep sessions at all? What a cookie says itself is kept by the client. */
static bool has_sessions(struct api_call *call, const struct snap_group *group)
{
    if (group->config->affinity.type == CONFIG_AFFINITY_SESSION ||
        group->config->affinity.type == CONFIG_AFFINITY_CLIENT_IP)
        return true;
    api_fail(call, 404, "not_found", "target_group",
             group->config->affinity.type == CONFIG_AFFINITY_COOKIE
                 ? "target group %.*s keeps no sessions: its cookie names the server itself"
                 : "target group %.*s has no affinity, so no sessions",
             SLICE_ARG(group->config->name));
    return false;
}

static void write_session(struct api_call *call, const struct snap_group *group, struct slice id,
                          bool is_address, const struct affinity_view *session)
{
    struct text *out = &call->reply.body;
    text_printf(out, "{\"session_id\":");
    text_json(out, id);
    text_printf(out, ",\"client_ip\":");
    if (is_address)
        text_json(out, id);
    else
        text_printf(out, "null");
    text_printf(out, ",\"server_id\":");
    text_json(out, group->settings[session->target].endpoint.text);
    text_printf(out, ",\"created_at\":");
    onepool_write_time(out, clock_wall_ns() / NS_PER_MS - session->age_s * 1000ull);
    text_printf(out, ",\"ttl_remaining_seconds\":%u,\"target_group\":", session->left_s);
    text_json(out, group->config->name);
    text_printf(out, "}\n");
}

void api_sessions_find(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    struct affinity_view session;
    struct slice id;
    struct ip_addr ip;
    if (!group)
        return;
    bool by_address = api_query(call, "client_ip", &id);
    if (!by_address && !api_query(call, "session_id", &id)) {
        api_fail(call, 400, "invalid", "client_ip", "say whose: client_ip=ADDRESS or session_id=ID");
        return;
    }
    if (by_address && !ip_parse(id, &ip)) {
        api_fail(call, 400, "invalid", "client_ip", "is \"%.*s\", expected an IP address", SLICE_ARG(id));
        return;
    }
    if (!has_sessions(call, group))
        return;
    if (affinity_session_find(group, id, clock_mono_ns(), &session))
        write_session(call, group, id, ip_parse(id, &ip), &session);
    else
        api_fail(call, 404, "not_found", by_address ? "client_ip" : "session_id",
                 "no server is bound to \"%.*s\"", SLICE_ARG(id));
}

void api_sessions_end(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    if (!group || !has_sessions(call, group))
        return;
    if (affinity_session_end(group, call->params[0]))
        call->reply.status = 204;
    else
        api_fail(call, 404, "not_found", "session_id", "there is no session \"%.*s\"",
                 SLICE_ARG(call->params[0]));
}
