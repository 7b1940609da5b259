/* SPDX-License-Identifier: Apache-2.0 */
/* What real requests say of a target (D2): workers note how each attempt ended. Failures in a row are counted
 * over all workers, in words that only a failure and the first success after one write; how many attempts
 * there were is counted per worker and summed by the health thread, which alone decides (outlier.h). A worker
 * takes no lock: it rings when a run has just reached its limit. */
#ifndef ISOBAR_HEALTH_PASSIVE_H
#define ISOBAR_HEALTH_PASSIVE_H

#include "config/model.h"
#include "observe/counters.h"

/* Of one target. Any thread: atomic, relaxed. */
struct passive_runs {
    _Atomic uint32_t errors_5xx;     /* failures of any kind in a row */
    _Atomic uint32_t gateway_errors; /* of those, the ones that say nothing came from the application */
};

/* One worker's part of it. Owner worker only; any thread reads. */
struct passive_worker {
    counter attempts, failures;
};

enum passive_sign {
    PASSIVE_GOOD,    /* an answer below 500 */
    PASSIVE_5XX,     /* the application's own failure */
    PASSIVE_GATEWAY, /* 502, 503, 504, or no usable answer: not connected, reset, late, malformed */
};

static inline enum passive_sign passive_sign_of(unsigned status)
{
    return status < 500 ? PASSIVE_GOOD : status >= 502 && status <= 504 ? PASSIVE_GATEWAY : PASSIVE_5XX;
}

/* Looks before it writes: a line that stays clean is shared by all workers. */
static inline void passive_end_run(_Atomic uint32_t *run)
{
    if (atomic_load_explicit(run, memory_order_relaxed))
        atomic_store_explicit(run, 0, memory_order_relaxed);
}

/* Counts how an attempt ended; true when the health thread should look now. Threads: the owner of `mine`.
 * Source: D2. */
static inline bool passive_note(struct passive_runs *runs, struct passive_worker *mine,
                                const struct config_outlier *limits, enum passive_sign sign)
{
    counter_add(&mine->attempts, 1);
    if (sign == PASSIVE_GOOD) {
        passive_end_run(&runs->errors_5xx);
        passive_end_run(&runs->gateway_errors);
        return false;
    }
    counter_add(&mine->failures, 1);
    uint32_t n_5xx = 1 + atomic_fetch_add_explicit(&runs->errors_5xx, 1, memory_order_relaxed), n_gateway = 0;
    if (sign == PASSIVE_GATEWAY)
        n_gateway = 1 + atomic_fetch_add_explicit(&runs->gateway_errors, 1, memory_order_relaxed);
    else
        passive_end_run(&runs->gateway_errors);
    return n_5xx == limits->consecutive_5xx || (n_gateway && n_gateway == limits->consecutive_gateway_errors);
}

#endif
