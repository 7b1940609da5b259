/* SPDX-License-Identifier: Apache-2.0 */
#include "explain/explain.h"

#include "config/secret.h"
#include "explain/explain_internal.h"
#include "http1/parse.h"
#include "transform/rewrite.h"

#include <stdarg.h>
#include <stdio.h>

enum { LOCATION_BYTES = 16384 };

struct url {
    struct slice scheme, authority, host, rest; /* rest: path and query */
    uint16_t port;
    enum config_protocol protocol;
};

static const struct {
    struct slice name;
    enum config_protocol protocol;
    uint16_t port;
} schemes[] = {
    {{"http", 4}, CONFIG_HTTP, 80},  {{"https", 5}, CONFIG_HTTPS, 443}, {{"ws", 2}, CONFIG_HTTP, 80},
    {{"wss", 3}, CONFIG_HTTPS, 443}, {{"tcp", 3}, CONFIG_TCP, 0},       {{"tls", 3}, CONFIG_TLS, 0},
    {{"udp", 3}, CONFIG_UDP, 0},
};

static iso_err fail(struct iso_diag *diag, const char *path, const char *fmt, ...) ISO_PRINTF(3, 4);

static iso_err fail(struct iso_diag *diag, const char *path, const char *fmt, ...)
{
    char message[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    diag_add(diag, DIAG_ERROR, "", 0, 0, path, "%s", message);
    return ISO_ERR_INVALID;
}

static bool has_control(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 127)
            return true;
    return false;
}

static iso_err parse_url(struct slice text, struct url *url, struct iso_diag *diag)
{
    size_t colon = slice_find(text, ':');
    url->scheme = slice_of(text.ptr, colon);
    struct slice behind = colon < text.len ? slice_of(text.ptr + colon, text.len - colon) : (struct slice){0};
    if (!slice_starts(behind, SLICE("://")))
        return fail(diag, "/url",
                    "is \"%.*s\", expected an absolute URL such as http://shop.example:8080/path",
                    SLICE_ARG(text));
    size_t i = 0;
    while (i < iso_countof(schemes) && !slice_caseeq(schemes[i].name, url->scheme))
        i++;
    if (i == iso_countof(schemes))
        return fail(diag, "/url", "begins with \"%.*s\", expected http, https, ws, wss, tcp, tls or udp",
                    SLICE_ARG(url->scheme));
    struct slice rest = slice_of(behind.ptr + 3, behind.len - 3);
    size_t end = 0;
    while (end < rest.len && rest.ptr[end] != '/' && rest.ptr[end] != '?' && rest.ptr[end] != '#')
        end++;
    url->authority = slice_of(rest.ptr, end);
    url->rest = slice_of(rest.ptr + end, rest.len - end);
    url->rest.len = slice_find(url->rest, '#');
    url->protocol = schemes[i].protocol;
    if (!http_host_parse(url->authority, &url->host, &url->port))
        return fail(diag, "/url", "has \"%.*s\" where a host, with or without a port, is expected",
                    SLICE_ARG(url->authority));
    if (url->port == 0)
        url->port = schemes[i].port;
    return url->port
               ? ISO_OK
               : fail(diag, "/url", "needs a port: tcp://HOST:PORT, udp://HOST:PORT or tls://NAME:PORT");
}

/* 2: at this very address, 1: at all of them, 0: elsewhere. A name may stand for any address. */
static int address_fits(const struct config_endpoint *endpoint, const struct ip_addr *asked)
{
    if (endpoint->unix_path.ptr)
        return 0;
    if (asked->family == 0 || ip_eq(&endpoint->ip, asked))
        return 2;
    return endpoint->ip.family == 0 ? 1 : 0;
}

static iso_err find_by_name(const struct snapshot *snapshot, struct explain *out, struct iso_diag *diag)
{
    for (uint32_t i = 0; i < snapshot->n_listeners; i++) {
        if (!slice_eq(snapshot->listeners[i].config->name, out->query->listener))
            continue;
        out->listener = &snapshot->listeners[i];
        out->listener_why = "it was named";
        return ISO_OK;
    }
    return fail(diag, "/listener", "there is no listener \"%.*s\"", SLICE_ARG(out->query->listener));
}

