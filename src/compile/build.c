/* SPDX-License-Identifier: Apache-2.0 */
#include "compile/build.h"

#include "compile/snapshot_tls.h"
#include "config/load.h"
#include "config/same.h"
#include "guard/admit.h"
#include "guard/basic_auth.h"
#include "guard/jwt.h"
#include "guard/passwords.h"
#include "guard/ratelimit.h"
#include "guard/security.h"
#include "proxy/affinity.h"
#include "snapshot/targets.h"

#include <stdlib.h>

static void add_worker_state(struct snapshot *snapshot, struct snap_group *group)
{
    group->workers = arena_alloc_line(&snapshot->arena, sizeof(*group->workers) * snapshot->n_workers);
    for (uint32_t w = 0; w < snapshot->n_workers; w++)
        snapshot_corner_init(group, &group->workers[w], &snapshot->arena);
}

/* By ALPN where there is TLS; without, both sides have to know. */
static enum snap_http2 http2_of(const struct config_target_group *config)
{
    bool offers_http1 = false, offers_http2 = false;
    if (config->protocol == CONFIG_H2C || config->protocol == CONFIG_GRPC)
        return SNAP_HTTP2_ONLY;
    for (uint32_t i = 0; i < config->tls.n_alpn; i++) {
        bool is_http2 = slice_eq(config->tls.alpn[i], SLICE("h2"));
        offers_http2 |= is_http2;
        offers_http1 |= !is_http2;
    }
    if (config->protocol != CONFIG_HTTPS || !offers_http2)
        return SNAP_HTTP2_NONE;
    return offers_http1 ? SNAP_HTTP2_OFFERED : SNAP_HTTP2_ONLY;
}

/* The same group in the snapshot before; NULL: it was not there. */
static const struct snap_group *group_before(const struct snapshot *before,
                                             const struct group_runtime *runtime)
{
    if (!before || runtime->index >= before->n_groups || before->groups[runtime->index].runtime != runtime)
        return NULL;
    return &before->groups[runtime->index];
}

/* Whose TLS context the group takes; NULL: it gets its own, from the files. */
static const struct snap_group *tls_before(const struct snapshot_parts *parts, const struct snap_group *group,
                                           const struct snap_group *before, uint32_t index)
{
    if (parts->earlier)
        return &parts->earlier->groups[index];
    bool is_same = parts->keeps_files && before && group->config->protocol == before->config->protocol &&
                   config_same_group_tls(group->config, before->config);
    return is_same ? before : NULL;
}

static iso_err take_shape(struct snapshot *snapshot, const struct snapshot_parts *parts,
                          struct snap_group *group, const struct snap_group *before, uint32_t n)
{
    bool is_part = before && n == before->n_targets && !group->config->has_names && group->config->part &&
                   group->config->part == before->config->part;
    const struct shape_targets now = {group->settings, n, group->config->algorithm};
    const struct shape_targets old = {before ? before->settings : NULL, before ? before->n_targets : 0,
                                      before ? before->config->algorithm : group->config->algorithm};
    if (is_part || (before && shape_is_same(&old, &now))) {
        group->shape = shape_ref(before->shape, snapshot->stamp);
    } else {
        iso_err err = shape_build(&now, group->config->name, parts->registry, group->runtime, snapshot->stamp,
                                  &group->shape);
        if (err)
            return err;
    }
    group->n_targets = n;
    group->targets = group->shape->targets;
    group->pool = group->shape->pool;
    group->table = group->shape->table;
    return ISO_OK;
}

