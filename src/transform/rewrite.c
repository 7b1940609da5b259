/* SPDX-License-Identifier: Apache-2.0 */
/* What a rule asks for was validated when the file was read; here it is only carried out. A changed target is
 * made whole in scratch, and target, path and query are pointed into it, so that whatever reads the message
 * afterwards (writer, hash key, access log) sees one truth. */
#include "transform/rewrite.h"

#include "core/print.h"
#include "route/route.h"

/* Text that is made at the free end of a scratch. */
struct maker {
    char *begin, *at, *end;
    bool full;
};

static struct maker make_in(const struct scratch *scratch)
{
    return (struct maker){scratch->at, scratch->at, scratch->end, false};
}

static void put(struct maker *maker, struct slice s)
{
    if ((size_t)(maker->end - maker->at) < s.len) {
        maker->full = true;
        return;
    }
    if (s.len)
        memcpy(maker->at, s.ptr, s.len);
    maker->at += s.len;
}

/* Takes what was made off the scratch. */
static bool finish(const struct maker *maker, struct scratch *scratch, struct slice *made)
{
    if (maker->full)
        return false;
    *made = slice_of(maker->begin, (size_t)(maker->at - maker->begin));
    scratch->at = maker->at;
    return true;
}

static bool rewrite_path(const struct config_rule *rule, struct http_message *msg, struct scratch *scratch)
{
    struct slice path = msg->path, target, replacement = rule->rewrite.path_prefix;
    struct slice matched = route_prefix_trim(rule->match.path_prefix);
    if (!route_prefix_has(matched, path)) /* OPTIONS *, under a rule for any path */
        return true;
    struct slice rest = slice_of(path.ptr + matched.len, path.len - matched.len);

    struct maker maker = make_in(scratch);
    put(&maker, rest.len ? route_prefix_trim(replacement) : replacement);
    put(&maker, rest);
    if (maker.at == maker.begin)
        put(&maker, SLICE("/"));
    size_t path_len = (size_t)(maker.at - maker.begin);
    if (msg->query.ptr) {
        put(&maker, SLICE("?"));
        put(&maker, msg->query);
    }
    if (!finish(&maker, scratch, &target))
        return false;
    msg->target = target;
    msg->path = slice_of(target.ptr, path_len);
    if (msg->query.ptr)
        msg->query = slice_of(target.ptr + path_len + 1, target.len - path_len - 1);
    return true;
}

static void rewrite_host(struct http_message *msg, struct slice host)
{
    struct http_field *field = http_message_find(msg, HTTP_FIELD_HOST);
    msg->authority = host;
    if (!field)
        return;
    field->value = host.ptr;
    field->value_len = (uint32_t)host.len;
    field->raw_len = 0;
}

static bool change_fields(const struct config_header_ops *ops, struct http_message *msg)
{
    for (uint32_t i = 0; i < ops->n_remove; i++)
        http_message_drop_name(msg, ops->remove[i]);
    for (uint32_t i = 0; i < ops->n_set; i++)
        http_message_drop_name(msg, ops->set[i].name);
    for (uint32_t i = 0; i < ops->n_set; i++)
        if (!http_message_add(msg, ops->set[i].name, ops->set[i].value))
            return false;
    for (uint32_t i = 0; i < ops->n_add; i++)
        if (!http_message_add(msg, ops->add[i].name, ops->add[i].value))
            return false;
    return true;
}

bool rewrite_request(const struct config_rule *rule, struct http_message *msg, struct scratch *scratch)
{
    if (rule->rewrite.path_prefix.ptr && !rewrite_path(rule, msg, scratch))
        return false;
    if (rule->rewrite.host.ptr)
        rewrite_host(msg, rule->rewrite.host);
    return change_fields(&rule->rewrite.request, msg);
}

bool rewrite_response(const struct config_rule *rule, struct http_message *msg, struct scratch *scratch)
{
    return change_fields(&rule->rewrite.response, msg);
}

/* What the placeholders of a redirect stand for. */
struct request_parts {
    struct slice host, path, query;
};

static void put_template(struct maker *maker, struct slice template, const struct request_parts *parts)
{
    while (template.len) {
        size_t used = slice_find(template, '{');
        if (used > 0) {
            put(maker, slice_of(template.ptr, used));
        } else if (slice_starts(template, SLICE("{path}"))) {
            put(maker, parts->path);
            used = strlen("{path}");
        } else if (slice_starts(template, SLICE("{host}"))) {
            put(maker, parts->host);
            used = strlen("{host}");
        } else if (slice_starts(template, SLICE("{query}"))) {
            if (parts->query.len == 0 && maker->at > maker->begin && maker->at[-1] == '?')
                maker->at--; /* "/x?{query}" without a query is "/x" */
            put(maker, parts->query);
            used = strlen("{query}");
        } else {
            put(maker, SLICE("{"));
            used = 1;
        }
        template = slice_of(template.ptr + used, template.len - used);
    }
}

static bool is_default_port(struct slice scheme, uint16_t port)
{
    return port == (slice_caseeq(scheme, SLICE("https")) ? 443 : 80);
}

/* "https://host:port", or nothing when nobody named a host. */
static void put_origin(struct maker *maker, const struct config_redirect *redirect,
                       const struct http_message *request, bool tls, const struct request_parts *parts)
{
    struct slice own_scheme = tls ? SLICE("https") : SLICE("http");
    struct slice scheme = redirect->scheme.ptr ? redirect->scheme : own_scheme;
    bool same_origin = !redirect->host.ptr && redirect->port == 0 && slice_caseeq(scheme, own_scheme);
    if (!redirect->host.ptr && parts->host.len == 0)
        return;
    put(maker, scheme);
    put(maker, SLICE("://"));
    if (same_origin)
        put(maker, request->authority); /* with the port that the client came through */
    else if (redirect->host.ptr)
        put_template(maker, redirect->host, parts);
    else
        put(maker, parts->host);
    if (redirect->port && !is_default_port(scheme, redirect->port)) {
        char digits[PRINT_U64_MAX];
        put(maker, SLICE(":"));
        put(maker, slice_of(digits, print_u64(digits, redirect->port)));
    }
}

bool rewrite_redirect(const struct config_redirect *redirect, const struct http_message *request, bool tls,
                      struct scratch *scratch, struct slice *location)
{
    struct request_parts parts = {.host = route_host(request->authority), .query = request->query};
    bool has_path = request->path.len && request->path.ptr[0] == '/';
    parts.path = has_path ? request->path : SLICE("/");

    struct maker maker = make_in(scratch);
    put_origin(&maker, redirect, request, tls, &parts);
    size_t origin_len = (size_t)(maker.at - maker.begin);
    struct slice path = redirect->path.ptr ? redirect->path : SLICE("{path}?{query}");
    if (!slice_starts(path, SLICE("/")) && !slice_starts(path, SLICE("{path}")))
        put(&maker, SLICE("/")); /* or the rest would belong to the host */
    put_template(&maker, path, &parts);
    if (!finish(&maker, scratch, location))
        return false;
    /* Without an origin in front "//name/x" would be another host's URI. */
    while (origin_len == 0 && location->len > 1 && location->ptr[0] == '/' && location->ptr[1] == '/')
        *location = slice_of(location->ptr + 1, location->len - 1);
    return true;
}
