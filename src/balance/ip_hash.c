/* SPDX-License-Identifier: Apache-2.0 */
/* A client keeps its target as long as that is usable, whatever happens to the others: rendezvous hashing
 * without a table. The hash of the address (IPv6: of its /64) is the caller's. O(n): pools of thousands are
 * better served by consistent_hash or maglev with hash_key client_ip. Source: B1, B4. */
#include "balance/builtin.h"
#include "balance/rendezvous.h"

struct balance_table {
    struct usable usable;
    uint64_t *names;
};

static balance_build_fn ip_hash_build;
static balance_pick_fn ip_hash_pick;

static iso_err ip_hash_build(const struct balance_pool *pool, struct arena *arena,
                             struct balance_table **table)
{
    struct balance_table *t = arena_new(arena, struct balance_table);
    usable_init(&t->usable, pool, arena);
    t->names = rendezvous_names(pool, arena);
    *table = t;
    return ISO_OK;
}

static uint32_t ip_hash_pick(const struct balance_pool *pool, const struct balance_table *table,
                             struct balance_state *state, const struct balance_pick *how)
{
    return rendezvous_pick(pool, &table->usable, table->names, how);
}

const struct balance_method balance_method_IP_HASH = {
    .name = "ip_hash",
    .needs_hash = true,
    .build = ip_hash_build,
    .state_bytes = balance_no_state,
    .pick = ip_hash_pick,
};
