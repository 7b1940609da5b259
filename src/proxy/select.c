/* SPDX-License-Identifier: Apache-2.0 */
/* Which target gets the attempt: the group's method over the targets that may take work. What is usable is
 * looked at again only when the group's epoch says that something changed. */
#include "proxy/exchange.h"

#include "core/hash.h"

static bool is_usable(const struct snap_group *group, uint32_t i)
{
    return group->config->targets[i].enabled && health_is_usable(&group->targets[i]->health);
}

/* Marks the primaries or the backups that may take work; counts those that only their weight of 0 keeps out.
 */
static uint32_t mark_usable(const struct snap_group *group, uint64_t *bitmap, bool backups,
                            uint32_t *n_weightless)
{
    uint32_t n = 0;
    memset(bitmap, 0, (group->n_targets + 63) / 64 * sizeof(*bitmap));
    for (uint32_t i = 0; i < group->n_targets; i++) {
        if (group->config->targets[i].backup != backups || !is_usable(group, i))
            continue;
        if (group->config->targets[i].weight == 0) {
            ++*n_weightless;
            continue;
        }
        bitmap[i / 64] |= 1ull << i % 64;
        n++;
    }
    return n;
}

/* Backups serve only when no other target is usable (case C-110). */
static void refresh(const struct snap_group *group, struct snap_group_worker *mine, uint32_t epoch)
{
    mine->n_weightless = 0;
    mine->n_usable = mark_usable(group, mine->eligible, false, &mine->n_weightless);
    if (mine->n_usable == 0)
        mine->n_usable = mark_usable(group, mine->eligible, true, &mine->n_weightless);
    mine->epoch_seen = epoch;
}

/* What is eligible without what this exchange has tried; when that is nothing, trying one again beats
 * failing. */
static const uint64_t *without_tried(const struct exchange *x, struct snap_group_worker *mine)
{
    uint32_t words = (x->group->n_targets + 63) / 64;
    uint64_t any = 0;
    memcpy(mine->attempt, mine->eligible, words * sizeof(*mine->attempt));
    for (uint32_t i = 0; i < x->n_tried; i++)
        mine->attempt[x->tried[i] / 64] &= ~(1ull << x->tried[i] % 64);
    for (uint32_t i = 0; i < words; i++)
        any |= mine->attempt[i];
    return any ? mine->attempt : mine->eligible;
}

uint32_t select_target(struct exchange *x)
{
    struct snap_group *group = x->group;
    struct snap_group_worker *mine = &group->workers[x->worker->index];
    uint32_t epoch = atomic_load_explicit(&group->runtime->epoch, memory_order_acquire);
    if (iso_unlikely(epoch != mine->epoch_seen))
        refresh(group, mine, epoch);
    if (iso_unlikely(mine->n_usable == 0))
        return BALANCE_NONE;
    struct balance_pick how = {.hash = x->hash,
                               .eligible = x->n_tried ? without_tried(x, mine) : mine->eligible,
                               .rng = &x->worker->rng};
    return group->method->pick(&group->pool, group->table, mine->state, &how);
}

enum exchange_end select_why_none(const struct exchange *x)
{
    return x->group->workers[x->worker->index].n_weightless ? END_ALL_WEIGHTS_ZERO : END_NO_TARGET;
}

static uint64_t hash_address(const struct ip_addr *ip)
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
        field = http_message_find(msg, HTTP_FIELD_COOKIE);
        if (field && http_cookie_find(http_field_value(field), config->hash_name, &value))
            return iso_hash64(value, 0);
        break;
    }
    return hash_address(client); /* also for requests that lack the key: they spread and stay put */
}
