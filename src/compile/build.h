/* SPDX-License-Identifier: Apache-2.0 */
/* From a configuration to a snapshot, and the end of one: everything that workers read is worked out here, on
 * the control thread, before a request comes. */
#ifndef ISOBAR_COMPILE_BUILD_H
#define ISOBAR_COMPILE_BUILD_H

#include "snapshot/snapshot.h"

/* What a snapshot is made from beside the configuration. */
struct snapshot_parts {
    struct registry *registry;
    const struct resolve *resolve;  /* where the names of targets are looked up; NULL: none has an address */
    const struct snapshot *earlier; /* of the same configuration, whose TLS contexts are taken, so that no
                                       file is read again; NULL: none */
    const struct snapshot *before;  /* the one in force, whose targets and tables are taken where they are the
                                       same; NULL: none */
    bool keeps_files;               /* what was read from files for `before` is not read again where its
                                       settings are the same */
    uint32_t n_workers;
    uint64_t version;
};

/* Compiles `*config` (taken over on success only). New listeners are bound here, so that an address in use
 * fails before anything changes; on failure nothing changed and `diag` says why. Threads: control. */
iso_err snapshot_build(struct config **config, const struct snapshot_parts *parts, struct snapshot **out,
                       struct iso_diag *diag) ISO_MUST_USE;

/* Threads: control; refs must be 0. */
void snapshot_free(struct snapshot *snapshot, struct registry *registry);

#endif