static iso_err no_listener(const struct snapshot *snapshot, const struct url *url, struct iso_diag *diag)
{
    struct text have;
    text_init(&have);
    for (uint32_t i = 0; i < snapshot->n_listeners; i++)
        text_printf(&have, "%s%.*s", i ? ", " : "", SLICE_ARG(snapshot->listeners[i].config->endpoint.text));
    iso_err err = fail(diag, "/url", "asks at %.*s port %u, where no listener is; there are: %.*s",
                       SLICE_ARG(url->host), url->port, (int)have.len, have.len ? have.data : "");
    text_fini(&have);
    return err;
}

static iso_err find_listener(const struct snapshot *snapshot, const struct url *url, struct explain *out,
                             struct iso_diag *diag)
{
    struct ip_addr asked = {0};
    uint32_t n_named = 0;
    int best = 0;
    if (out->query->listener.ptr)
        return find_by_name(snapshot, out, diag);
    ip_parse(url->host, &asked);
    for (uint32_t i = 0; i < snapshot->n_listeners; i++) {
        const struct config_listener *config = snapshot->listeners[i].config;
        bool is_kind = (config->protocol == CONFIG_UDP) == (url->protocol == CONFIG_UDP);
        int fit = is_kind && config->endpoint.port == url->port ? address_fits(&config->endpoint, &asked) : 0;
        if (fit > best) {
            best = fit;
            out->listener = &snapshot->listeners[i];
        }
        n_named += fit > 0;
    }
    if (!out->listener)
        return no_listener(snapshot, url, diag);
    out->listener_why =
        asked.family ? arena_printf(&out->arena, "it has this address and port %u", url->port)
        : n_named == 1
            ? arena_printf(&out->arena, "it is the one on port %u", url->port)
            : arena_printf(&out->arena, "it is the first of %u on port %u; name another by its name", n_named,
                           url->port);
    return ISO_OK;
}

/* What a client would name in its ClientHello: addresses are not named (RFC 6066 3). */
static struct slice server_name(const struct url *url)
{
    struct ip_addr ip;
    return ip_parse(url->host, &ip) ? (struct slice){0} : url->host;
}

static bool names_host(const struct explain_query *query)
{
    for (uint32_t i = 0; i < query->n_headers; i++)
        if (slice_caseeq(query->headers[i].name, SLICE("host")))
            return true;
    return false;
}

/* The head as a client would send it, parsed as the listener would. */
static iso_err parse_request(const struct url *url, struct explain *out, struct iso_diag *diag)
{
    const struct explain_query *query = out->query;
    const struct config_limits_listener *limits = &out->listener->config->limits;
    const struct h1_limits bounds = {limits->header_bytes, limits->uri_bytes, limits->headers};
    struct text head;
    size_t used;
    if (has_control(query->url) || has_control(query->method))
        return fail(diag, "/url", "has a control character in it or in the method");
    text_init(&head);
    text_printf(&head, "%.*s %s%.*s HTTP/1.1\r\n",
                SLICE_ARG(query->method.ptr ? query->method : SLICE("GET")),
                url->rest.len && url->rest.ptr[0] == '/' ? "" : "/", SLICE_ARG(url->rest));
    if (!names_host(query))
        text_printf(&head, "Host: %.*s\r\n", SLICE_ARG(url->authority));
    for (uint32_t i = 0; i < query->n_headers; i++) {
        const struct config_pair *header = &query->headers[i];
        if (has_control(header->name) || has_control(header->value)) {
            text_fini(&head);
            return fail(diag, arena_printf(&out->arena, "/headers/%u", i), "has a control character in it");
        }
        text_printf(&head, "%.*s: %.*s\r\n", SLICE_ARG(header->name), SLICE_ARG(header->value));
    }
    text_add(&head, SLICE("\r\n"));
    struct slice kept = arena_slice(&out->arena, text_slice(&head));
    text_fini(&head);
    enum h1_result result = h1_parse_request(kept.ptr, kept.len, &bounds, &out->msg, &used, &out->reject);
    if (result == H1_INCOMPLETE || (result == H1_COMPLETE && used != kept.len))
        return fail(diag, "/headers", "do not make one request");
    if (result == H1_COMPLETE)
        out->reject = HTTP_REJECT_NONE;
    return ISO_OK;
}

