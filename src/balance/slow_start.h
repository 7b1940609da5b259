/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a target that is new or came back gets its full weight. Source: B7; case C-100. */
#ifndef ISOBAR_BALANCE_SLOW_START_H
#define ISOBAR_BALANCE_SLOW_START_H

#include <stdint.h>

enum slow_start_shape {
    SLOW_START_LINEAR,  /* in proportion to the age */
    SLOW_START_STEPPED, /* 10% for the first half, 50% for the second */
};

/* The part of its weight that a target in its `age_ms`-th millisecond has in force, for balance_pick.ramp:
 * never 0, so that a pool of newcomers refuses nobody, BALANCE_RAMP_FULL from `ramp_ms` on, and never falling
 * with age. */
uint16_t slow_start_ramp(enum slow_start_shape shape, uint64_t age_ms, uint64_t ramp_ms);

#endif
