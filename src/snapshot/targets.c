/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/targets.h"

#include "core/text.h"

#include <string.h>

/* Texts of the configuration end in NUL. */
struct resolve_name target_name(const struct config_target *target)
{
    return (struct resolve_name){target->host.ptr ? RESOLVE_HOST : RESOLVE_SRV,
                                 target->host.ptr ? target->host.ptr : target->srv.ptr};
}

/* "app.internal/10.0.0.1:80", "srv:_http._tcp.app.internal/[2001:db8::1]:80" */
static struct slice print_name(const struct config_target *target, const struct config_endpoint *endpoint,
                               struct arena *arena)
{
    struct slice name = target->host.ptr ? target->host : target->endpoint.text;
    char ip[IP_TEXT_MAX];
    int len = (int)ip_print(&endpoint->ip, ip);
    bool v6 = endpoint->ip.family == 6;
    return slice_str(arena_printf(arena, "%.*s/%s%.*s%s:%u", SLICE_ARG(name), v6 ? "[" : "", len, ip,
                                  v6 ? "]" : "", endpoint->port));
}

/* The family whose addresses go first, where there are some of it; 0: none does. */
static uint8_t preferred_family(const struct config *config, const struct resolve_view *view)
{
    uint8_t family = config->resolver.family == CONFIG_FAMILY_PREFER_IPV4   ? 4
                     : config->resolver.family == CONFIG_FAMILY_PREFER_IPV6 ? 6
                                                                            : 0;
    for (uint32_t i = 0; i < view->n; i++)
        if (view->addrs[i].ip.family == family)
            return family;
    return 0;
}

/* The priorities that there are, each once, in order. */
static void list_priorities(const struct resolve_view *view, uint16_t *out)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < view->n; i++) {
        uint16_t priority = view->addrs[i].priority;
        uint32_t at = 0;
        while (at < n && out[at] < priority)
            at++;
        if (at < n && out[at] == priority)
            continue;
        memmove(out + at + 1, out + at, (n - at) * sizeof(*out));
        out[at] = priority;
        n++;
    }
}

/* Which of a name's targets serve first: those of the first priority and the preferred family; the family
 * counts within a priority. */
static uint32_t rank_of(const struct resolve_addr *addr, const uint16_t *priorities, uint8_t family)
{
    uint32_t before = 0;
    while (priorities[before] != addr->priority)
        before++;
    return 2 * before + (family && addr->ip.family != family);
}

/* Records of weight 0 are to be used little (RFC 2782), where a target of weight 0 is not used at all. */
static uint32_t weight_of(const struct config_target *target, const struct resolve_addr *addr)
{
    if (target->host.ptr)
        return target->weight;
    return addr->weight ? addr->weight : 1;
}

/* Adds the targets of one name. */
static uint32_t expand(const struct config *config, const struct config_target *target,
                       const struct resolve_view *view, struct arena *arena, struct config_target *out)
{
    uint8_t family = preferred_family(config, view);
    uint16_t *priorities = arena_array(arena, uint16_t, view->n + 1);
    list_priorities(view, priorities);
    for (uint32_t i = 0; i < view->n; i++) {
        const struct resolve_addr *addr = &view->addrs[i];
        struct config_target *one = &out[i];
        *one = *target;
        one->endpoint.ip = addr->ip;
        one->endpoint.port = target->host.ptr ? target->endpoint.port : addr->port;
        one->endpoint.text = print_name(target, &one->endpoint, arena);
        one->weight = weight_of(target, addr);
        uint32_t rank = rank_of(addr, priorities, family);
        one->order = (uint16_t)(target->backup || rank == 0 ? rank : rank - 1);
        one->backup |= rank > 0;
    }
    return view->n;
}

uint32_t targets_expand(const struct config *config, const struct config_target_group *group,
                        const struct resolve *resolve, struct arena *arena, const struct config_target **out)
{
    *out = group->targets;
    if (!group->has_names)
        return group->n_targets;
    struct resolve_view *views = arena_array(arena, struct resolve_view, group->n_targets);
    uint32_t most = 0, n = 0;
    for (uint32_t i = 0; i < group->n_targets; i++) {
        if (target_is_name(&group->targets[i]) && resolve) {
            struct resolve_name name = target_name(&group->targets[i]);
            bool is_known = resolve_find(resolve, name.kind, name.name, &views[i]);
            iso_assert(is_known); /* every name of the configuration is added before a snapshot is built */
        }
        most += target_is_name(&group->targets[i]) ? views[i].n : 1;
    }
    struct config_target *targets = arena_array(arena, struct config_target, most + 1);
    for (uint32_t i = 0; i < group->n_targets; i++) {
        if (target_is_name(&group->targets[i]))
            n += expand(config, &group->targets[i], &views[i], arena, targets + n);
        else
            targets[n++] = group->targets[i];
    }
    *out = targets;
    return n;
}

uint32_t targets_names(const struct config *config, struct arena *arena, const struct resolve_name **out)
{
    uint32_t most = 0, n = 0;
    for (uint32_t g = 0; g < config->n_target_groups; g++)
        most += config->target_groups[g].has_names ? config->target_groups[g].n_targets : 0;
    struct resolve_name *names = arena_array(arena, struct resolve_name, most + 1);
    for (uint32_t g = 0; g < config->n_target_groups; g++)
        for (uint32_t i = 0; config->target_groups[g].has_names && i < config->target_groups[g].n_targets;
             i++)
            if (target_is_name(&config->target_groups[g].targets[i]))
                names[n++] = target_name(&config->target_groups[g].targets[i]);
    *out = names;
    return n;
}

struct resolve_settings targets_resolve_settings(const struct config *config, struct arena *arena)
{
    const struct config_resolver *resolver = &config->resolver;
    struct text servers;
    text_init(&servers);
    for (uint32_t i = 0; i < resolver->n_servers; i++)
        text_printf(&servers, "%s%.*s", i ? "," : "", SLICE_ARG(resolver->servers[i]));
    const char *copy = resolver->n_servers ? arena_slice(arena, text_slice(&servers)).ptr : NULL;
    text_fini(&servers);
    return (struct resolve_settings){.servers = copy,
                                     .min_ttl_ms = resolver->min_ttl_ms,
                                     .max_ttl_ms = resolver->max_ttl_ms,
                                     .with_ipv4 = resolver->family != CONFIG_FAMILY_IPV6,
                                     .with_ipv6 = resolver->family != CONFIG_FAMILY_IPV4};
}