static iso_err build_group(struct snapshot *snapshot, const struct snapshot_parts *parts, uint32_t index,
                           struct iso_diag *diag)
{
    const struct config_target_group *config = &snapshot->config->target_groups[index];
    struct snap_group *group = &snapshot->groups[index];
    struct arena *arena = &snapshot->arena;
    uint32_t n = targets_expand(snapshot->config, config, parts->resolve, arena, &group->settings);
    group->config = config;
    group->http2 = http2_of(config);
    group->runtime = registry_group(parts->registry, config->name);
    const struct snap_group *before = group_before(parts->before, group->runtime);
    group->runtime->index = index;
    iso_err err = snapshot_add_group_tls(group, tls_before(parts, group, before, index), diag);
    if (err)
        return err;
    group->method = balance_method_get(config->algorithm);
    err = take_shape(snapshot, parts, group, before, n);
    if (err) {
        diag_add(diag, DIAG_ERROR, "", 0, 0, arena_printf(arena, "/target_groups/%u/algorithm", index),
                 "%s cannot serve %u targets", group->method->name, n);
        return err;
    }
    if (before && before->shape == group->shape && before->tls == group->tls &&
        config_same_group(config, before->config))
        group->same_as = parts->before->stamp;
    add_worker_state(snapshot, group);
    affinity_build(snapshot, group);
    return ISO_OK;
}

static enum listener_kind kind_of(const struct config_listener *config)
{
    const struct config_proxy_protocol *proxy = &config->proxy_protocol;
    bool client_first =
        config->protocol != CONFIG_TCP || (proxy->set && proxy->others == CONFIG_OTHERS_REFUSED);
    return config->protocol == CONFIG_UDP ? LISTENER_DATAGRAMS
           : client_first                 ? LISTENER_STREAM_CLIENT_FIRST
                                          : LISTENER_STREAM;
}

/* Whose certificates are taken as they were read; NULL: nobody's. */
static const struct snapshot *certs_before(const struct snapshot_parts *parts, const struct config *config)
{
    if (parts->earlier)
        return parts->earlier;
    bool is_same =
        parts->keeps_files && parts->before && config_same_certificates(config, parts->before->config);
    return is_same ? parts->before : NULL;
}

/* Whose TLS context the listener takes; NULL: it gets its own. */
static const struct snap_listener *listener_tls_before(const struct snapshot *snapshot,
                                                       const struct snapshot_parts *parts,
                                                       const struct snap_listener *listener, uint32_t index)
{
    if (parts->earlier)
        return &parts->earlier->listeners[index];
    const struct snapshot *before = parts->keeps_files ? parts->before : NULL;
    if (!before || before->cert_set != snapshot->cert_set)
        return NULL;
    for (uint32_t i = 0; i < before->n_listeners; i++) {
        const struct snap_listener *old = &before->listeners[i];
        if (old->runtime == listener->runtime && old->tls &&
            config_same_listener_tls(old->config, listener->config))
            return old;
    }
    return NULL;
}

static iso_err build_listener(struct snapshot *snapshot, const struct snapshot_parts *parts,
                              const struct config_listener *config, struct iso_diag *diag)
{
    uint32_t index = snapshot->n_listeners;
    struct snap_listener *listener = &snapshot->listeners[index];
    struct net_addr addr;
    int why = 0;
    snapshot_endpoint_addr(&config->endpoint, &addr);
    listener->snapshot = snapshot;
    listener->config = config;
    listener->runtime = registry_listener(parts->registry, config->name, config->endpoint.text, &addr,
                                          snapshot->version, kind_of(config), &why);
    if (!listener->runtime) {
        diag_add(diag, DIAG_ERROR, "", 0, 0, "", "listener %.*s: cannot listen on %.*s: %s",
                 SLICE_ARG(config->name), SLICE_ARG(config->endpoint.text), strerror(why));
        return ISO_ERR_SYSTEM;
    }
    for (uint32_t g = 0; g < snapshot->n_groups; g++)
        listener->keeps_headers |= snapshot->groups[g].config->proxy_protocol != CONFIG_PROXY_NONE;
    snapshot->n_listeners++;
    ratelimit_build(snapshot, parts->registry, listener);
    admit_build(snapshot, parts->registry, listener);
    security_build(snapshot, listener);
    iso_err err =
        snapshot_add_tls(snapshot, listener, listener_tls_before(snapshot, parts, listener, index), diag);
    if (config->protocol == CONFIG_TLS)
        listener->names = sni_compile(config, &snapshot->arena);
    if (!err)
        err = jwt_build(snapshot, listener, parts->earlier ? &parts->earlier->listeners[index] : NULL, diag);
    if (!err)
        err = basic_auth_build(snapshot, listener, parts->earlier ? &parts->earlier->listeners[index] : NULL,
                               diag);
    return err ? err : route_compile(config, &snapshot->arena, &listener->routes, diag);
}

