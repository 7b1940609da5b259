/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from passive checks: when a target is an outlier, for how long it is ejected (longer each
 * time, shorter again after good behaviour), and how many of a group may be out at once. Pure: no clock, no
 * atomics. Source: D2, D4. */
#ifndef ISOBAR_HEALTH_OUTLIER_H
#define ISOBAR_HEALTH_OUTLIER_H

#include "config/model.h"
#include "health/status.h"

enum { OUTLIER_SLOTS = 10 }; /* of the sliding window */

/* A target's attempts: sums since it exists, and the runs of failures. */
struct outlier_sums {
    uint64_t attempts, failures;
    uint32_t run_5xx, run_gateway;
};

struct outlier {
    uint32_t level;    /* ejections that are not forgiven yet */
    uint64_t until_ns; /* ejected until then; 0: not ejected */
    uint64_t back_ns;  /* when the last ejection ended */
    struct {
        uint64_t attempts, failures;
    } past[OUTLIER_SLOTS]; /* sums at the slots' beginnings */
    uint32_t oldest;
};

/* The window begins anew: what happened before does not count. */
void outlier_forget(struct outlier *outlier, const struct outlier_sums *sums);
/* A slot (a tenth of window_s) is over. */
void outlier_slide(struct outlier *outlier, const struct outlier_sums *sums);
/* Why the target should be ejected; HEALTH_REASON_NONE: it should not. */
enum health_reason outlier_cause(const struct outlier *outlier, const struct config_outlier *limits,
                                 const struct outlier_sums *sums);

/* Ejects until outlier->until_ns: base_ejection times the ejections that are not forgiven. One is forgiven
 * for each base_ejection that the target was in without being ejected. */
void outlier_eject(struct outlier *outlier, const struct config_outlier *limits, uint64_t now_ns);
void outlier_return(struct outlier *outlier, uint64_t now_ns);

/* How many of `n` targets may be ejected at once: the percentage rounded down, at least one. Source: D4;
 * case C-114. */
uint32_t outlier_cap(const struct config_outlier *limits, uint32_t n);

#endif
