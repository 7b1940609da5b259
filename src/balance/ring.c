/* SPDX-License-Identifier: Apache-2.0 */
/* Consistent hashing on a ring: each target stands at many points. A key is hashed to four places and belongs
 * to the usable target whose point follows one of them most closely. A target that leaves gives its keys to
 * the next nearest points, spread over all others; no other key moves.
 *
 * Why four places: the arcs before points differ as exponential numbers do, so with one place 160 points give
 * a target a share that is off by 8% (standard deviation), and one of ten targets by 15% in every other pool.
 * The nearest of four leaves 3% (1 / sqrt(7) of it; Appleton, O'Reilly: Multi-probe consistent hashing,
 * 2015).
 *
 * How many points: 160 (pool->ring_points) for a target of the pool's usual weight, in proportion for others.
 * Usual is the lower median of the weights, rounded down to a power of ten, so 160 for each unit where
 * weights are like 1:2:3, and 160 for 100 where they are like 100:50:200. Dividing by the greatest common
 * divisor instead would give 100:100 160 points each, and adding a canary of weight 1 would raise that to
 * 16,000 and move nearly every key; a rounded median moves only when the pool becomes another one.
 *
 * Points are sorted by hash, and an index by the hash's upper bits says where to begin, so a place is two
 * cache misses whatever the size. Source: B1, B4; case C-108; Karger et al., 1997. */
#include "balance/builtin.h"
#include "balance/order.h"
#include "balance/rendezvous.h"

#include <stdlib.h>

/* More would make the table larger than 12 MiB; above, all targets get fewer in proportion, one at least. */
enum { RING_POINTS_DEFAULT = 160, RING_POINTS_MAX = 1 << 19 };

/* A point is the upper bits of its hash over the index of its target. */
enum { OWNER_BITS = 24 };
#define OWNER_MASK ((1ull << OWNER_BITS) - 1)

/* Points passed from one place before it is given up: with 9 of 10 targets out 1 place in 10^11. */
enum { PLACES = 4, WALK_MAX = 256 };

enum { POINT_SEED = 0x72696e67 };

struct balance_table {
    struct usable usable;
    uint64_t *names;  /* for rendezvous */
    uint64_t *points; /* ascending; [n_points] */
    uint32_t *index;  /* index[h]: the first point whose upper bits are h or more; [2^index_bits + 1], two
                       * entries for each point or more */
    uint32_t n_points;
    uint32_t index_bits;
};

static balance_build_fn ring_build;
static balance_pick_fn ring_pick;

