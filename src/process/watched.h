/* SPDX-License-Identifier: Apache-2.0 */
/* From a snapshot to what the health thread watches: groups that have changed since the last one, with their
 * targets, and those targets that leave, for as long as they do. */
#ifndef ISOBAR_PROCESS_WATCHED_H
#define ISOBAR_PROCESS_WATCHED_H

#include "health/health.h"
#include "snapshot/snapshot.h"

/* Watches the targets of `now`, and for as long as `with_leaving` those of `old` that are not in it. `old`:
 * what was watched so far; NULL: nothing. Threads: control. */
void watched_apply(struct health *health, const struct snapshot *now, const struct snapshot *old,
                   bool with_leaving);

#endif
