/* SPDX-License-Identifier: Apache-2.0 */
/* The whole, load balancers and listeners; rules and target groups have files of their own. */
#include "config/validate_internal.h"

#include "config/endpoint.h"
#include "config/part.h"
#include "config/schema_table.h"
#include "config/suggest.h"

#include <stdlib.h>

enum { SUGGESTED_GROUPS_MAX = 1000 }; /* every one is compared with every reference that leads nowhere */

const struct doc_node *validate_at(const struct doc_node *map, const char *key)
{
    const struct doc_node *node = doc_get(map, key);
    return node ? node : map;
}

bool validate_has(const struct doc_node *map, const char *key)
{
    return doc_get(map, key) != NULL;
}

bool validate_group_ref(struct validator *v, struct slice name, const struct doc_node *node, uint32_t *index)
{
    const struct name *found = names_find(&v->groups, name);
    if (found) {
        *index = found->index;
        v->used[found->index] = true;
        return true;
    }
    struct suggestion near = {0};
    for (uint32_t i = 0; i < v->config->n_target_groups && i < SUGGESTED_GROUPS_MAX && !doc_is_full(v->doc);
         i++)
        if (v->config->target_groups[i].name.ptr)
            suggest_offer(&near, name, v->config->target_groups[i].name.ptr);
    if (near.name)
        validate_fault(v, node, "is \"%.*s\", but no target group has that name; did you mean \"%s\"?",
                       SLICE_ARG(name), near.name);
    else
        validate_fault(v, node, "is \"%.*s\", but no target group has that name%s", SLICE_ARG(name),
                       v->config->n_target_groups ? "" : "; there are no target_groups");
    return false;
}

static void report_name_twin(struct doc *doc, const struct name *twin, const struct name *first)
{
    doc_fault(doc, DIAG_ERROR, twin->node, "is \"%.*s\", a name that is taken %s; expected a unique one",
              SLICE_ARG(twin->text), doc_place(first->node, &doc->arena));
}

static void report_endpoint_twin(struct doc *doc, const struct name *twin, const struct name *first)
{
    doc_fault(doc, DIAG_ERROR, twin->node,
              "listens on %.*s, as does the listener %s; expected another address or port",
              SLICE_ARG(twin->text), doc_place(first->node, &doc->arena));
}

static void name_listener(struct validator *v, const struct config_load_balancer *lb,
                          struct config_listener *listener)
{
    struct arena *arena = &v->config->arena;
    if (listener->name.ptr)
        return;
    listener->name = slice_str(
        listener->endpoint.unix_path.ptr
            ? arena_printf(arena, "%.*s/%.*s", SLICE_ARG(lb->name), SLICE_ARG(listener->endpoint.text))
            : arena_printf(arena, "%.*s/%u", SLICE_ARG(lb->name), listener->endpoint.port));
}

enum carried { CARRIED_REQUESTS, CARRIED_BYTES, CARRIED_DATAGRAMS };

static enum carried what_is_carried(enum config_protocol protocol)
{
    return protocol == CONFIG_UDP        ? CARRIED_DATAGRAMS
           : config_is_relayed(protocol) ? CARRIED_BYTES
                                         : CARRIED_REQUESTS;
}

/* What an HTTP listener sends to must speak HTTP, and the other way round. */
void validate_group_protocol(struct validator *v, enum config_protocol listener, uint32_t group,
                             const struct doc_node *node)
{
    enum carried group_carries = what_is_carried(v->config->target_groups[group].protocol),
                 listener_carries = what_is_carried(listener);
    static const char *const names[] = {
        [CARRIED_REQUESTS] = "HTTP or HTTPS", [CARRIED_BYTES] = "TCP", [CARRIED_DATAGRAMS] = "UDP"};
    if (group_carries != listener_carries)
        validate_fault(v, node, "has protocol: %s, but the listener has %s", names[group_carries],
                       listener == CONFIG_TLS ? "TLS, which passes on to groups with TCP"
                                              : names[listener_carries]);
}

