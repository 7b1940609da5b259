/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from the result of a check: when it becomes an event for the state machine (thresholds, so
 * that a target that fails now and then does not flap), and when to check next. Pure: no clock, no socket. */
#ifndef ISOBAR_HEALTH_JUDGE_H
#define ISOBAR_HEALTH_JUDGE_H

#include "config/model.h"
#include "core/random.h"
#include "health/states.h"

/* Between the first checks of a new target; doubled after each failure until it reaches the interval. Two
 * ticks of the loop: a good target is ACTIVE after (healthy_threshold - 1) of them. */
enum { JUDGE_QUICK_MS = 32 };

struct judge {
    uint32_t passes, failures; /* in a row */
    uint32_t quick_ms;         /* 0: the target has left its quick start */
};

/* Begins with a quick start. */
void judge_begin(struct judge *judge);
/* Forgets the results so far: after a change of state, whatever caused it, the thresholds count from 0. */
void judge_forget(struct judge *judge);
/* Counts a result; true when it makes an event: with each result from the threshold on, so that nothing can
 * be stuck. Source: C-095. */
bool judge_result(struct judge *judge, const struct config_health_check *check, bool has_passed,
                  enum target_event *event);
/* How long to wait before the next check of a target that is in `state` after the result. `*from_start`:
 * since the last check began; else since it ended. Every delay but the quick ones has some chance in it, so
 * that the checks of a pool spread over the interval and stay spread. */
uint32_t judge_delay_ms(struct judge *judge, const struct config_health_check *check, enum target_state state,
                        bool has_passed, struct rng *rng, bool *from_start);

#endif
