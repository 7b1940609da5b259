/* SPDX-License-Identifier: Apache-2.0 */
/* Target groups: targets that can be connected to, each once, and settings that have an effect together. */
#include "config/validate_internal.h"

#include "config/endpoint.h"

enum { MAGLEV_SLOTS = 65537 }; /* balance/maglev: every target needs one slot at least (C-112) */

/* A target is reached in one way: what stands beside the first of these is one too many. */
static bool check_one_way(struct validator *v, const struct doc_node *node)
{
    static const char *const ways[] = {"unix", "srv", "host", "ip"};
    const char *way = NULL;
    for (size_t i = 0; i < iso_countof(ways); i++) {
        if (!validate_has(node, ways[i]))
            continue;
        if (way) {
            validate_fault(v, doc_get(node, way), "stands beside %s, expected one way to reach the target",
                           ways[i]);
            return false;
        }
        way = ways[i];
    }
    if (!way)
        validate_fault(v, node, "has neither \"ip\" nor \"host\", \"srv\" or \"unix\", expected one of them");
    return way != NULL;
}

/* True when the endpoint is complete. */
static bool check_target_endpoint(struct validator *v, const struct config_target_group *group,
                                  struct config_target *target, const struct doc_node *node)
{
    struct config_endpoint *endpoint = &target->endpoint;
    bool has_port = validate_has(node, "port");
    if (!check_one_way(v, node))
        return false;
    bool is_portless = validate_has(node, "unix") || validate_has(node, "srv");
    if (is_portless && has_port) {
        validate_fault(v, doc_get(node, "port"), "stands beside %s, which needs none",
                       validate_has(node, "unix") ? "unix" : "srv, whose records have ports");
        return false;
    }
    if (!is_portless && !has_port && !group->port)
        validate_fault(v, node, "has no \"port\", expected the port to connect to");
    if (!is_portless && !has_port)
        endpoint->port = group->port;
    if (target->srv.ptr && validate_has(node, "weight"))
        validate_fault(v, doc_get(node, "weight"), "stands beside srv, whose records have weights");
    if (endpoint->ip.family && endpoint_is_any(endpoint))
        validate_fault(v, doc_get(node, "ip"), "is an address to listen on, expected one to connect to");
    return is_portless ? endpoint->unix_path.ptr || target->srv.ptr
                       : (endpoint->ip.family || target->host.ptr) && endpoint->port;
}

static void name_target(struct config_target *target, struct arena *arena)
{
    if (target->host.ptr)
        target->endpoint.text =
            slice_str(arena_printf(arena, "%.*s:%u", SLICE_ARG(target->host), target->endpoint.port));
    else if (target->srv.ptr)
        target->endpoint.text = slice_str(arena_printf(arena, "srv:%.*s", SLICE_ARG(target->srv)));
    else
        endpoint_name(&target->endpoint, arena);
}

static void report_target_twin(struct doc *doc, const struct name *twin, const struct name *first)
{
    doc_fault(doc, DIAG_ERROR, twin->node, "is %.*s, the target %s; expected each target once",
              SLICE_ARG(twin->text), doc_place(first->node, &doc->arena));
}

static void check_targets(struct validator *v, struct config_target_group *group, const struct doc_node *node)
{
    struct names names;
    names_init(&names);
    const struct doc_node *list = doc_get(node, "targets"), *item = list ? list->first : NULL;
    uint32_t working = 0, weightless = 0, disabled = 0;
    for (uint32_t i = 0; i < group->n_targets; i++, item = item->next) {
        struct config_target *target = &group->targets[i];
        if (item->kind != DOC_MAP)
            continue;
        if (check_target_endpoint(v, group, target, item)) {
            name_target(target, v->arena);
            names_add(&names, target->endpoint.text, i, item);
        }
        group->has_names |= target->host.ptr || target->srv.ptr;
        working += target->enabled && target->weight > 0;
        weightless += target->enabled && target->weight == 0;
        disabled += !target->enabled;
    }
    if (doc_faults(v->doc) == 0 && (!list || list->n == 0))
        validate_warning(v, validate_at(node, "targets"), "has no targets: requests are answered with 503");
    else if (doc_faults(v->doc) == 0 && working == 0)
        validate_warning(v, list,
                         "none takes new work: %u with weight 0, %u disabled; requests are answered with 503",
                         weightless, disabled);
    names_sort(&names);
    names_each_twin(&names, v->doc, report_target_twin);
    names_fini(&names);
}

