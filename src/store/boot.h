/* SPDX-License-Identifier: Apache-2.0 */
/* Where the configuration comes from when a process starts with a store (H1, H3):
 *
 *     the store has a version      it is in force; what the file says otherwise is logged (file: seed),
 *                                  or the file is in force and becomes the next version (file: wins)
 *     the store is empty           the file is in force and becomes version 1
 *     the store is away            the last good copy is in force (file: wins: the file itself);
 *                                  without one the store is waited for, and then there is nothing to serve
 *
 * Asking happens on a loop of its own, before the process has one; afterwards the store is opened for good,
 * with the version found here. A file that becomes a version is recorded by then, once it has shown that it
 * can be in force: one that cannot (an address in use) never gets into the store, and from there to other
 * nodes. */
#ifndef ISOBAR_STORE_BOOT_H
#define ISOBAR_STORE_BOOT_H

#include "config/load.h"
#include "store/store.h"

struct store_boot {
    uint64_t version; /* in force; 0: none that the store is known to have */
    bool must_record; /* the file is in force and is to become a version */
};

/* `source` is the file, read; what is in force takes its place, with admin and store from the file. Blocks.
 * Errors: ISO_ERR_INVALID, reported; source is then unchanged. Threads: main. */
iso_err store_boot(struct config_source *source, const char *file_name, struct store_boot *out,
                   struct iso_diag *diag) ISO_MUST_USE;

/* The configuration of a stored document on this node: with the sections that come from the node's own file,
 * taken from `local`. `before`: what was decoded from `local`, where that is the document in force; what is
 * the same is taken from there. May be NULL. `name` stands in faults. Threads: any; with `before`, control.
 */
iso_err store_decode(struct slice document, const struct doc_node *local, const struct config *before,
                     const char *name, const char *base_dir, struct config_source *out,
                     struct iso_diag *diag) ISO_MUST_USE;

/* Logs what `file` says otherwise than `in_force`; false when nothing. The sections of the node aside. */
bool store_log_difference(const struct config *in_force, const struct config *file, const char *file_name);

#endif
