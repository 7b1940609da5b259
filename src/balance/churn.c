/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/churn.h"
#include "balance/order.h"

/* One pool under one scheme. */
struct side {
    const struct balance_pool *pool;
    const struct balance_method *method; /* NULL: hash mod N */
    struct balance_table *table;
    uint64_t *eligible; /* all */
    uint64_t *sums;     /* hash mod N: weights of the targets up to and with each */
};

static const struct balance_method *method_of(enum churn_scheme scheme)
{
    switch (scheme) {
    case CHURN_IP_HASH:
        return balance_method_get(BALANCE_IP_HASH);
    case CHURN_RING:
        return balance_method_get(BALANCE_CONSISTENT_HASH);
    case CHURN_MAGLEV:
        return balance_method_get(BALANCE_MAGLEV);
    case CHURN_MODULO:
    case CHURN_SCHEME_COUNT:
        return NULL;
    }
    return NULL;
}

static iso_err side_init(struct side *side, const struct balance_pool *pool, enum churn_scheme scheme,
                         struct arena *arena)
{
    *side = (struct side){.pool = pool, .method = method_of(scheme)};
    if (side->method) {
        side->eligible = arena_array(arena, uint64_t, pool->n / 64 + 1);
        memset(side->eligible, 0xff, sizeof(uint64_t) * (pool->n / 64 + 1));
        return side->method->build(pool, arena, &side->table);
    }
    side->sums = arena_array(arena, uint64_t, pool->n + 1);
    for (uint32_t i = 0; i < pool->n; i++)
        side->sums[i + 1] = side->sums[i] + pool->weights[i];
    return ISO_OK;
}

/* As a plain balancer does it: a list in which each target stands `weight` times. */
static uint32_t pick_modulo(const struct side *side, uint64_t hash)
{
    uint32_t low = 0, high = side->pool->n;
    if (side->sums[high] == 0)
        return BALANCE_NONE;
    uint64_t at = hash % side->sums[high];
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (side->sums[middle] <= at)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static uint32_t side_pick(const struct side *side, uint64_t hash)
{
    if (!side->method)
        return pick_modulo(side, hash);
    const struct balance_pick how = {.hash = hash, .eligible = side->eligible};
    return side->method->pick(side->pool, side->table, NULL, &how);
}

/* former[i]: the index that target i of `after` has in `before`, or BALANCE_NONE. */
static iso_err match_names(const struct balance_pool *before, const struct balance_pool *after,
                           struct arena *arena, uint32_t *former)
{
    uint32_t *old = arena_array(arena, uint32_t, before->n), *new = arena_array(arena, uint32_t, after->n);
    iso_err err = order_by_name(before->names, before->n, old);
    if (!err)
        err = order_by_name(after->names, after->n, new);
    if (err)
        return err;
    for (uint32_t o = 0, n = 0; n < after->n; n++) {
        while (o < before->n && slice_compare(before->names[old[o]], after->names[new[n]]) < 0)
            o++;
        bool same = o < before->n && slice_eq(before->names[old[o]], after->names[new[n]]);
        former[new[n]] = same ? old[o] : BALANCE_NONE;
    }
    return ISO_OK;
}

static double weight_sum(const struct balance_pool *pool)
{
    double sum = 0;
    for (uint32_t i = 0; i < pool->n; i++)
        sum += pool->weights[i];
    return sum;
}

/* What the targets that gain must gain, as a part of all keys. */
static double least_movement(const struct balance_pool *before, const struct balance_pool *after,
                             const uint32_t *former)
{
    double sum_before = weight_sum(before), sum_after = weight_sum(after), gain = 0;
    if (sum_before == 0 || sum_after == 0)
        return sum_before != sum_after;
    for (uint32_t i = 0; i < after->n; i++) {
        double had = former[i] == BALANCE_NONE ? 0 : before->weights[former[i]] / sum_before;
        double has = after->weights[i] / sum_after;
        gain += has > had ? has - had : 0;
    }
    return gain;
}

static iso_err measure_scheme(enum churn_scheme scheme, const struct balance_pool *before,
                              const struct balance_pool *after, const uint32_t *former, struct churn *churn)
{
    struct arena arena;
    struct side old, new;
    arena_init(&arena);
    iso_err err = side_init(&old, before, scheme, &arena);
    if (!err)
        err = side_init(&new, after, scheme, &arena);
    for (uint32_t key = 0; !err && key < churn->keys; key++) {
        uint64_t hash = hash_mix64(key + 0x9e3779b97f4a7c15ull);
        uint32_t was = side_pick(&old, hash), is = side_pick(&new, hash);
        bool stays = is == BALANCE_NONE ? was == BALANCE_NONE : was != BALANCE_NONE && former[is] == was;
        churn->moved[scheme] += !stays;
    }
    arena_fini(&arena);
    return err;
}

iso_err churn_measure(const struct balance_pool *before, const struct balance_pool *after, uint32_t keys,
                      struct churn *churn)
{
    struct arena arena;
    arena_init(&arena);
    struct churn result = {.keys = keys};
    uint32_t *former = arena_array(&arena, uint32_t, after->n);
    iso_err err = match_names(before, after, &arena, former);
    if (!err)
        result.least = least_movement(before, after, former);
    for (int scheme = 0; !err && scheme < CHURN_SCHEME_COUNT; scheme++)
        err = measure_scheme((enum churn_scheme)scheme, before, after, former, &result);
    arena_fini(&arena);
    if (!err)
        *churn = result;
    return err;
}
