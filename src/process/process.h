/* SPDX-License-Identifier: Apache-2.0 */
/* The running balancer: what `isobar serve` and `isobar proxy` have in common. Owns the control thread's
 * objects (registry, snapshots, access logs), starts the workers and the health thread, applies reloads, and
 * ends all of it in order. */
#ifndef ISOBAR_PROCESS_PROCESS_H
#define ISOBAR_PROCESS_PROCESS_H

#include "config/load.h"

/* Loads the configuration: at the start, and again on SIGHUP. NULL `reload_name`: SIGHUP changes nothing. */
typedef iso_err process_load_fn(void *source, struct config_source *out, struct iso_diag *diag);

struct process_source {
    process_load_fn *load;
    void *source;     /* borrows */
    const char *name; /* for messages: the file, or "the command line" */
    bool can_reload;
};

/* Runs until SIGTERM or SIGINT; the exit status. Threads: main. */
int process_run(const struct process_source *source);

/* Writes every fault as `file:line:column: path: message` to the log. */
void process_log_diag(const struct iso_diag *diag);

#endif
