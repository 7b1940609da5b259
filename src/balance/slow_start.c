/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/slow_start.h"
#include "balance/method.h"
#include "core/check.h"

/* A target with less than this would see too little to warm up on. */
enum { LEAST = BALANCE_RAMP_FULL / 100 };

uint16_t slow_start_ramp(enum slow_start_shape shape, uint64_t age_ms, uint64_t ramp_ms)
{
    if (age_ms >= ramp_ms)
        return BALANCE_RAMP_FULL;
    switch (shape) {
    case SLOW_START_LINEAR: {
        uint64_t part = (uint64_t)((unsigned __int128)age_ms * BALANCE_RAMP_FULL / ramp_ms);
        return (uint16_t)(part > LEAST ? part : LEAST);
    }
    case SLOW_START_STEPPED:
        return age_ms < ramp_ms / 2 ? BALANCE_RAMP_FULL / 10 : BALANCE_RAMP_FULL / 2;
    }
    iso_unreachable("a shape that does not exist");
}
