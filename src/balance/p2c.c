/* SPDX-License-Identifier: Apache-2.0 */
/* Power of two choices: two different targets drawn by weight, the one with the lower in_flight / weight
 * wins, and of equals the one drawn first, so that an idle pool is used by weight. O(1) and only two of the
 * shared counters are read; nearly as even as looking at all, and workers that decide at the same moment do
 * not all run to the same target. Source: B1, B3; case C-109; Mitzenmacher, 2001. */
#include "balance/builtin.h"
#include "balance/draw.h"

struct balance_table {
    struct draw draw;
};

static balance_build_fn p2c_build;
static balance_pick_fn p2c_pick;

static iso_err p2c_build(const struct balance_pool *pool, struct arena *arena, struct balance_table **table)
{
    *table = arena_new(arena, struct balance_table);
    draw_build(&(*table)->draw, pool, arena);
    return ISO_OK;
}

static uint32_t p2c_pick(const struct balance_pool *pool, const struct balance_table *table,
                         struct balance_state *state, const struct balance_pick *how)
{
    uint32_t a = draw_one(&table->draw, pool, how, BALANCE_NONE);
    if (a == BALANCE_NONE || table->draw.usable.n_positive == 1)
        return a;
    uint32_t b = draw_one(&table->draw, pool, how, a);
    if (b == BALANCE_NONE)
        return a;
    uint64_t load_a = atomic_load_explicit(pool->in_flight[a], memory_order_relaxed);
    uint64_t load_b = atomic_load_explicit(pool->in_flight[b], memory_order_relaxed);
    return load_b * usable_weight(pool, how, a) < load_a * usable_weight(pool, how, b) ? b : a;
}

const struct balance_method balance_method_P2C_LEAST_REQUEST = {
    .name = "p2c_least_request",
    .build = p2c_build,
    .state_bytes = balance_no_state,
    .pick = p2c_pick,
};
