/* SPDX-License-Identifier: Apache-2.0 */
/* The store in a SQLite file, for one machine: write-ahead log, synchronous FULL, so a commit is on the disk
 * before it is answered. The database belongs to one thread; the loop hands it a call and gets it back, so a
 * disk that stalls holds up nobody but those who wait for their change.
 *
 * The file is checked when it is opened. One that is damaged, or that is no database, is never written to: it
 * stays as it is for whoever repairs it, and the store stays away until it is sound. */
#include "store/sqlite_file.h"

#include "core/clock.h"
#include "core/log.h"
#include "store/blocking.h"
#include "store/store_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { POLL_MS = 1000 /* for commits of another process on the same file: the one before an upgrade */ };

struct sqlite_kind {
    struct store *store;     /* borrows */
    struct blocking *thread; /* owns */
    struct loop_timer timer; /* the next attempt to open, or look at the version */
    uint32_t attempt;
    bool is_open, is_busy;
    /* the job under way: the thread's while is_busy */
    struct blocking_job job;
    struct store_call *call; /* NULL: an opening or a poll */
    struct sqlite_file file;
    uint64_t version;
    bool must_reopen; /* the file is not to be trusted */
    bool is_left;     /* nobody is there but the thread, which hangs and frees this should it come back */
    char reason[400];
};

/* ---- on the thread ---- */

static void open_work(struct blocking_job *job)
{
    struct sqlite_kind *kind = container_of(job, struct sqlite_kind, job);
    kind->must_reopen = !sqlite_file_open(&kind->file, kind->reason, sizeof(kind->reason)) ||
                        !sqlite_file_version(&kind->file, &kind->version, kind->reason, sizeof(kind->reason));
    if (kind->must_reopen)
        sqlite_file_close(&kind->file);
}

static void poll_work(struct blocking_job *job)
{
    struct sqlite_kind *kind = container_of(job, struct sqlite_kind, job);
    kind->must_reopen =
        !sqlite_file_is_there(&kind->file, kind->reason, sizeof(kind->reason)) ||
        !sqlite_file_version(&kind->file, &kind->version, kind->reason, sizeof(kind->reason)) ||
        !sqlite_file_checkpoint(&kind->file, kind->reason, sizeof(kind->reason));
    if (kind->must_reopen)
        sqlite_file_close(&kind->file);
}

static void call_work(struct blocking_job *job)
{
    struct sqlite_kind *kind = container_of(job, struct sqlite_kind, job);
    kind->must_reopen = !sqlite_file_is_there(&kind->file, kind->reason, sizeof(kind->reason));
    if (kind->must_reopen)
        call_fail(kind->call, "%s", kind->reason);
    else if (!sqlite_file_run(&kind->file, kind->call)) {
        kind->must_reopen = true;
        snprintf(kind->reason, sizeof(kind->reason), "%s", kind->call->reason);
    }
    if (kind->must_reopen)
        sqlite_file_close(&kind->file);
}

/* ---- on the loop ---- */

static void begin(struct sqlite_kind *kind, void (*work)(struct blocking_job *job))
{
    iso_assert(!kind->is_busy);
    kind->is_busy = true;
    kind->job.work = work;
    blocking_do(kind->thread, &kind->job);
}

static void wait(struct sqlite_kind *kind, uint64_t ns)
{
    loop_timer_set(store_loop(kind->store), &kind->timer, clock_mono_ns() + ns);
}

static void call_failed(struct sqlite_kind *kind)
{
    struct store_call *call = kind->call;
    kind->call = NULL;
    call_fail(call, "%s", kind->reason);
    store_call_done(kind->store, call);
}