iso_err snapshot_build(struct config **config, const struct snapshot_parts *parts, struct snapshot **out,
                       struct iso_diag *diag)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    iso_assert(snapshot != NULL);
    arena_init(&snapshot->arena);
    snapshot->config = *config;
    snapshot->version = parts->version;
    snapshot->stamp = registry_stamp(parts->registry);
    snapshot->n_workers = parts->n_workers;
    snapshot->trust = (struct forwarded_trust){(*config)->trusted_proxies, (*config)->n_trusted_proxies};
    snapshot->workers = arena_alloc_line(&snapshot->arena, sizeof(*snapshot->workers) * parts->n_workers);
    snapshot->groups = arena_array(&snapshot->arena, struct snap_group, (*config)->n_target_groups + 1);
    uint32_t n_listeners = 0;
    for (uint32_t l = 0; l < (*config)->n_load_balancers; l++)
        n_listeners += (*config)->load_balancers[l].n_listeners;
    snapshot->listeners = arena_array(&snapshot->arena, struct snap_listener, n_listeners + 1);

    iso_err err = snapshot_load_certs(snapshot, certs_before(parts, *config), diag);
    if (!err)
        err = snapshot_add_shared_tls(snapshot, diag);
    for (uint32_t g = 0; g < (*config)->n_target_groups && !err; g++) {
        snapshot->n_groups = g + 1;
        err = build_group(snapshot, parts, g, diag);
    }
    for (uint32_t l = 0; l < (*config)->n_load_balancers && !err; l++)
        for (uint32_t i = 0; i < (*config)->load_balancers[l].n_listeners && !err; i++)
            err = build_listener(snapshot, parts, &(*config)->load_balancers[l].listeners[i], diag);
    if (err) {
        snapshot->config = NULL; /* stays the caller's */
        snapshot_free(snapshot, parts->registry);
        return err;
    }
    for (uint32_t i = 0; i < snapshot->n_listeners; i++)
        snapshot->listeners[i].runtime->last_version = parts->version;
    *config = NULL;
    *out = snapshot;
    return ISO_OK;
}

void snapshot_free(struct snapshot *snapshot, struct registry *registry)
{
    iso_assert(atomic_load_explicit(&snapshot->refs, memory_order_acquire) == 0);
    for (uint32_t i = 0; i < snapshot->n_listeners; i++) {
        if (snapshot->listeners[i].routes)
            route_table_fini(snapshot->listeners[i].routes);
        if (snapshot->listeners[i].tls)
            tls_server_unref(&snapshot->listeners[i].tls);
        registry_limit_unref(registry, &snapshot->listeners[i].connection_limit);
        for (uint32_t r = 0; snapshot->listeners[i].rule_jwt && r < snapshot->listeners[i].config->n_rules;
             r++)
            jwt_unref(&snapshot->listeners[i].rule_jwt[r]);
        for (uint32_t r = 0;
             snapshot->listeners[i].rule_passwords && r < snapshot->listeners[i].config->n_rules; r++)
            passwords_unref(&snapshot->listeners[i].rule_passwords[r]);
        for (uint32_t l = 0; l < snapshot->listeners[i].n_limits; l++)
            registry_limit_unref(registry, &snapshot->listeners[i].limits[l].runtime);
        registry_listener_unref(registry, &snapshot->listeners[i].runtime);
    }
    for (uint32_t g = 0; g < snapshot->n_groups; g++) {
        shape_unref(&snapshot->groups[g].shape, registry);
        registry_group_unref(registry, &snapshot->groups[g].runtime);
        if (snapshot->groups[g].tls)
            tls_client_unref(&snapshot->groups[g].tls);
    }
    if (snapshot->shared_tls)
        tls_client_unref(&snapshot->shared_tls);
    snapshot_release_certs(snapshot);
    arena_fini(&snapshot->arena);
    if (snapshot->config)
        config_free(snapshot->config);
    free(snapshot);
}