static void check_proxy_protocol(struct validator *v, const struct config_listener *listener,
                                 const struct doc_node *node)
{
    const struct config_proxy_protocol *proxy = &listener->proxy_protocol;
    if (!proxy->set || !node || node->kind != DOC_MAP)
        return;
    if (!validate_has(node, "from") && !listener->endpoint.unix_path.ptr)
        validate_fault(v, node, "has no \"from\", expected the addresses of the proxies that are believed");
    for (uint32_t i = 0; i < proxy->n_from; i++)
        if (proxy->from[i].bits == 0)
            validate_warning(v, doc_get(node, "from"),
                             "believes everyone, so anyone can claim any address in a PROXY header");
}

/* Over TLS clients ask for HTTP/2 by ALPN, and an H2C listener speaks nothing else. */
static void check_http2(struct validator *v, const struct config_listener *listener,
                        const struct doc_node *node)
{
    bool speaks_both = listener->protocol == CONFIG_HTTP || config_is_relayed(listener->protocol);
    if (node && validate_has(node, "cleartext") && !speaks_both)
        validate_fault(v, doc_get(node, "cleartext"),
                       "belongs to listeners with protocol: HTTP, but this one has %s",
                       listener->protocol == CONFIG_H2C ? "H2C, which is nothing else"
                                                        : "HTTPS; tls.alpn says what is offered there");
}

static void check_listener_actions(struct validator *v, struct config_listener *listener,
                                   const struct doc_node *node)
{
    bool has_default = validate_has(node, "default_target_group"),
         has_redirect = validate_has(node, "redirect");
    listener->default_target_group = -1;
    uint32_t index;
    if (listener->default_target_group_name.ptr &&
        validate_group_ref(v, listener->default_target_group_name, doc_get(node, "default_target_group"),
                           &index)) {
        listener->default_target_group = (int32_t)index;
        validate_group_protocol(v, listener->protocol, index, doc_get(node, "default_target_group"));
    }
    if (config_is_relayed(listener->protocol)) {
        validate_relay_listener(v, listener, node);
        return;
    }
    if (has_redirect)
        validate_redirect(v, &listener->redirect, doc_get(node, "redirect"));
    if (has_redirect && (has_default || validate_has(node, "rules")))
        validate_fault(
            v, doc_get(node, "redirect"),
            "answers every request, so default_target_group and rules would never be used; expected one "
            "or the other (a rule may have a redirect of its own)");
    if (!has_redirect && !has_default && !validate_has(node, "rules"))
        validate_fault(v, node,
                       "would answer every request with 404, expected default_target_group, rules or "
                       "redirect");
}

static void validate_listener(struct validator *v, const struct config_load_balancer *lb,
                              struct config_listener *listener, const struct doc_node *node)
{
    bool has_port = validate_has(node, "port"), has_unix = validate_has(node, "unix");
    if (has_port && has_unix)
        validate_fault(v, doc_get(node, "unix"), "stands beside port, expected one of them");
    else if (!has_port && !has_unix)
        validate_fault(v, node, "has neither \"port\" nor \"unix\", expected one of them");
    if (!has_unix)
        listener->endpoint.ip = lb->vip;
    endpoint_name(&listener->endpoint, &v->config->arena);
    name_listener(v, lb, listener);
    if (listener->limits.uri_bytes > listener->limits.header_bytes) {
        const struct doc_node *limits = doc_get(node, "limits");
        validate_fault(v,
                       validate_at(limits, validate_has(limits, "uri_bytes") ? "uri_bytes" : "header_bytes"),
                       "uri_bytes is %u and header_bytes %u, expected the head to have room for the URI",
                       listener->limits.uri_bytes, listener->limits.header_bytes);
    }
    check_proxy_protocol(v, listener, doc_get(node, "proxy_protocol"));
    check_http2(v, listener, doc_get(node, "http2"));
    check_listener_actions(v, listener, node);
    validate_listener_tls(v, listener, node);
    validate_rules(v, listener, node);
}

