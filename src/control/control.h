/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread: one loop that takes signals, serves the admin listener and runs whatever changes the
 * process (a reload, the shutdown). It is the thread that calls control_run(), normally the main one. What
 * the pages show comes from a control_view that the owner keeps current; workers are never asked, only their
 * counters are read (G6).
 *
 *     struct control_view view = {.version = "0.1.0", ...};
 *     control_open(&callbacks, &view, &control);     before any other thread: it blocks the signals it takes
 *     control_listen(control, &config->admin, &diag);
 *     ... health_start(), workers ...
 *     control_run(control);                           until control_stop()
 *     control_close(&control);
 */
#ifndef ISOBAR_CONTROL_CONTROL_H
#define ISOBAR_CONTROL_CONTROL_H

#include "api/view.h"
#include "config/model.h"
#include "core/diag.h"
#include "core/err.h"
#include "net/loop.h"

struct control;
struct document;

/* Called on the control thread, one at a time. None may be NULL. */
struct control_callbacks {
    void *owner;                      /* borrows; first argument of each */
    void (*on_reload)(void *owner);   /* SIGHUP */
    void (*on_shutdown)(void *owner); /* SIGTERM or SIGINT; once for each that arrives */
    void (*on_upgrade)(void *owner);  /* SIGUSR2: hand the sockets to a new process */
    void (*on_reopen)(void *owner);   /* SIGUSR1: open the access log again by its name */
};

/* Makes the loop, blocks SIGHUP SIGTERM SIGINT SIGUSR1 SIGUSR2 for the calling thread and those it will
 * start, and ignores SIGPIPE. Copies `callbacks`; borrows `view` until control_close(). Threads: main, before
 * others. */
iso_err control_open(const struct control_callbacks *callbacks, const struct control_view *view,
                     struct control **out) ISO_MUST_USE;

/* Serves the admin pages as `config` says from now on. Tokens and certificates are read anew; the same
 * endpoint stays open, another is bound first and only then the old one closed, so that a failure (diagnosed
 * below
 * "/admin") leaves all as it was. config->listen.text.ptr NULL: no admin listener. Threads: control, or
 * before control_run(). */
iso_err control_listen(struct control *control, const struct config_admin *config,
                       struct iso_diag *diag) ISO_MUST_USE;
/* Where it listens, with the port that the kernel chose: "127.0.0.1:8443"; "" without a listener. */
const char *control_endpoint(const struct control *control);
/* What /v1 shows and changes; NULL: none. Borrowed until control_close(), and so is its view of the version.
 */
void control_set_document(struct control *control, struct document *document);
/* Is it https? */
bool control_is_tls(const struct control *control);

/* Turns until control_stop(). */
void control_run(struct control *control);
/* control_run() returns after this turn. Threads: control; others use loop_post() on control_loop(). */
void control_stop(struct control *control);
/* For timers, descriptors and loop_post() of the owner. */
struct loop *control_loop(struct control *control);
/* Closes the listener and all connections. Threads: the one that ran it. */
void control_close(struct control **control);

#endif
