/* SPDX-License-Identifier: Apache-2.0 */
/* What a target that was removed or disabled still does (E1, E2): no new work goes there, requests and
 * tunnels under way have deregistration_delay_s. A WebSocket tunnel that is still there a second before the
 * deadline is told so with close frames; at the deadline what is left is cut and counted. Idle connections to
 * it end at once (thread.c). */
#ifndef ISOBAR_SERVE_DRAIN_H
#define ISOBAR_SERVE_DRAIN_H

#include "worker/worker.h"

void drain_init(struct worker *worker);
/* A snapshot was adopted: exchanges on targets that it does not serve get a deadline. */
void drain_begin(struct worker *worker);
/* Every tunnel gets a deadline: the worker ends. */
void drain_tunnels(struct worker *worker, uint64_t due_ns);

#endif