static void check_algorithm(struct validator *v, const struct config_target_group *group,
                            const struct doc_node *node)
{
    if (group->algorithm == BALANCE_MAGLEV && group->n_targets > MAGLEV_SLOTS)
        validate_fault(v, doc_get(node, "algorithm"),
                       "has %u targets for the %d slots of its table, expected fewer", group->n_targets,
                       MAGLEV_SLOTS);
    if (validate_has(node, "hash_key") && group->algorithm != BALANCE_CONSISTENT_HASH &&
        group->algorithm != BALANCE_MAGLEV)
        validate_warning(v, doc_get(node, "hash_key"),
                         "has no effect: only consistent_hash and maglev have a choice of key");
}

static bool may_speak_http2(const struct config_target_group *group)
{
    for (uint32_t i = 0; i < group->tls.n_alpn; i++)
        if (group->protocol == CONFIG_HTTPS && slice_eq(group->tls.alpn[i], SLICE("h2")))
            return true;
    return group->protocol == CONFIG_H2C || group->protocol == CONFIG_GRPC;
}

/* Whoever says what is asked for, or what is expected, means a request. */
static void check_health_default(struct config_health_check *check, const struct doc_node *node)
{
    if (!validate_has(node, "type") &&
        (validate_has(node, "path") || validate_has(node, "method") || validate_has(node, "expect")))
        check->type = CONFIG_HEALTH_HTTP;
}

static void check_health(struct validator *v, struct config_target_group *group, const struct doc_node *node)
{
    static const char *const http_only[] = {"path", "method", "expect", "host"};
    struct config_health_check *check = &group->health_check;
    if (!node || node->kind != DOC_MAP)
        return;
    check_health_default(check, node);
    bool is_grpc = check->type == CONFIG_HEALTH_GRPC;
    size_t n_foreign = check->type == CONFIG_HEALTH_TCP ? iso_countof(http_only) : is_grpc ? 3 : 0;
    for (size_t i = 0; i < n_foreign; i++)
        if (validate_has(node, http_only[i]))
            validate_fault(v, doc_get(node, http_only[i]),
                           "belongs to checks of type http, but the type is %s%s", is_grpc ? "grpc" : "tcp",
                           validate_has(node, "type") ? "" : " (the default)");
    if (is_grpc && !may_speak_http2(group))
        validate_fault(
            v, doc_get(node, "type"),
            "is grpc, but the targets speak no HTTP/2; expected protocol: GRPC or H2C, or HTTPS with h2 "
            "in tls.alpn");
    if (!is_grpc && validate_has(node, "service"))
        validate_fault(v, doc_get(node, "service"), "belongs to checks of type grpc");
    if (check->deep_ejects && check->type != CONFIG_HEALTH_DEEP)
        validate_warning(v, doc_get(node, "deep_ejects"), "has no effect: only checks of type deep are deep");
    if (check->expect_body.ptr && slice_eq(check->method, SLICE("HEAD")))
        validate_fault(v, doc_get(doc_get(node, "expect"), "body"),
                       "is expected of HEAD, whose answer has no body");
    if (check->expect_body_regex.ptr && slice_eq(check->method, SLICE("HEAD")))
        validate_fault(v, doc_get(doc_get(node, "expect"), "body_regex"),
                       "is expected of HEAD, whose answer has no body");
    if (check->source.family && endpoint_is_any(&(struct config_endpoint){.ip = check->source}))
        validate_fault(v, doc_get(node, "source"),
                       "is no address of a machine, expected one of this machine");
    if (check->type != CONFIG_HEALTH_NONE && check->timeout_ms > check->interval_ms)
        validate_warning(v, validate_at(node, validate_has(node, "timeout_ms") ? "timeout_ms" : "interval_s"),
                         "a check may take %u ms and the next is due after %u ms", check->timeout_ms,
                         check->interval_ms);
}

