/* SPDX-License-Identifier: Apache-2.0 */
/* What every balancing method must do. Balancing is pure: a method sees names, weights, loads and a hash; no
 * sockets, no clock, no HTTP. L7, TCP, UDP, the L4 table builder and the CLI share it (B1 to B7).
 *
 * Threads. A `balance_table` is built once on the control thread, immutable afterwards and read by every
 * worker. A `balance_state` is what moves (a cursor, current weights): one per worker and pool, touched by
 * that worker only. The only thing read across threads is the load of a target, through `in_flight`, relaxed.
 */
#ifndef ISOBAR_BALANCE_METHOD_H
#define ISOBAR_BALANCE_METHOD_H

#include "core/arena.h"
#include "core/err.h"
#include "core/random.h"

#include <stdatomic.h>

enum balance_method_id {
#define METHOD(id, name, needs_hash, text) BALANCE_##id,
#include "balance/methods.def"
#undef METHOD
    BALANCE_METHOD_COUNT
};

enum { BALANCE_NONE = 0xffffffffu, BALANCE_WEIGHT_MAX = 65535 };

/* The targets of a pool as methods see them; arrays of `n`, all borrowed for the table's life. */
struct balance_pool {
    uint32_t n;
    const uint32_t *weights;   /* 0..65535; 0 takes no new work */
    const struct slice *names; /* unique and stable ("10.0.0.1:80"): hashing methods depend on nothing else */
    _Atomic uint32_t *const
        *in_flight; /* any thread, relaxed: requests a target is working on, over all workers */
    uint32_t ring_points_per_weight; /* ring: points per unit of weight after dividing by the gcd; 0: 160 */
    uint32_t maglev_size;            /* maglev: a prime; 0: 65537 */
};

struct balance_table;
struct balance_state;

struct balance_pick {
    uint64_t hash; /* of the client address, header, cookie...; used when the method needs_hash */
    /* Bit i: target i may take new work now (healthy, not full, not tried before). A set bit with weight 0 is
     * skipped by the method. Borrowed for the call. */
    const uint64_t *eligible;
    const uint32_t
        *weights;    /* NULL: the pool's; otherwise the weights in force now (slow start), same indexes */
    struct rng *rng; /* the worker's */
};

struct balance_method {
    const char *name;
    bool needs_hash;
    /* Builds the immutable part; NULL result with ISO_OK is allowed where a method has none. ISO_ERR_INVALID
     * when the pool cannot be served (for example more targets than Maglev slots). Threads: control. Owns:
     * the arena. */
    iso_err (*build)(const struct balance_pool *pool, struct arena *arena, struct balance_table **table);
    /* Bytes of a zeroed state for `n` targets; a zeroed state is a valid start. */
    size_t (*state_bytes)(const struct balance_pool *pool);
    /* The index of the target to use, or BALANCE_NONE when no eligible target has weight. Never allocates or
     * blocks. Threads: the state's worker. */
    uint32_t (*pick)(const struct balance_pool *pool, const struct balance_table *table,
                     struct balance_state *state, const struct balance_pick *how);
};

/* The method's functions; never NULL. */
const struct balance_method *balance_method_get(enum balance_method_id id);
/* By the name used in the configuration; false when unknown. */
bool balance_method_lookup(struct slice name, enum balance_method_id *id);

static inline bool balance_is_eligible(const uint64_t *eligible, uint32_t i)
{
    return eligible[i / 64] >> (i % 64) & 1;
}

#endif
