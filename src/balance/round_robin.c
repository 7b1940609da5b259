/* SPDX-License-Identifier: Apache-2.0 */
/* Each target in turn: O(1), and one word per 64 targets that are not usable. A target in slow start lets
 * some of its turns pass to the next one, which loses nothing by it. Source: B1. */
#include "balance/builtin.h"
#include "balance/usable.h"

struct balance_table {
    struct usable usable;
};

struct balance_state {
    uint32_t next; /* whose turn it is; may be one past the end */
};

static balance_build_fn round_robin_build;
static balance_state_bytes_fn round_robin_state_bytes;
static balance_pick_fn round_robin_pick;

static iso_err round_robin_build(const struct balance_pool *pool, struct arena *arena,
                                 struct balance_table **table)
{
    *table = arena_new(arena, struct balance_table);
    usable_init(&(*table)->usable, pool, arena);
    return ISO_OK;
}

static size_t round_robin_state_bytes(const struct balance_pool *pool)
{
    return sizeof(struct balance_state);
}

static uint32_t round_robin_pick(const struct balance_pool *pool, const struct balance_table *table,
                                 struct balance_state *state, const struct balance_pick *how)
{
    uint32_t first = usable_next(&table->usable, how, state->next), i = first;
    if (first == BALANCE_NONE)
        return BALANCE_NONE;
    while (!usable_takes_part(how, i)) {
        i = usable_next(&table->usable, how, i + 1);
        if (i == first)
            break; /* everybody is in slow start and passed: nobody is refused for that */
    }
    state->next = i + 1;
    return i;
}

const struct balance_method balance_method_ROUND_ROBIN = {
    .name = "round_robin",
    .build = round_robin_build,
    .state_bytes = round_robin_state_bytes,
    .pick = round_robin_pick,
};
