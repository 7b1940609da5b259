/* SPDX-License-Identifier: Apache-2.0 */
/* The last step of a target: it is watched no more, so whoever knows that its work has ended takes it. */
#include "core/clock.h"
#include "core/log.h"
#include "health/health.h"
#include "health/states.h"

void health_end_drain(struct health_status *status, struct slice group, struct slice name,
                      enum health_reason reason)
{
    enum target_state from = atomic_load_explicit(&status->state, memory_order_relaxed);
    struct target_step step = target_step(from, TARGET_EVENT_EMPTY);
    if (step.to == from)
        return;
    atomic_store_explicit(&status->reason, reason, memory_order_relaxed);
    atomic_store_explicit(&status->changed_wall_ns, clock_wall_ns(), memory_order_relaxed);
    atomic_fetch_add_explicit(&status->transitions, 1, memory_order_relaxed);
    atomic_store_explicit(&status->state, step.to, memory_order_relaxed);
    log_notice("target %.*s %.*s is %s (was %s): %s", SLICE_ARG(group), SLICE_ARG(name),
               target_state_word(step.to), target_state_word(from), health_reason_word(reason));
}
