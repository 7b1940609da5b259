/* SPDX-License-Identifier: Apache-2.0 */
/* Drawn by weight, O(1). Source: B1. */
#include "balance/builtin.h"
#include "balance/draw.h"

struct balance_table {
    struct draw draw;
};

static balance_build_fn random_build;
static balance_pick_fn random_pick;

static iso_err random_build(const struct balance_pool *pool, struct arena *arena,
                            struct balance_table **table)
{
    *table = arena_new(arena, struct balance_table);
    draw_build(&(*table)->draw, pool, arena);
    return ISO_OK;
}

static uint32_t random_pick(const struct balance_pool *pool, const struct balance_table *table,
                            struct balance_state *state, const struct balance_pick *how)
{
    return draw_one(&table->draw, pool, how, BALANCE_NONE);
}

const struct balance_method balance_method_RANDOM = {
    .name = "random",
    .build = random_build,
    .state_bytes = balance_no_state,
    .pick = random_pick,
};
