/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec to the memory that the XDP program reads, and back to names. Works on mapped maps and equally
 * on plain memory, so that tests and sanitizers need no kernel. One publication: fill an unused bank and
 * unused rings, then one store makes the whole of it current (I9). What is already there is the state: a new
 * process that maps the same maps goes on where the last one stopped, with the ids, counters, moves and flows
 * of before.
 *
 * Threads: one writer. Readers are the XDP programs on any CPU; nothing they may still be reading is written
 * again within L4_GRACE_MS. */
#ifndef ISOBAR_L4_TABLES_H
#define ISOBAR_L4_TABLES_H

#include "core/diag.h"
#include "core/err.h"

#include "l4/abi.h"
#include "l4/spec.h"

enum { L4_GRACE_MS = 50, L4_MAX_RINGS = 512 };

/* The mapped maps; all borrowed, from the loader or a test, for as long as the tables live. */
struct l4_view {
    struct l4_control *control;
    struct l4_vip_bank *banks; /* two */
    struct l4_real *reals;     /* L4_REALS */
    char *rings, *moves;
    size_t ring_stride, move_stride; /* bytes from one ring to the next */
    uint32_t n_rings, slots;
    struct l4_flow_set *flows;
    uint32_t flow_sets; /* of all regions */
    struct l4_traffic *vip_count, *real_count;
    struct l4_cpu *cpus;
    uint32_t n_cpus;
    uint64_t ring_seed, flow_seed;
    uint32_t region_sets; /* flow sets a region has; == flow_sets when shared */
};

struct l4_tables {
    struct l4_view view;
    uint64_t ring_free_ns[L4_MAX_RINGS]; /* when a ring may be written again */
    uint64_t bank_free_ns;               /* the same for the bank not in force */
    uint32_t *slots_scratch;             /* owns; one Maglev table */
    uint32_t next_real;                  /* where the search for a free real id begins */
    uint32_t moved;                    /* slots whose owner changed in the last publication, over all rings */
    uint32_t rebuilt;                  /* rings written in it */
    uint32_t computed;                 /* Maglev tables computed in it */
    uint64_t ring_print[L4_MAX_RINGS]; /* of what each ring was computed from; 0: not known */
};

void l4_tables_init(struct l4_tables *tables, const struct l4_view *view);
void l4_tables_fini(struct l4_tables *tables);

/* How many rings a spec may need at once: its own and those that are still in force. */
uint32_t l4_rings_needed(const struct l4_spec *spec);

/* Makes `spec` current. On an error nothing changed. `now_tick`: l4_control.tick as l4_clock set it just now.
 * Errors: ISO_ERR_INVALID (what and where in `diag`: more reals than slots, two VIPs alike, ...),
 * ISO_ERR_LIMIT (more VIPs, reals, prefixes or rings than fit). Source: I2, I5, I9. */
iso_err l4_tables_publish(struct l4_tables *tables, const struct l4_spec *spec, uint32_t now_tick,
                          struct iso_diag *diag) ISO_MUST_USE;

/* Takes the moved mark off slots whose window is over; they cost a table look-up otherwise. The number still
 * marked. */
uint32_t l4_tables_sweep(struct l4_tables *tables, uint32_t now_tick);

/* The id of a real, 0 when the program does not know it. */
uint32_t l4_real_id(const struct l4_view *view, const struct ip_addr *ip, bool gue);
void l4_real_address(const struct l4_real *real, struct ip_addr *ip);

static inline uint16_t *l4_ring(const struct l4_view *view, uint32_t ring)
{
    return (uint16_t *)(void *)(view->rings + ring * view->ring_stride);
}

static inline struct l4_move *l4_ring_moves(const struct l4_view *view, uint32_t ring)
{
    return (struct l4_move *)(void *)(view->moves + ring * view->move_stride);
}

static inline struct l4_vip_bank *l4_bank(const struct l4_view *view)
{
    return &view->banks[__atomic_load_n(&view->control->bank, __ATOMIC_ACQUIRE) & 1];
}

/* The entry with exactly this key, or NULL. */
struct l4_vip *l4_bank_find(struct l4_vip_bank *bank, const __u64 addr[2], __u32 key);

#endif
