/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/select.h"

#include "core/clock.h"
#include "core/hash.h"
#include "proxy/exchange.h"

enum { RAMP_EVERY_MS = 100 };

enum whom { HEALTHY, PANIC_KNOWN, PANIC_ALL };

static bool is_usable(const struct snap_group *group, uint32_t i, enum whom whom)
{
    const struct health_status *health = &group->targets[i]->health;
    return group->settings[i].enabled &&
           (whom == HEALTHY ? health_is_usable(health)
                            : health_is_usable_in_panic(health, whom == PANIC_ALL));
}

/* 0: no backup. */
static uint32_t rank_of(const struct config_target *target)
{
    return target->backup ? 1u + target->order : 0;
}

/* The first rank behind `rank` that a target has; UINT32_MAX: there is none. */
static uint32_t next_rank(const struct snap_group *group, uint32_t rank)
{
    uint32_t next = UINT32_MAX;
    for (uint32_t i = 0; i < group->n_targets; i++) {
        uint32_t of_target = rank_of(&group->settings[i]);
        if (of_target > rank && of_target < next)
            next = of_target;
    }
    return next;
}

/* Marks the targets of a rank that may take work; counts those that only their weight of 0 keeps out. */
static uint32_t mark_usable(const struct snap_group *group, uint64_t *bitmap, enum whom whom, uint32_t rank,
                            uint32_t *n_weightless)
{
    uint32_t n = 0;
    memset(bitmap, 0, (group->n_targets + 63) / 64 * sizeof(*bitmap));
    for (uint32_t i = 0; i < group->n_targets; i++) {
        if (rank_of(&group->settings[i]) != rank || !is_usable(group, i, whom))
            continue;
        if (group->settings[i].weight == 0) {
            ++*n_weightless;
            continue;
        }
        bitmap[i / 64] |= 1ull << i % 64;
        n++;
    }
    return n;
}

/* How much of its weight each target has in force now. */
static void refresh_ramp(const struct snap_group *group, struct snap_group_worker *mine, uint64_t now_ns)
{
    const struct config_target_group *config = group->config;
    bool any = false;
    for (uint32_t i = 0; i < group->n_targets; i++) {
        uint64_t from_ns =
            atomic_load_explicit(&group->targets[i]->health.ramp_from_ns, memory_order_relaxed);
        uint64_t age_ms = from_ns < now_ns ? (now_ns - from_ns) / NS_PER_MS : 0;
        mine->ramp[i] = from_ns ? slow_start_ramp(config->slow_start_shape, age_ms, config->slow_start_ms)
                                : BALANCE_RAMP_FULL;
        any |= mine->ramp[i] != BALANCE_RAMP_FULL;
    }
    mine->ramp_due_ns = any ? now_ns + RAMP_EVERY_MS * NS_PER_MS : 0;
}

/* Backups serve only when no other target is usable (case C-110), those of a later priority (SRV) when none
 * of an earlier one is. Of targets whose health is ignored, those that were never known to be good come last.
 */
static void refresh(const struct snap_group *group, struct snap_group_worker *mine, uint32_t epoch,
                    uint64_t now_ns)
{
    mine->is_panicking =
        atomic_load_explicit(&group->runtime->health.is_panicking, memory_order_relaxed) != 0;
    enum whom first = mine->is_panicking ? PANIC_KNOWN : HEALTHY,
              last = mine->is_panicking ? PANIC_ALL : HEALTHY;
    mine->n_usable = 0;
    for (enum whom whom = first; whom <= last && mine->n_usable == 0; whom++) {
        mine->n_weightless = 0;
        for (uint32_t rank = 0; rank != UINT32_MAX && mine->n_usable == 0; rank = next_rank(group, rank))
            mine->n_usable = mark_usable(group, mine->eligible, whom, rank, &mine->n_weightless);
    }
    mine->ramp_due_ns = 0;
    if (group->config->slow_start_ms && !mine->is_panicking)
        refresh_ramp(group, mine, now_ns);
    mine->epoch_seen = epoch;
}

