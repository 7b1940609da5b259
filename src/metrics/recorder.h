/* SPDX-License-Identifier: Apache-2.0 */
/* Takes down every ten seconds what each target group and target did, for the last hour that /api/metrics
 * shows (G4). Workers are not asked, their counters are read. Threads: control. */
#ifndef ISOBAR_METRICS_RECORDER_H
#define ISOBAR_METRICS_RECORDER_H

#include "api/view.h"
#include "observe/history.h"

struct recorder;

/* Sets view->history and keeps it current with the snapshot in the view; borrows both until it is stopped. */
struct recorder *recorder_start(struct loop *loop, struct control_view *view);
void recorder_stop(struct recorder **recorder);

/* What the target or the group has done so far. Requests are answers and attempts that got none; of these,
 * 5xx and the unanswered are errors. Latency is up to the head of the answer. */
void recorder_target_totals(const struct backend *target, struct history_totals *totals);
void recorder_group_totals(const struct snap_group *group, struct history_totals *totals);

enum { RECORDER_NAME_MAX = 512 };
/* The series of a target (or of its group, when target is NULL), in `out`. */
struct slice recorder_name(const struct snap_group *group, const struct backend *target,
                           char out[RECORDER_NAME_MAX]);

#endif