static int compare_weights(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The weight whose targets get exactly the configured number of points. */
static uint32_t usual_weight(const struct balance_pool *pool, struct arena *scratch)
{
    uint32_t *weights = arena_array(scratch, uint32_t, pool->n), n = 0;
    for (uint32_t i = 0; i < pool->n; i++)
        if (pool->weights[i] > 0)
            weights[n++] = pool->weights[i];
    qsort(weights, n, sizeof(weights[0]), compare_weights);
    uint32_t median = weights[(n - 1) / 2], unit = 1;
    while (median / unit >= 10)
        unit *= 10;
    return unit;
}

/* Fills counts[n] and returns the sum. */
static uint32_t count_points(const struct balance_pool *pool, struct arena *scratch, uint32_t *counts)
{
    /* points = weight * per_unit / unit, which all together stay below the limit */
    uint64_t per_unit = pool->ring_points ? pool->ring_points : RING_POINTS_DEFAULT;
    uint64_t unit = usual_weight(pool, scratch), weights = 0;
    for (uint32_t i = 0; i < pool->n; i++)
        weights += pool->weights[i];
    if (per_unit > RING_POINTS_MAX)
        per_unit = RING_POINTS_MAX;
    if (weights * per_unit / unit > RING_POINTS_MAX) {
        per_unit = RING_POINTS_MAX;
        unit = weights;
    }
    uint32_t sum = 0;
    for (uint32_t i = 0; i < pool->n; i++) {
        uint64_t points = (pool->weights[i] * per_unit + unit / 2) / unit;
        counts[i] = (uint32_t)(points == 0 && pool->weights[i] > 0 ? 1 : points);
        sum += counts[i];
    }
    return sum;
}

static uint64_t point_hash(uint64_t name, uint32_t j)
{
    return hash_mix64(name + j * 0x9e3779b97f4a7c15ull);
}

/* Sorts by counting the upper bits, which leaves the index, and then each bucket of at most a few points. */
static void place_points(const struct balance_pool *pool, struct balance_table *t, const uint32_t *counts,
                         const uint32_t *order)
{
    uint32_t shift = 64 - t->index_bits;
    for (uint32_t i = 0; i < pool->n; i++) {
        uint64_t name = iso_hash64(pool->names[i], POINT_SEED);
        for (uint32_t j = 0; j < counts[i]; j++)
            t->index[(point_hash(name, j) >> shift) + 1]++;
    }
    for (uint32_t b = 0; b < 1u << t->index_bits; b++)
        t->index[b + 1] += t->index[b];
    /* From here on index[b + 1] is where bucket b ends; it grows back to that from where b begins. */
    for (uint32_t b = 1u << t->index_bits; b > 0; b--)
        t->index[b] = t->index[b - 1];
    for (uint32_t rank = 0; rank < pool->n; rank++) {
        uint32_t i = order[rank];
        uint64_t name = iso_hash64(pool->names[i], POINT_SEED);
        for (uint32_t j = 0; j < counts[i]; j++) {
            uint64_t hash = point_hash(name, j), point = (hash & ~OWNER_MASK) | i;
            uint32_t at = t->index[(hash >> shift) + 1]++;
            /* What stands before the bucket is lower or not filled yet (0). Equal hashes keep the order of
             * the names. */
            for (; at > 0 && t->points[at - 1] >> OWNER_BITS > point >> OWNER_BITS; at--)
                t->points[at] = t->points[at - 1];
            t->points[at] = point;
        }
    }
}

static iso_err ring_build(const struct balance_pool *pool, struct arena *arena, struct balance_table **table)
{
    if (pool->n > OWNER_MASK)
        return ISO_ERR_INVALID;
    struct arena scratch;
    arena_init(&scratch);
    uint32_t *order = arena_array(&scratch, uint32_t, pool->n);
    uint32_t *counts = arena_array(&scratch, uint32_t, pool->n);
    iso_err err = order_by_name(pool->names, pool->n, order);
    if (err)
        goto end;

    struct balance_table *t = arena_new(arena, struct balance_table);
    usable_init(&t->usable, pool, arena);
    if (t->usable.n_positive > 0) {
        t->names = rendezvous_names(pool, arena);
        t->n_points = count_points(pool, &scratch, counts);
        while (1u << t->index_bits < 2 * t->n_points)
            t->index_bits++;
        t->points = arena_array(arena, uint64_t, t->n_points);
        t->index = arena_array(arena, uint32_t, (1u << t->index_bits) + 1);
        place_points(pool, t, counts, order);
    }
    *table = t;
end:
    arena_fini(&scratch);
    return err;
}

static inline uint32_t first_point(const struct balance_table *table, uint64_t place)
{
    uint32_t at = table->index[place >> (64 - table->index_bits)];
    while (at < table->n_points && table->points[at] >> OWNER_BITS < place >> OWNER_BITS)
        at++;
    return at < table->n_points ? at : 0;
}

static inline uint64_t distance_to(const struct balance_table *table, uint64_t place, uint32_t at)
{
    return ((table->points[at] & ~OWNER_MASK) - (place & ~OWNER_MASK)) >> OWNER_BITS;
}

static inline bool takes_key(const struct balance_table *table, const struct balance_pick *how, uint32_t i)
{
    return usable_has(&table->usable, how, i) && rendezvous_accepts(how, table->names, i);
}

/* The nearest point whose target takes the key: past points of others, from each place. */
static uint32_t walk(const struct balance_table *table, const struct balance_pick *how,
                     const uint64_t places[PLACES])
{
    uint32_t best = BALANCE_NONE;
    uint64_t distance = UINT64_MAX;
    for (int p = 0; p < PLACES; p++) {
        uint32_t at = first_point(table, places[p]);
        for (int walked = 0; walked < WALK_MAX; walked++) {
            uint64_t away = distance_to(table, places[p], at);
            uint32_t i = table->points[at] & OWNER_MASK;
            if (away >= distance)
                break;
            if (takes_key(table, how, i)) {
                best = i;
                distance = away;
                break;
            }
            at = at + 1 == table->n_points ? 0 : at + 1;
        }
    }
    return best;
}

static uint32_t ring_pick(const struct balance_pool *pool, const struct balance_table *table,
                          struct balance_state *state, const struct balance_pick *how)
{
    if (table->n_points == 0)
        return BALANCE_NONE;
    uint64_t places[PLACES], distance = UINT64_MAX;
    uint32_t nearest = 0;
    for (unsigned p = 0; p < PLACES; p++) {
        places[p] = hash_mix64(how->hash + p * 0x9e3779b97f4a7c15ull);
        uint32_t at = first_point(table, places[p]);
        uint64_t away = distance_to(table, places[p], at);
        nearest = away < distance ? at : nearest;
        distance = away < distance ? away : distance;
    }
    uint32_t i = table->points[nearest] & OWNER_MASK;
    if (takes_key(table, how, i))
        return i;
    i = walk(table, how, places);
    return i != BALANCE_NONE ? i : rendezvous_pick(pool, &table->usable, table->names, how);
}

const struct balance_method balance_method_CONSISTENT_HASH = {
    .name = "consistent_hash",
    .needs_hash = true,
    .build = ring_build,
    .state_bytes = balance_no_state,
    .pick = ring_pick,
};