static const char *why_missed(const struct route_verdict *verdict, const struct explain *out)
{
    static const char *const texts[] = {
        [ROUTE_HOLDS] = "every condition holds",
        [ROUTE_MISS_HOST] = "another host",
        [ROUTE_MISS_PATH] = "another path",
        [ROUTE_MISS_METHOD] = "another method",
        [ROUTE_MISS_SOURCE] = "the client's address is in none of its prefixes",
        [ROUTE_MISS_PATTERN] = "path_regex is not found in the path",
        [ROUTE_MISS_PATTERN_LIMIT] = "path_regex gave up at its limit",
    };
    const struct config_match *match = &verdict->rule->match;
    const struct config_pair *pair = verdict->miss == ROUTE_MISS_HEADER   ? &match->headers[verdict->which]
                                     : verdict->miss == ROUTE_MISS_COOKIE ? &match->cookies[verdict->which]
                                     : verdict->miss == ROUTE_MISS_QUERY  ? &match->query[verdict->which]
                                                                          : NULL;
    const char *kind = verdict->miss == ROUTE_MISS_HEADER   ? "header"
                       : verdict->miss == ROUTE_MISS_COOKIE ? "cookie"
                                                            : "query parameter";
    if (!pair)
        return texts[verdict->miss];
    if (slice_eq(pair->value, SLICE("*")))
        return arena_printf((struct arena *)&out->arena, "there is no %s %.*s", kind, SLICE_ARG(pair->name));
    struct text shown;
    text_init(&shown);
    secret_by_name(pair->name, pair->value, &shown);
    const char *why = arena_printf((struct arena *)&out->arena, "%s %.*s is not \"%.*s\"", kind,
                                   SLICE_ARG(pair->name), (int)shown.len, shown.len ? shown.data : "");
    text_fini(&shown);
    return why;
}

static void find_rule(struct explain *out)
{
    const struct config_listener *config = out->listener->config;
    struct route_verdict *verdicts = arena_array(&out->arena, struct route_verdict, config->n_rules);
    struct route_scratch *scratch = route_scratch_new();
    out->rule = route_explain(out->listener->routes, &out->msg, &out->client, scratch, verdicts);
    route_scratch_free(scratch);
    out->n_rules = config->n_rules;
    out->rules = arena_array(&out->arena, struct explain_rule, config->n_rules);
    for (uint32_t i = 0; i < config->n_rules; i++) {
        const struct route_verdict *verdict = &verdicts[i];
        bool is_taken = verdict->rule == out->rule, fits = verdict->miss == ROUTE_HOLDS;
        out->rules[i] = (struct explain_rule){
            .index = (uint32_t)(verdict->rule - config->rules),
            .name = verdict->rule->name,
            .is_taken = is_taken,
            .why = is_taken || !fits ? why_missed(verdict, out)
                                     : "it would take it, but the one taken goes before it"};
    }
}

void explain_answer(struct explain *out, enum exchange_end end, unsigned status)
{
    out->end = end;
    out->status = status ? status : exchange_end_status(end);
}

static void redirect(struct explain *out, const struct config_redirect *to)
{
    char *room = arena_alloc(&out->arena, LOCATION_BYTES);
    struct scratch scratch = {room, room + LOCATION_BYTES};
    if (rewrite_redirect(to, &out->msg, out->listener->tls != NULL, &scratch, &out->location))
        explain_answer(out, END_REDIRECT, to->status);
    else
        explain_answer(out, END_HEAD_GREW, 0);
}

static void add_group(struct explain *out, const struct snapshot *snapshot, uint32_t index, double share_pct)
{
    out->groups[out->n_groups++] =
        (struct explain_group){.group = &snapshot->groups[index], .share_pct = share_pct};
}

