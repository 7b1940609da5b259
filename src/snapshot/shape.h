/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets of a group are compiled into: backends, weights, the method's table. All snapshots in
 * which they are the same share one, so that a change of one group builds nothing of the others, and whoever
 * adopts a snapshot sees by one look that a group's targets are those it knows. */
#ifndef ISOBAR_SNAPSHOT_SHAPE_H
#define ISOBAR_SNAPSHOT_SHAPE_H

#include "balance/method.h"
#include "config/model.h"
#include "upstream/backend.h"

struct snap_shape {
    /* set once before publishing */
    struct arena arena;       /* owns all below */
    struct backend **targets; /* [n]; shared (counted) */
    uint32_t n;
    enum balance_method_id algorithm;
    struct balance_pool pool;
    struct balance_table *table;

    /* any thread: atomic, relaxed. The version of the snapshot from which on it is part of none; 0: it still
     * is. Written by the control thread before that snapshot is published. */
    _Atomic uint64_t left_version;

    /* control thread only */
    uint32_t refs;  /* snapshots */
    uint64_t born;  /* stamp of the first snapshot */
    uint64_t stamp; /* of the last one built */
};

/* Targets of a group in a snapshot. */
struct shape_targets {
    const struct config_target *settings; /* [n] */
    uint32_t n;
    enum balance_method_id algorithm;
};

/* Would the same come out? */
bool shape_is_same(const struct shape_targets *a, const struct shape_targets *b);
/* Compiles; ISO_ERR_INVALID when the method cannot serve them. Owns: the caller, one reference. */
iso_err shape_build(const struct shape_targets *targets, struct slice group, struct registry *registry,
                    struct group_runtime *runtime, uint64_t stamp, struct snap_shape **out) ISO_MUST_USE;
struct snap_shape *shape_ref(struct snap_shape *shape, uint64_t stamp);
void shape_unref(struct snap_shape **shape, struct registry *registry);

/* Is it still part of the snapshot of that version? Threads: any that has that snapshot. */
static inline bool shape_is_in(const struct snap_shape *shape, uint64_t version)
{
    uint64_t left = atomic_load_explicit(&((struct snap_shape *)shape)->left_version, memory_order_relaxed);
    return left == 0 || left > version;
}

#endif
