/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's thread, from its start to its end, and what the control thread tells it: a snapshot to serve, to
 * wind down, to stop. All of that goes through the worker's mailbox. */
#ifndef ISOBAR_SERVE_THREAD_H
#define ISOBAR_SERVE_THREAD_H

#include "worker/worker.h"

/* Makes the worker and starts its thread, which serves nothing until a snapshot is published. Threads:
 * control. */
iso_err worker_start(struct worker **out, uint32_t index) ISO_MUST_USE;

/* Hands the worker a snapshot to serve from now on (the caller keeps its own reference). Returns at once;
 * worker_version() tells when it is in force. Threads: control. */
void worker_publish(struct worker *worker, struct snapshot *snapshot);
/* The version that this worker serves. Threads: any. */
uint64_t worker_version(const struct worker *worker);

/* From now on every answer ends its connection (Connection: close), so that clients go elsewhere without
 * being cut (E3); with `stop_accepting` no new ones are taken either. Returns at once. Threads: control,
 * once. */
void worker_wind_down(struct worker *worker, bool stop_accepting);
/* Asks the worker to end: no new connections, idle ones close, exchanges have `within_ms` to finish, the rest
 * is cut. Returns at once. Threads: control. */
void worker_stop(struct worker *worker, uint32_t within_ms);
/* Has the thread done its work? Threads: any. */
bool worker_has_ended(const struct worker *worker);
/* Waits for the thread and frees the worker. Threads: control. */
void worker_join(struct worker **worker);

#endif
