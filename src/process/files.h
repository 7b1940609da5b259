/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the configuration names (certificates, keys, OCSP answers, authorities, key sets, passwords) are
 * looked at every watch_files_s; when one has changed and then stays the same for a second, all are read
 * again and a new snapshot is built of the same configuration. What is open goes on; files that are of no use
 * leave everything as it is. Threads: control. Source: A5. */
#ifndef ISOBAR_PROCESS_FILES_H
#define ISOBAR_PROCESS_FILES_H

#include "config/model.h"
#include "net/loop.h"

/* What the files look like now: another number when one of them has changed. */
uint64_t files_signature(const struct config *config);

struct files_watch {
    struct loop_timer timer;
    const struct config *config; /* borrows: of the current snapshot; NULL: none yet */
    uint64_t seen;               /* when they were last read */
    uint64_t last;               /* at the last look */
    void (*on_change)(struct files_watch *watch);
};

void files_watch_init(struct files_watch *watch, void (*on_change)(struct files_watch *watch));
/* A snapshot of this configuration is in force, and its files have just been read. */
void files_watch_set(struct files_watch *watch, struct loop *loop, const struct config *config);

#endif