/* The cookie has a name of its own for each type. */
static void check_affinity(struct validator *v, struct config_target_group *group,
                           const struct doc_node *node)
{
    struct config_affinity *affinity = &group->affinity;
    bool is_cookie = affinity->type == CONFIG_AFFINITY_COOKIE;
    if (!affinity->cookie.ptr)
        affinity->cookie = is_cookie ? SLICE("lb_server") : SLICE("lb_session");
    if (!node || node->kind != DOC_MAP)
        return;
    if (config_is_relayed(group->protocol) && affinity->type != CONFIG_AFFINITY_NONE)
        validate_fault(
            v, node, "binds HTTP clients, but the group has protocol: %s; expected algorithm: ip_hash there",
            group->protocol == CONFIG_UDP ? "UDP" : "TCP");
    if (is_cookie && affinity->id == CONFIG_COOKIE_SIGNED && affinity->secret.len < 16)
        validate_fault(v, validate_at(node, validate_has(node, "secret") ? "secret" : "id"),
                       "signed cookies need a \"secret\" of at least 16 characters, the same on every node");
    if (affinity->type != CONFIG_AFFINITY_NONE && affinity->same_site == CONFIG_SAME_SITE_NONE &&
        !affinity->secure)
        validate_warning(v, doc_get(node, "same_site"),
                         "browsers drop a cookie with SameSite=None that is not secure, expected \"secure: "
                         "true\" beside it");
}

/* A connection that many clients share is announced for none of them. */
static void check_sharing(struct validator *v, const struct config_target_group *group,
                          const struct doc_node *node)
{
    if (group->proxy_protocol != CONFIG_PROXY_NONE && may_speak_http2(group))
        validate_fault(v, doc_get(node, "proxy_protocol"),
                       "tells targets whose connection it is, but HTTP/2 connections are shared by clients");
}

/* Whether something listens for datagrams cannot be asked in general. */
static void check_datagrams(struct validator *v, struct config_target_group *group,
                            const struct doc_node *node)
{
    const struct doc_node *list = doc_get(node, "targets"), *item = list ? list->first : NULL;
    if (group->protocol != CONFIG_UDP)
        return;
    if (!validate_has(doc_get(node, "health_check"), "type"))
        group->health_check.type = CONFIG_HEALTH_NONE;
    if (group->proxy_protocol != CONFIG_PROXY_NONE)
        validate_fault(v, doc_get(node, "proxy_protocol"),
                       "is of connections, but the group has protocol: UDP");
    for (uint32_t i = 0; i < group->n_targets; i++, item = item->next)
        if (group->targets[i].endpoint.unix_path.ptr)
            validate_fault(v, item, "is a unix socket, but the group has protocol: UDP");
}

void validate_group(struct validator *v, struct config_target_group *group, const struct doc_node *node)
{
    check_targets(v, group, node);
    check_algorithm(v, group, node);
    check_datagrams(v, group, node);
    /* A port of its own is mostly that of a small HTTP/1.1 server beside the application. */
    group->health_check.http2 = (group->protocol == CONFIG_H2C || group->protocol == CONFIG_GRPC) &&
                                (group->health_check.type == CONFIG_HEALTH_GRPC || !group->health_check.port);
    check_health(v, group, doc_get(node, "health_check"));
    check_affinity(v, group, doc_get(node, "affinity"));
    validate_group_tls(v, group, node);
    check_sharing(v, group, node);
}