static void validate_resolver(struct validator *v)
{
    const struct config_resolver *resolver = &v->config->resolver;
    const struct doc_node *node = doc_get(v->doc->root, "resolver");
    if (node && resolver->min_ttl_ms > resolver->max_ttl_ms)
        validate_fault(v, validate_at(node, validate_has(node, "min_ttl_s") ? "min_ttl_s" : "max_ttl_s"),
                       "min_ttl_s is longer than max_ttl_s");
}

/* An endpoint counts as known when its keys decoded: a faulty port is reported once, not as a twin of others.
 */
static bool has_endpoint(const struct config_endpoint *endpoint)
{
    return endpoint->unix_path.ptr || endpoint->port != 0;
}

static void validate_admin(struct validator *v)
{
    const struct config_admin *admin = &v->config->admin;
    const struct doc_node *node = doc_get(v->doc->root, "admin");
    if (!admin->listen.text.ptr || endpoint_is_local(&admin->listen))
        return;
    const char *all = admin->listen.unix_path.ptr || admin->listen.ip.family ? "" : "all addresses, ";
    if (!validate_has(node, "token_file"))
        validate_fault(v, validate_at(node, "listen"),
                       "is %s%.*s, which other machines can reach; expected a loopback address such as "
                       "127.0.0.1:8443, a unix socket, \"off\", or a token_file for authentication",
                       all, SLICE_ARG(admin->listen.text));
    else if (!admin->tls.set && !admin->insecure)
        validate_fault(v, validate_at(node, "listen"),
                       "is %s%.*s, which other machines can reach; expected tls, or insecure: true to send "
                       "tokens in the clear",
                       all, SLICE_ARG(admin->listen.text));
}

/* A listener on all addresses takes the port on the loopback as well. */
static void check_admin_clash(struct validator *v, const struct config_endpoint *endpoint,
                              const struct doc_node *node)
{
    const struct config_endpoint *admin = &v->config->admin.listen;
    bool same = endpoint->unix_path.ptr || admin->unix_path.ptr
                    ? slice_eq(endpoint->text, admin->text)
                    : admin->port && admin->port == endpoint->port &&
                          (endpoint_is_any(endpoint) ||
                           (endpoint->ip.family == admin->ip.family && ip_eq(&endpoint->ip, &admin->ip)));
    if (admin->text.ptr && same)
        validate_fault(v, node,
                       "listens on %.*s, as does the admin listener (admin.listen: %.*s); expected another "
                       "port for one of them",
                       SLICE_ARG(endpoint->text), SLICE_ARG(admin->text));
}

static void validate_load_balancers(struct validator *v, struct names *names, struct names *listeners,
                                    struct names *endpoints, struct names *datagrams)
{
    struct config *config = v->config;
    const struct doc_node *node = doc_get(v->doc->root, "load_balancers");
    node = node ? node->first : NULL;
    for (uint32_t i = 0; i < config->n_load_balancers; i++, node = node->next) {
        struct config_load_balancer *lb = &config->load_balancers[i];
        if (lb->name.ptr)
            names_add(names, lb->name, i, doc_get(node, "name"));
        if (node->kind == DOC_MAP && !validate_has(node, "listeners"))
            validate_warning(v, node, "has no listeners: nothing arrives here");
        const struct doc_node *item = doc_get(node, "listeners");
        item = item ? item->first : NULL;
        for (uint32_t j = 0; j < lb->n_listeners; j++, item = item->next) {
            struct config_listener *listener = &lb->listeners[j];
            if (item->kind != DOC_MAP)
                continue;
            validate_listener(v, lb, listener, item);
            if (lb->name.ptr || validate_has(item, "name"))
                names_add(listeners, listener->name, listeners->n, validate_at(item, "name"));
            const struct doc_node *where =
                validate_at(item, listener->endpoint.unix_path.ptr ? "unix" : "port");
            if (has_endpoint(&listener->endpoint)) {
                names_add(listener->protocol == CONFIG_UDP ? datagrams : endpoints, listener->endpoint.text,
                          endpoints->n, where);
                if (listener->protocol != CONFIG_UDP)
                    check_admin_clash(v, &listener->endpoint, where);
            }
        }
    }
}

