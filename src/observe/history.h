/* SPDX-License-Identifier: Apache-2.0 */
/* The last hour in steps of ten seconds: named series of requests, errors, latency and load, fed with
 * counters that only grow (G4). Memory is bounded: a series takes HISTORY_SERIES_BYTES whatever happens,
 * there are at most HISTORY_SERIES_MAX, and one that was not fed in a step is gone with it, so what left the
 * configuration disappears (case C-142).
 *
 *     history_begin(history, now_ms);
 *     history_feed(history, name, &totals);      for each; the important ones first: when all series are
 * taken history_end(history);                      the others are not kept
 *
 * Threads: the owner's. */
#ifndef ISOBAR_OBSERVE_HISTORY_H
#define ISOBAR_OBSERVE_HISTORY_H

#include "core/slice.h"

struct history;
struct history_series;

enum {
    HISTORY_STEP_S = 10,
    HISTORY_STEPS = 360,
    HISTORY_SERIES_MAX = 4096,
    HISTORY_SERIES_BYTES = HISTORY_STEPS * 16 + 256, /* with its name, up to 150 bytes of it */
};

/* Counters as they stand, and the gauge of now. */
struct history_totals {
    uint64_t requests, errors, latency_us;
    uint32_t active;
};

/* One step: what happened in `span_ms` that ended at `end_wall_ms`. */
struct history_point {
    uint64_t end_wall_ms;
    uint32_t span_ms;
    uint32_t requests, errors, active;
    float latency_ms; /* mean over the step's requests; 0: there were none */
};

struct history *history_new(void);
void history_free(struct history **history);

/* Units: `mono_ms` orders and measures, `wall_ms` is what people see. */
void history_begin(struct history *history, uint64_t mono_ms, uint64_t wall_ms);
void history_feed(struct history *history, struct slice name, const struct history_totals *totals);
void history_end(struct history *history);

/* NULL when there is none of this name. Borrowed until the next history_begin(). */
const struct history_series *history_find(const struct history *history, struct slice name);
uint32_t history_count(const struct history *history);
/* Complete steps of a series, oldest first: at most HISTORY_STEPS. */
uint32_t history_steps(const struct history_series *series);
struct history_point history_step(const struct history *history, const struct history_series *series,
                                  uint32_t i);
/* What happened since the beginning of the step before the running one (10 to 20 s), or since the series
 * began when that is later: a rate that is both fresh and steady. `now` are the totals of this moment. */
struct history_point history_recent(const struct history *history, const struct history_series *series,
                                    const struct history_totals *now, uint64_t mono_ms);

#endif