static void done(struct blocking_job *job)
{
    struct sqlite_kind *kind = container_of(job, struct sqlite_kind, job);
    struct store_call *finished = job->work == call_work ? kind->call : NULL;
    bool was_open = kind->is_open;
    if (finished)
        kind->call = NULL;
    kind->is_busy = false;
    kind->is_open = !kind->must_reopen;
    if (kind->must_reopen) {
        wait(kind, store_retry_ns(kind->attempt++));
        store_is_down(kind->store, "%s", kind->reason);
    } else {
        kind->attempt = 0;
        wait(kind, POLL_MS * NS_PER_MS);
        if (!was_open)
            store_is_up(kind->store, kind->version);
        else if (!finished)
            store_moved(kind->store, kind->version);
    }
    if (finished)
        store_call_done(kind->store, finished);
    if (kind->call && kind->is_open)
        begin(kind, call_work); /* it came during a look at the version */
    else if (kind->call)
        call_failed(kind);
    else if (kind->is_open && sqlite_file_is_due(&kind->file))
        begin(kind, poll_work);
}

static void free_kind(struct sqlite_kind *kind)
{
    sqlite_file_close(&kind->file);
    free(kind->file.path);
    free(kind);
}

static void discard(struct blocking_job *job)
{
    struct sqlite_kind *kind = container_of(job, struct sqlite_kind, job);
    if (!kind->is_left)
        return;
    if (kind->call)
        call_free(kind->call);
    free_kind(kind);
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct sqlite_kind *kind = container_of(timer, struct sqlite_kind, timer);
    if (kind->is_busy)
        return;
    begin(kind, kind->is_open ? poll_work : open_work);
}

static iso_err sqlite_open(struct store *store, struct slice url, void **out, struct iso_diag *diag)
{
    struct sqlite_kind *kind = calloc(1, sizeof(*kind));
    iso_assert(kind != NULL);
    kind->store = store;
    kind->job = (struct blocking_job){.done = done, .discard = discard};
    kind->file.path = strdup(sqlite_path_of(url));
    kind->file.may_create = store_figures(store)->known == 0;
    kind->file.busy_ms = store_timeout_ms(store) / 2;
    loop_timer_init(&kind->timer, on_timer);
    iso_err err = blocking_start(store_loop(store), "store", &kind->thread);
    if (err) {
        free(kind->file.path);
        free(kind);
        return err;
    }
    begin(kind, open_work);
    *out = kind;
    return ISO_OK;
}

static void sqlite_run(void *arg, struct store_call *call)
{
    struct sqlite_kind *kind = arg;
    kind->call = call;
    if (!kind->is_busy)
        begin(kind, call_work);
}

static void sqlite_give_up(void *arg, struct store_call *call)
{
    /* The thread is in the kernel and comes back when the disk does. */
}

/* The disk hangs, and with it the thread. */
static void leave(struct sqlite_kind *kind)
{
    struct store_call *call = kind->call;
    bool is_running = call && kind->job.work == call_work;
    if (is_running && call->is_commit)
        log_error("store: %s has not answered for %u ms and is not waited for: version %" PRIu64
                  " may be missing there",
                  kind->file.path, store_timeout_ms(kind->store), call->expected + 1);
    else
        log_error("store: %s has not answered for %u ms and is not waited for", kind->file.path,
                  store_timeout_ms(kind->store));
    kind->is_left = true;
    if (is_running) {
        store_call_left(kind->store, call);
    } else if (call) {
        kind->call = NULL;
        store_call_done(kind->store, call);
    }
}

static void sqlite_close(void **taken)
{
    struct sqlite_kind *kind = *taken;
    *taken = NULL;
    loop_timer_remove(store_loop(kind->store), &kind->timer);
    if (!blocking_stop_within(&kind->thread, store_timeout_ms(kind->store))) {
        leave(kind);
        return;
    }
    if (kind->call)
        store_call_done(kind->store, kind->call);
    free_kind(kind);
}

static const struct dialect dialect = {.begin = "BEGIN IMMEDIATE", .each = "json_each($1) AS e"};

const struct store_kind store_sqlite = {.scheme = "sqlite",
                                        .dialect = &dialect,
                                        .open = sqlite_open,
                                        .run = sqlite_run,
                                        .give_up = sqlite_give_up,
                                        .close = sqlite_close};