static void follow_rule(struct explain *out, const struct snapshot *snapshot)
{
    const struct config_listener *config = out->listener->config;
    const struct config_rule *rule = out->rule;
    uint64_t total = 0;
    switch (route_action(config, rule)) {
    case ROUTE_REDIRECT:
        redirect(out, rule ? &rule->redirect : &config->redirect);
        return;
    case ROUTE_RESPOND:
        explain_answer(out, END_RESPOND, rule->respond.status);
        return;
    case ROUTE_DENY:
        explain_answer(out, END_DENY, rule->deny_status);
        return;
    case ROUTE_FORWARD:
        break;
    }
    uint32_t n = rule ? rule->n_forward : 1;
    out->groups = arena_array(&out->arena, struct explain_group, n);
    if (!rule && config->default_target_group >= 0)
        add_group(out, snapshot, (uint32_t)config->default_target_group, 100);
    for (uint32_t i = 0; rule && i < n; i++)
        total += rule->forward[i].weight;
    for (uint32_t i = 0; rule && i < n; i++)
        if (rule->forward[i].weight)
            add_group(out, snapshot, rule->forward[i].target_group,
                      100.0 * rule->forward[i].weight / (double)total);
    if (out->n_groups == 0)
        explain_answer(out, rule ? END_ALL_WEIGHTS_ZERO : END_NO_ROUTE, 0);
}

/* A connection that is relayed: no request, so no rules and no affinity. */
static void follow_listener(struct explain *out, const struct snapshot *snapshot)
{
    out->groups = arena_array(&out->arena, struct explain_group, 1);
    add_group(out, snapshot, (uint32_t)out->listener->config->default_target_group, 100);
}

/* As exchange_begin() goes. */
static iso_err follow_request(struct explain *out, const struct snapshot *snapshot, const struct url *url,
                              uint64_t now_ns, uint64_t wall_ns, struct iso_diag *diag)
{
    const struct forwarded_trust *trust = &snapshot->trust;
    iso_err err = parse_request(url, out, diag);
    if (err)
        return err;
    out->peer_trusted = trust->n && forwarded_is_trusted(trust, &out->peer);
    if (out->peer_trusted)
        out->client = forwarded_client(trust, &out->peer, &out->msg);
    if (out->reject) {
        explain_answer(out, END_REJECTED, http_reject_status(out->reject));
        return ISO_OK;
    }
    if (!explain_head(out, server_name(url)))
        return ISO_OK;
    find_rule(out);
    if (explain_access(out, now_ns, wall_ns))
        follow_rule(out, snapshot);
    return ISO_OK;
}

iso_err explain_request(const struct snapshot *snapshot, const struct explain_query *query, uint64_t now_ns,
                        uint64_t wall_ns, struct explain *out, struct iso_diag *diag)
{
    struct url url;
    *out = (struct explain){.query = query};
    arena_init(&out->arena);
    iso_err err = parse_url(query->url, &url, diag);
    if (!err)
        err = find_listener(snapshot, &url, out, diag);
    if (err)
        return err;
    enum config_protocol protocol = out->listener->config->protocol;
    bool is_plain = url.protocol == CONFIG_HTTP && protocol == CONFIG_HTTPS;
    if (!config_is_relayed(protocol) && !is_plain &&
        url.protocol != (protocol == CONFIG_H2C ? CONFIG_HTTP : protocol))
        return fail(diag, "/url", "begins with %.*s, but listener %.*s speaks %s", SLICE_ARG(url.scheme),
                    SLICE_ARG(out->listener->config->name), protocol == CONFIG_HTTPS ? "HTTPS" : "HTTP");
    out->peer = query->from;
    out->is_closed = !explain_connection(out, server_name(&url), now_ns);
    out->client = out->peer;
    if (out->is_closed) {
        return ISO_OK;
    } else if (protocol == CONFIG_TCP || protocol == CONFIG_UDP) {
        follow_listener(out, snapshot);
    } else if (protocol == CONFIG_TLS) {
        struct client_hello hello = {.server_name = url.host};
        out->rule = sni_match(out->listener->names, &hello, &out->client);
        follow_rule(out, snapshot);
    } else if (is_plain) {
        explain_answer(out, END_PLAIN_ON_TLS, 0);
    } else {
        err = follow_request(out, snapshot, &url, now_ns, wall_ns, diag);
        if (err)
            return err;
    }
    for (uint32_t i = 0; i < out->n_groups; i++)
        explain_choice(out, &out->groups[i], now_ns, wall_ns);
    return ISO_OK;
}

void explain_fini(struct explain *explain)
{
    explicit_bzero(explain->password.password, sizeof(explain->password.password));
    arena_fini(&explain->arena);
}
