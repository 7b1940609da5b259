/* SPDX-License-Identifier: Apache-2.0 */
/* A thread for what would hold up the loop: SQLite, fsync, connecting to a database. Jobs are done one after
 * the other in the order of asking; each comes back to the loop that it came from. A job belongs to the
 * thread between blocking_do() and its `done`, and to the caller at all other times. */
#ifndef ISOBAR_STORE_BLOCKING_H
#define ISOBAR_STORE_BLOCKING_H

#include "net/loop.h"

struct blocking;

struct blocking_job {
    struct blocking_job *next;
    void (*work)(struct blocking_job *job);    /* on the thread */
    void (*done)(struct blocking_job *job);    /* on the loop; never after blocking_stop() or _leave() */
    void (*discard)(struct blocking_job *job); /* instead of done: frees it; on either thread */
};

/* Borrows the loop until the end. `name` shows in ps. Errors: ISO_ERR_SYSTEM, logged. */
iso_err blocking_start(struct loop *loop, const char *name, struct blocking **out) ISO_MUST_USE;
/* Threads: the loop's. */
void blocking_do(struct blocking *blocking, struct blocking_job *job);
/* Waits until all jobs are done; they are discarded instead of coming back, before this
 * returns. */
void blocking_stop(struct blocking **blocking);
/* The same, but waits no longer than `ms`. False: a job has not ended by then, and it goes on as after
 * blocking_leave(): a job that is discarded must then find all that it needs in itself. */
bool blocking_stop_within(struct blocking **blocking, uint32_t ms) ISO_MUST_USE;
/* Without waiting: the thread ends after the job that it is at, and the others are discarded. For jobs that
 * leave nothing behind when the process exits meanwhile. */
void blocking_leave(struct blocking **blocking);

#endif