static void validate_trusted_proxies(struct validator *v)
{
    const struct doc_node *node = doc_get(v->doc->root, "trusted_proxies");
    for (uint32_t i = 0; i < v->config->n_trusted_proxies; i++)
        if (v->config->trusted_proxies[i].bits == 0)
            validate_warning(v, node,
                             "trusts every client, so anyone can claim any address in X-Forwarded-For");
}

/* One that was not taken over, or its part would be settled already. */
static void validate_part(struct validator *v, struct config_target_group *group, const struct doc_node *node)
{
    struct config_part *part = group->part;
    unsigned said = doc_said(v->doc);
    v->arena = part ? &part->arena : &v->config->arena;
    validate_group(v, group, node);
    v->arena = &v->config->arena;
    if (part && part->is_quiet && doc_said(v->doc) == said)
        config_part_settle(part, &schema_target_group, group);
}

static void validate_groups(struct validator *v)
{
    struct config *config = v->config;
    const struct doc_node *node = doc_get(v->doc->root, "target_groups");
    node = node ? node->first : NULL;
    for (uint32_t i = 0; i < config->n_target_groups; i++, node = node->next) {
        struct config_target_group *group = &config->target_groups[i];
        if (node->kind == DOC_MAP && !(group->part && group->part->item))
            validate_part(v, group, node);
        validate_group_place(v, group, node);
    }
}

/* What no reference leads to; only in a document without errors, since a faulty reference is the usual
 * reason. */
static void report_unused(struct validator *v)
{
    if (doc_faults(v->doc))
        return;
    const struct doc_node *list = doc_get(v->doc->root, "target_groups"), *node = list ? list->first : NULL;
    for (uint32_t i = 0; i < v->config->n_target_groups; i++, node = node->next)
        if (!v->used[i])
            validate_warning(v, doc_get(node, "name"), "is used by no listener and no rule");
}

static void collect_groups(struct validator *v)
{
    const struct doc_node *node = doc_get(v->doc->root, "target_groups");
    node = node ? node->first : NULL;
    for (uint32_t i = 0; i < v->config->n_target_groups; i++, node = node->next)
        if (v->config->target_groups[i].name.ptr)
            names_add(&v->groups, v->config->target_groups[i].name, i, doc_get(node, "name"));
    names_sort(&v->groups);
}

static void report_twins(struct names *names, struct doc *doc,
                         void (*report)(struct doc *doc, const struct name *twin, const struct name *first))
{
    names_sort(names);
    names_each_twin(names, doc, report);
    names_fini(names);
}

void validate_config(struct config *config, struct doc *doc)
{
    struct validator v = {.config = config, .doc = doc, .arena = &config->arena};
    struct names load_balancers, listeners, endpoints, datagrams;
    names_init(&v.groups);
    names_init(&v.certificates);
    names_init(&load_balancers);
    names_init(&listeners);
    names_init(&endpoints);
    names_init(&datagrams);
    v.used = calloc(config->n_target_groups + 1, sizeof(bool));
    iso_assert(v.used != NULL);

    collect_groups(&v);
    validate_certificates(&v);
    validate_load_balancers(&v, &load_balancers, &listeners, &endpoints, &datagrams);
    validate_admin(&v);
    validate_trusted_proxies(&v);
    validate_groups(&v);
    validate_resolver(&v);
    validate_shared_state(&v);
    validate_l4(&v);
    bool has_listener = listeners.n > 0 || config->l4.set;
    report_twins(&v.groups, doc, report_name_twin);
    report_twins(&v.certificates, doc, report_name_twin);
    report_twins(&load_balancers, doc, report_name_twin);
    report_twins(&listeners, doc, report_name_twin);
    report_twins(&endpoints, doc, report_endpoint_twin);
    report_twins(&datagrams, doc, report_endpoint_twin);
    report_unused(&v);
    if (!has_listener && doc_faults(doc) == 0)
        validate_warning(&v, doc->root, "has no listener: nothing will be served");
    free(v.used);
}
