/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin listener's pages and handlers see of the process. Workers are never asked, only their
 * counters are read. */
#ifndef ISOBAR_API_VIEW_H
#define ISOBAR_API_VIEW_H

#include "net/loop.h"
#include "observe/accesslog.h"
#include "observe/counters.h"
#include "snapshot/snapshot.h"

#include <pthread.h>

struct history;
struct store;

struct control_worker {
    const struct worker_counters *counters; /* borrows */
    pthread_t thread;                       /* not joined while it is listed here */
};

/* What the pages show. The owner fills it and changes it on the control thread only; every
 * pointer stays valid until it is replaced here. A zeroed view is a process that has just begun. */
struct control_view {
    struct loop *loop;                    /* the control thread's */
    const char *version;                  /* of the build: "0.1.0" */
    const struct snapshot *snapshot;      /* the current one; NULL: none yet */
    const struct control_worker *workers; /* [n_workers]; same indexes as in every counters array */
    uint32_t n_workers;
    const struct accesslog *accesslog;   /* NULL: off */
    const struct history *history;       /* the last hour, see recorder.h; NULL: not recorded */
    const struct snapshot *retired;      /* earlier ones that may be in use, a list; NULL: none */
    const struct departures *departures; /* targets that leave; NULL: none */
    const struct resolve *resolve;       /* where the snapshot's names are known; NULL: there are none */
    struct store *store;                 /* NULL: the file is the state */
    const struct shared_state *shared;   /* NULL: never asked for */
    uint64_t groups_built;               /* target groups that no snapshot before had, over all snapshots */
    bool is_shutting_down;               /* lame duck: /healthz answers 503 from now on (E3) */
    struct {
        uint64_t succeeded, failed; /* reloads, the first load not counted */
        uint64_t succeeded_wall_ns; /* when the current configuration came into force */
        bool last_failed;
    } reload;
};

#endif
