/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS part of building a snapshot: certificates are loaded once, each listener gets a context of its own.
 * Threads: control. */
#ifndef ISOBAR_COMPILE_SNAPSHOT_TLS_H
#define ISOBAR_COMPILE_SNAPSHOT_TLS_H

#include "snapshot/snapshot.h"

/* Where an earlier snapshot of the same configuration is given, its contexts are shared and no file is read.
 */

/* Reads every certificate of the configuration into snapshot->certs. One that has expired is a warning. */
/* What the shared state's server is verified by, when it speaks TLS. */
iso_err snapshot_add_shared_tls(struct snapshot *snapshot, struct iso_diag *diag) ISO_MUST_USE;
iso_err snapshot_load_certs(struct snapshot *snapshot, const struct snapshot *earlier,
                            struct iso_diag *diag) ISO_MUST_USE;
void snapshot_release_certs(struct snapshot *snapshot);
/* The listener's context, when it speaks TLS. */
iso_err snapshot_add_tls(struct snapshot *snapshot, struct snap_listener *listener,
                         const struct snap_listener *earlier, struct iso_diag *diag) ISO_MUST_USE;

/* The group's context, when its targets speak TLS. */
iso_err snapshot_add_group_tls(struct snap_group *group, const struct snap_group *earlier,
                               struct iso_diag *diag) ISO_MUST_USE;

/* Writes a warning to the log for each certificate that has expired or will within 14 days. */
void snapshot_warn_expiring(const struct snapshot *snapshot);

/* Would a snapshot of this configuration get its TLS contexts? Reads the files, keeps nothing (C-127). */
iso_err snapshot_check_tls(const struct config *config, struct iso_diag *diag) ISO_MUST_USE;

#endif
