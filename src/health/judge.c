/* SPDX-License-Identifier: Apache-2.0 */
#include "health/judge.h"

void judge_forget(struct judge *judge)
{
    judge->passes = judge->failures = 0;
}

void judge_begin(struct judge *judge)
{
    *judge = (struct judge){.quick_ms = JUDGE_QUICK_MS};
}

bool judge_result(struct judge *judge, const struct config_health_check *check, bool has_passed,
                  enum target_event *event)
{
    uint32_t *run = has_passed ? &judge->passes : &judge->failures;
    uint32_t *other = has_passed ? &judge->failures : &judge->passes;
    uint32_t threshold = has_passed ? check->healthy_threshold : check->unhealthy_threshold;
    *other = 0;
    if (*run < UINT32_MAX)
        ++*run;
    if (*run < threshold)
        return false;
    *event = has_passed ? TARGET_EVENT_PASS : TARGET_EVENT_FAIL;
    return true;
}

uint32_t judge_delay_ms(struct judge *judge, const struct config_health_check *check, enum target_state state,
                        bool has_passed, struct rng *rng, bool *from_start)
{
    bool is_down = state != TARGET_ACTIVE && check->down_interval_ms;
    uint32_t interval_ms = is_down ? check->down_interval_ms : check->interval_ms;
    bool was_quick = judge->quick_ms != 0;
    *from_start = !was_quick;
    if (was_quick && state == TARGET_PENDING) {
        uint32_t delay_ms = has_passed ? JUDGE_QUICK_MS : judge->quick_ms;
        if (!has_passed)
            judge->quick_ms *= 2;
        if (delay_ms < interval_ms)
            return delay_ms;
    }
    judge->quick_ms = 0;
    /* Targets that came together leave their quick start together: anywhere in the interval from here. */
    if (was_quick)
        return 1 + rng_below(rng, interval_ms);
    uint32_t spread_ms = interval_ms / 10;
    return interval_ms - spread_ms + rng_below(rng, 2 * spread_ms + 1);
}
