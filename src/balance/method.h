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

enum { BALANCE_NONE = 0xffffffffu, BALANCE_WEIGHT_MAX = 65535, BALANCE_RAMP_FULL = 65535 };

/* The targets of a pool as methods see them; arrays of `n`, all borrowed for the table's life. */
struct balance_pool {
    uint32_t n;
    const uint32_t *weights;   /* 0..65535; 0 takes no new work */
    const struct slice *names; /* unique and stable ("10.0.0.1:80"): hashing methods depend on nothing else */
    /* any thread, relaxed: requests a target is working on, over all workers. Only least_connections and
     * p2c_least_request look; others take NULL. */
    _Atomic uint32_t *const *in_flight;
    uint32_t ring_points; /* ring: points of a target of the pool's usual weight, see ring.c; 0: 160 */
    uint32_t maglev_size; /* maglev: a prime, at most MAGLEV_SIZE_MAX; 0: 65537 */
};

struct balance_table;
struct balance_state;

struct balance_pick {
    /* Of the client address, header, cookie...; used when the method needs_hash. Well mixed (iso_hash64,
     * siphash), never a number as it came: methods look at its upper bits. */
    uint64_t hash;
    /* Bit i: target i may take new work now (healthy, not full, not tried before); (n + 63) / 64 words, bits
     * from n on are ignored. A set bit with weight 0 is skipped by the method. Borrowed for the call. */
    const uint64_t *eligible;
    /* Slow start: how much of its weight each target has in force, 1..BALANCE_RAMP_FULL (slow_start_ramp());
     * NULL: all of it, which is cheaper. A fraction, since a weight of 1 has no smaller integer. */
    const uint16_t *ramp;
    struct rng *rng; /* the worker's; not needed by methods that need a hash */
};

struct balance_method {
    const char *name;
    bool needs_hash;
    /* Builds the immutable part. ISO_ERR_INVALID when the pool cannot be served: two targets of one name,
     * more targets than Maglev slots, a Maglev size that is no prime. Threads: control. Owns: the arena. */
    iso_err (*build)(const struct balance_pool *pool, struct arena *arena, struct balance_table **table);
    /* Bytes of a state for the pool's targets, aligned to 8; a zeroed one is a valid start. */
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
