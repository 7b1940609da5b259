/* SPDX-License-Identifier: Apache-2.0 */
/* One publication in the making: what tables.c and reals.c share. */
#ifndef ISOBAR_L4_PUBLICATION_H
#define ISOBAR_L4_PUBLICATION_H

#include "l4/tables.h"

enum { REAL_BUCKETS = 4 * L4_REALS };

/* VIPs that share both the set of reals and the ring they had so far share the next ring. */
struct ring_group {
    uint32_t set, old_ring, new_ring;
    bool fresh; /* new_ring was written in this publication */
};

struct publication {
    struct l4_tables *tables;
    const struct l4_spec *spec;
    struct iso_diag *diag;
    struct l4_vip_bank *old, *bank; /* in force; being filled */
    uint32_t now, window;
    uint16_t real_ids[L4_REALS];   /* by index in spec->reals */
    uint64_t known[L4_REALS / 64]; /* ids of reals in the spec */
    bool usable[L4_REALS];         /* by id */
    uint16_t by_address[REAL_BUCKETS];
    uint64_t ring_used[L4_MAX_RINGS / 64];
    struct ring_group groups[L4_MAX_RINGS];
    uint32_t n_groups;
};

/* Notes which ids the reals of before have. */
void l4_reals_index(struct publication *pub);
/* Gives each real of the spec its id, the old one where it has one. Errors: ISO_ERR_LIMIT, ISO_ERR_INVALID.
 */
iso_err l4_reals_assign(struct publication *pub) ISO_MUST_USE;
/* Before the new tables are in force: they name only reals that can be used. */
void l4_reals_admit(struct publication *pub);
/* After it: whatever the new spec calls failed or does not know any more. */
void l4_reals_retire(struct publication *pub);

#endif
