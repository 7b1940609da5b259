/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot.h"

#include "snapshot/targets.h"

enum { RETRY_TOKENS_AT_START = 1000 }; /* ten retries before any request has earned some */

void snapshot_endpoint_addr(const struct config_endpoint *endpoint, struct net_addr *addr)
{
    if (endpoint->unix_path.ptr) {
        bool fits = net_addr_unix(addr, endpoint->unix_path);
        iso_assert(fits); /* validation bounds the path */
    } else {
        net_addr_ip(addr, &endpoint->ip, endpoint->port);
    }
}

/* Cache lines of its own, since a worker writes there on every request. */
void snapshot_corner_init(const struct snap_group *group, struct snap_group_worker *mine, struct arena *arena)
{
    size_t bitmap_bytes = (group->n_targets + 63) / 64 * sizeof(uint64_t);
    size_t state_bytes = group->method->state_bytes(&group->pool);
    mine->state = arena_alloc_line(arena, state_bytes ? state_bytes : 1);
    mine->eligible = arena_alloc_line(arena, bitmap_bytes + 1);
    mine->ramp = arena_alloc_line(arena, sizeof(*mine->ramp) * (group->n_targets + 1));
    mine->attempt = arena_alloc_line(arena, bitmap_bytes + 1);
    mine->retry_tokens = RETRY_TOKENS_AT_START;
    mine->epoch_seen = atomic_load_explicit(&group->runtime->epoch, memory_order_relaxed) - 1;
}

static bool is_current(const struct snapshot *snapshot, const struct snap_group *group,
                       const struct resolve *resolve, struct arena *arena)
{
    const struct config_target *now;
    uint32_t n = targets_expand(snapshot->config, group->config, resolve, arena, &now);
    for (uint32_t i = 0; n == group->n_targets && now != group->settings && i < n; i++)
        if (!slice_eq(now[i].endpoint.text, group->settings[i].endpoint.text) ||
            now[i].weight != group->settings[i].weight || now[i].backup != group->settings[i].backup ||
            now[i].order != group->settings[i].order)
            return false;
    return n == group->n_targets;
}

bool snapshot_is_current(const struct snapshot *snapshot, const struct resolve *resolve)
{
    struct arena arena;
    bool is_same = true;
    arena_init(&arena);
    for (uint32_t g = 0; g < snapshot->n_groups && is_same; g++)
        is_same = is_current(snapshot, &snapshot->groups[g], resolve, &arena);
    arena_fini(&arena);
    return is_same;
}

static void mark(struct backend *backend, bool gets_work, uint64_t version)
{
    uint64_t left = atomic_load_explicit(&backend->left_version, memory_order_relaxed);
    if (gets_work != (left == 0))
        atomic_store_explicit(&backend->left_version, gets_work ? 0 : version, memory_order_relaxed);
}

void snapshot_mark_leaving(const struct snapshot *now, const struct snapshot *old)
{
    for (uint32_t g = 0; g < now->n_groups; g++) {
        const struct snap_group *group = &now->groups[g];
        for (uint32_t t = 0; group->shape->born == now->stamp && t < group->n_targets; t++)
            mark(group->targets[t], group->settings[t].enabled, now->version);
    }
    for (uint32_t g = 0; old && g < old->n_groups; g++) {
        const struct snap_group *group = &old->groups[g];
        if (snapshot_has_shape(now, group))
            continue;
        atomic_store_explicit(&group->shape->left_version, now->version, memory_order_relaxed);
        for (uint32_t t = 0; t < group->n_targets; t++)
            if (!snapshot_has_backend(now, group->targets[t]))
                mark(group->targets[t], false, now->version);
    }
}
