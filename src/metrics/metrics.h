/* SPDX-License-Identifier: Apache-2.0 */
/* The page at /metrics: counters of observe/counters.def and what metrics.def adds, summed over workers and
 * labelled from the current snapshot, so that a removed object's series are gone with the next scrape
 * (C-142). Every series is there from the first scrape on, with 0. Workers are not disturbed: relaxed loads.
 */
#ifndef ISOBAR_METRICS_METRICS_H
#define ISOBAR_METRICS_METRICS_H

#include "api/view.h"
#include "core/text.h"

/* Threads: control. */
void metrics_write(struct text *text, const struct control_view *view, bool is_openmetrics);

#endif