/* What is eligible without what was tried; when that is nothing, trying one again beats failing. */
static const uint64_t *without_tried(const struct snap_group *group, struct snap_group_worker *mine,
                                     const uint16_t *tried, uint32_t n_tried)
{
    uint32_t words = (group->n_targets + 63) / 64;
    uint64_t any = 0;
    memcpy(mine->attempt, mine->eligible, words * sizeof(*mine->attempt));
    for (uint32_t i = 0; i < n_tried; i++)
        mine->attempt[tried[i] / 64] &= ~(1ull << tried[i] % 64);
    for (uint32_t i = 0; i < words; i++)
        any |= mine->attempt[i];
    return any ? mine->attempt : mine->eligible;
}

uint32_t select_in(const struct snap_group *group, struct snap_group_worker *mine, uint64_t now_ns,
                   struct rng *rng, uint64_t hash, const uint16_t *tried, uint32_t n_tried)
{
    uint32_t epoch = atomic_load_explicit(&group->runtime->epoch, memory_order_acquire);
    if (iso_unlikely(epoch != mine->epoch_seen))
        refresh(group, mine, epoch, now_ns);
    else if (iso_unlikely(mine->ramp_due_ns && now_ns >= mine->ramp_due_ns))
        refresh_ramp(group, mine, now_ns);
    if (iso_unlikely(mine->n_usable == 0))
        return BALANCE_NONE;
    struct balance_pick how = {.hash = hash,
                               .eligible =
                                   n_tried ? without_tried(group, mine, tried, n_tried) : mine->eligible,
                               .ramp = mine->ramp_due_ns ? mine->ramp : NULL,
                               .rng = rng};
    return group->method->pick(&group->pool, group->table, mine->state, &how);
}

bool select_may_take(struct snap_group *group, struct worker *worker, uint32_t target)
{
    struct snap_group_worker *mine = &group->workers[worker->index];
    uint32_t epoch = atomic_load_explicit(&group->runtime->epoch, memory_order_acquire);
    if (epoch != mine->epoch_seen)
        refresh(group, mine, epoch, worker->loop.now_ns);
    return mine->eligible[target / 64] >> target % 64 & 1;
}

uint32_t select_from(struct snap_group *group, struct worker *worker, uint64_t hash, const uint16_t *tried,
                     uint32_t n_tried)
{
    return select_in(group, &group->workers[worker->index], worker->loop.now_ns, &worker->rng, hash, tried,
                     n_tried);
}

uint32_t select_target(struct exchange *x)
{
    return select_from(x->group, x->worker, x->hash, x->tried, x->n_tried);
}

enum exchange_end select_why_none(const struct exchange *x)
{
    return x->group->workers[x->worker->index].n_weightless ? END_ALL_WEIGHTS_ZERO : END_NO_TARGET;
}

uint64_t select_hash_address(const struct ip_addr *ip)
{
    /* An IPv6 client owns its whole /64 and may use any address of it for the next connection. */
    return iso_hash64(slice_of((const char *)ip->bytes, ip->family == 6 ? 8 : 4), ip->family);
}

uint64_t select_hash(const struct snap_group *group, struct http_message *msg, const struct ip_addr *client)
{
    const struct config_target_group *config = group->config;
    struct http_field *field;
    struct slice value;
    switch (config->hash_kind) {
    case CONFIG_HASH_CLIENT_IP:
        break;
    case CONFIG_HASH_PATH:
        return iso_hash64(msg->path, 0);
    case CONFIG_HASH_QUERY:
        if (http_query_find(msg->query, config->hash_name, &value))
            return iso_hash64(value, 0);
        break;
    case CONFIG_HASH_HEADER:
        field = http_message_find_name(msg, config->hash_name);
        if (field)
            return iso_hash64(http_field_value(field), 0);
        break;
    case CONFIG_HASH_COOKIE:
        if (http_message_cookie(msg, config->hash_name, &value))
            return iso_hash64(value, 0);
        break;
    }
    return select_hash_address(client); /* also for requests that lack the key: they spread and stay put */
}
