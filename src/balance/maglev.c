/* SPDX-License-Identifier: Apache-2.0 */
/* The method on a Maglev table: one look-up. When the owner of a slot is not usable, the key goes on through
 * slots that follow from its own hash, so that the keys of one target spread over all others by weight and no
 * other key moves. Source: B1, B4, I2. */
#include "balance/maglev.h"
#include "balance/builtin.h"
#include "balance/rendezvous.h"

/* With half of the weight usable, 1 key in 10^9 tries that often. */
enum { TRIES_MAX = 32 };

struct balance_table {
    struct usable usable;
    uint64_t *names; /* for rendezvous */
    uint32_t *slots; /* [m] */
    uint32_t m;
};

static balance_build_fn maglev_method_build;
static balance_pick_fn maglev_pick;

static iso_err maglev_method_build(const struct balance_pool *pool, struct arena *arena,
                                   struct balance_table **table)
{
    uint32_t m = pool->maglev_size ? pool->maglev_size : MAGLEV_SIZE_DEFAULT;
    if (!maglev_size_is_valid(m))
        return ISO_ERR_INVALID;
    struct balance_table *t = arena_new(arena, struct balance_table);
    t->m = m;
    t->slots = arena_array(arena, uint32_t, m);
    iso_err err = maglev_build(pool->names, pool->weights, pool->n, m, t->slots);
    if (err)
        return err;
    usable_init(&t->usable, pool, arena);
    t->names = rendezvous_names(pool, arena);
    *table = t;
    return ISO_OK;
}

static uint32_t maglev_pick(const struct balance_pool *pool, const struct balance_table *table,
                            struct balance_state *state, const struct balance_pick *how)
{
    uint64_t hash = how->hash;
    for (int tries = 0; tries < TRIES_MAX && table->usable.n_positive > 0; tries++) {
        uint32_t i = table->slots[maglev_slot(hash, table->m)];
        if (usable_has(&table->usable, how, i) && rendezvous_accepts(how, table->names, i))
            return i;
        hash = hash_mix64(hash + 0x9e3779b97f4a7c15ull);
    }
    return rendezvous_pick(pool, &table->usable, table->names, how);
}

const struct balance_method balance_method_MAGLEV = {
    .name = "maglev",
    .needs_hash = true,
    .build = maglev_method_build,
    .state_bytes = balance_no_state,
    .pick = maglev_pick,
};
