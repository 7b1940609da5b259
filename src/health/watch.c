/* SPDX-License-Identifier: Apache-2.0 */
#include "health/watch.h"

#include "core/clock.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>

static void set_settled(struct watch *watch, bool is_settled)
{
    if (is_settled && !watch->is_settled)
        atomic_fetch_sub_explicit(&watch->health->n_unsettled, 1, memory_order_relaxed);
    if (!is_settled && watch->is_settled)
        atomic_fetch_add_explicit(&watch->health->n_unsettled, 1, memory_order_relaxed);
    watch->is_settled = is_settled;
}

static void say(const struct watch *watch, enum target_state from, const struct target_step *step,
                enum health_reason reason)
{
    const struct config_health_check *check = &watch->plan->check;
    bool is_good = step->to == TARGET_ACTIVE || step->to == TARGET_PENDING;
    enum log_level level =
        is_good || step->action == TARGET_ACTION_STOP ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARNING;
    char status[48] = "";
    unsigned http_status = atomic_load_explicit(&watch->status->http_status, memory_order_relaxed);
    if (http_status &&
        (reason == HEALTH_REASON_OK || reason == HEALTH_REASON_STATUS || reason == HEALTH_REASON_BODY))
        snprintf(status, sizeof(status), ", answered %u", http_status);
    else if (watch->outlier.until_ns && step->to == TARGET_UNHEALTHY)
        snprintf(status, sizeof(status), ", ejected for %.3g s",
                 (double)(watch->outlier.until_ns - watch->health->loop.now_ns) / 1e9);
    if (step->action == TARGET_ACTION_REPORT)
        log_line(LOG_LEVEL_WARNING, "target %.*s %.*s stays %s after %u checks: %s%s",
                 SLICE_ARG(watch->group->name), SLICE_ARG(watch->name), target_state_word(from),
                 check->unhealthy_threshold, health_reason_word(reason), status);
    else
        log_line(level, "target %.*s %.*s is %s (was %s): %s%s", SLICE_ARG(watch->group->name),
                 SLICE_ARG(watch->name), target_state_word(step->to), target_state_word(from),
                 health_reason_word(reason), status);
}

static void store_state(struct watch *watch, enum target_state to, enum health_reason reason)
{
    struct health_status *status = watch->status;
    atomic_store_explicit(&status->reason, reason, memory_order_relaxed);
    atomic_store_explicit(&status->changed_wall_ns, clock_wall_ns(), memory_order_relaxed);
    if (to == TARGET_ACTIVE)
        atomic_store_explicit(&status->ramp_from_ns, group_ramp_from(watch), memory_order_relaxed);
    atomic_fetch_add_explicit(&status->transitions, 1, memory_order_relaxed);
    atomic_store_explicit(&status->state, to, memory_order_relaxed);
    if (status->epoch)
        atomic_fetch_add_explicit(status->epoch, 1, memory_order_release);
}

/* Sets off the checks of a target that has none running; a timer, so that a pool's first ones are one turn's
 * work and no event of this turn can meet a new socket. */
static void begin_checks(struct watch *watch)
{
    struct health *health = watch->health;
    judge_begin(&watch->judge);
    watch->is_reported = false;
    atomic_store_explicit(&watch->status->is_warned_of, 0, memory_order_relaxed);
    if (watch_is_checked(watch)) {
        set_settled(watch, !watch_is_decided_by_checks(watch));
        loop_timer_set(&health->loop, &watch->next, health->loop.now_ns);
    }
}

static void end_checks(struct watch *watch)
{
    loop_timer_remove(&watch->health->loop, &watch->next);
    probe_abort(&watch->health->loop, &watch->probe);
    set_settled(watch, true);
}

void watch_step(struct watch *watch, enum target_event event, enum health_reason reason)
{
    enum target_state from = watch_state(watch);
    struct target_step step = target_step(from, event);
    bool is_repeated = step.action == TARGET_ACTION_REPORT && watch->is_reported;
    if (step.action == TARGET_ACTION_IGNORE || is_repeated)
        return;
    say(watch, from, &step, reason);
    if (step.to != from) {
        store_state(watch, step.to, reason);
        judge_forget(&watch->judge);
        if (step.to != TARGET_UNHEALTHY)
            group_end_ejection(watch);
        if (step.to == TARGET_ACTIVE)
            group_forget_requests(watch); /* of before it was out: else it would be ejected for them now */
    }
    switch (step.action) {
    case TARGET_ACTION_IGNORE:
    case TARGET_ACTION_ADMIT:
    case TARGET_ACTION_EXPEL:
        break;
    case TARGET_ACTION_REPORT:
        watch->is_reported = true;
        break;
    case TARGET_ACTION_STOP:
        end_checks(watch);
        break;
    case TARGET_ACTION_RESTART:
        begin_checks(watch);
        break;
    case TARGET_ACTION_COUNT:
        iso_unreachable("not an action");
    }
    group_update(watch->group);
}

static void say_local(struct health *health, const struct watch *watch)
{
    enum { AGAIN_S = 60 };
    uint64_t now_ns = health->loop.now_ns;
    if (health->local_said_ns && now_ns - health->local_said_ns < AGAIN_S * NS_PER_S)
        return;
    health->local_said_ns = now_ns;
    log_error("health checks cannot be made (%.*s %.*s and maybe others): no descriptors, ports or memory; "
              "states stay as they are",
              SLICE_ARG(watch->group->name), SLICE_ARG(watch->name));
}

static void store_result(struct watch *watch, const struct probe_result *result, bool has_passed)
{
    struct health_status *status = watch->status;
    uint64_t us = (result->ended_ns - result->started_ns) / NS_PER_US;
    atomic_store_explicit(&status->last_reason, result->reason, memory_order_relaxed);
    atomic_store_explicit(&status->http_status, result->http_status, memory_order_relaxed);
    atomic_store_explicit(&status->check_us, (uint32_t)us, memory_order_relaxed);
    atomic_store_explicit(&status->checked_wall_ns, clock_wall_ns(), memory_order_relaxed);
    atomic_store_explicit(has_passed ? &status->failures_in_row : &status->passes_in_row, 0,
                          memory_order_relaxed);
    atomic_fetch_add_explicit(has_passed ? &status->passes_in_row : &status->failures_in_row, 1,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&status->checks, 1, memory_order_relaxed);
    if (!has_passed)
        atomic_fetch_add_explicit(&status->failures, 1, memory_order_relaxed);
}

/* A deep check has something to say and nothing to decide. */
static void warn(struct watch *watch, enum target_event event, enum health_reason reason)
{
    bool is_bad = event == TARGET_EVENT_FAIL;
    if (atomic_exchange_explicit(&watch->status->is_warned_of, is_bad, memory_order_relaxed) == is_bad)
        return;
    log_line(is_bad ? LOG_LEVEL_WARNING : LOG_LEVEL_NOTICE,
             "target %.*s %.*s: deep checks %s (%s); it stays %s", SLICE_ARG(watch->group->name),
             SLICE_ARG(watch->name), is_bad ? "fail" : "pass again", health_reason_word(reason),
             target_state_word(watch_state(watch)));
}

static void on_done(struct loop *loop, struct probe *probe, const struct probe_result *result)
{
    struct watch *watch = container_of(probe, struct watch, probe);
    const struct config_health_check *check = &watch->plan->check;
    bool has_passed = result->reason == HEALTH_REASON_OK, from_start;
    if (result->reason == HEALTH_REASON_LOCAL) {
        say_local(watch->health, watch);
    } else {
        enum target_event event;
        store_result(watch, result, has_passed);
        bool is_event = judge_result(&watch->judge, check, has_passed, &event);
        if (!watch_is_decided_by_checks(watch)) {
            if (is_event)
                warn(watch, event, result->reason);
        } else {
            if (!has_passed)
                group_note_failure(watch);
            if (is_event && (event != TARGET_EVENT_PASS || group_may_pass(watch)))
                watch_step(watch, event, result->reason);
        }
    }
    if (!has_passed || watch_state(watch) != TARGET_PENDING)
        set_settled(watch, true);
    uint32_t delay_ms = judge_delay_ms(&watch->judge, check, watch_state(watch), has_passed,
                                       &watch->health->rng, &from_start);
    uint64_t since_ns = from_start ? result->started_ns : result->ended_ns;
    loop_timer_set(loop, &watch->next, since_ns + delay_ms * NS_PER_MS);
}

static void on_next(struct loop *loop, struct loop_timer *timer)
{
    struct watch *watch = container_of(timer, struct watch, next);
    probe_start(loop, &watch->probe, watch->plan);
}

void watch_check_now(struct watch *watch)
{
    struct loop *loop = &watch->health->loop;
    if (watch_is_checked(watch) && !probe_is_running(&watch->probe))
        loop_timer_set(loop, &watch->next, loop->now_ns);
}

static struct slice copy(struct slice s)
{
    char *out = strndup(s.ptr ? s.ptr : "", s.len);
    iso_assert(out != NULL);
    return slice_of(out, s.len);
}

struct watch *watch_new(struct health *health, struct watch_group *group, const struct health_spec *spec)
{
    struct watch *watch = calloc(1, sizeof(*watch));
    iso_assert(watch != NULL);
    *watch = (struct watch){.group = group,
                            .name = copy(spec->name),
                            .plan = probe_plan_new(&spec->addr, spec->check, spec->tls, spec->proxy_protocol),
                            .status = spec->status,
                            .is_enabled = true,
                            .is_settled = true,
                            .health = health};
    probe_init(&watch->probe, &health->bufs, health->tls, on_done);
    watch->probe.http2 = health->http2;
    loop_timer_init(&watch->next, on_next);
    group_init_watch(watch, spec);
    if (watch->status->watcher != health)
        watch->status->watcher = health;
    return watch;
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct watch *watch = container_of(deferred, struct watch, release);
    free((char *)watch->name.ptr);
    probe_plan_free(watch->plan);
    free(watch);
}

void watch_free(struct watch *watch)
{
    end_checks(watch);
    loop_timer_remove(&watch->health->loop, &watch->ejection_end);
    watch->release.release = release;
    loop_defer(&watch->health->loop, &watch->release);
}

void watch_enter(struct watch *watch, const struct health_spec *spec)
{
    if (!spec->enabled) {
        watch_step(watch, TARGET_EVENT_DRAIN, HEALTH_REASON_DISABLED);
        watch->is_enabled = false;
        return;
    }
    if (watch_state(watch) == TARGET_DRAINING)
        watch_step(watch, TARGET_EVENT_ENABLE, HEALTH_REASON_ENABLED);
    else
        begin_checks(watch);
    if (!watch_is_decided_by_checks(watch))
        watch_step(watch, TARGET_EVENT_PASS, HEALTH_REASON_UNCHECKED);
}

/* The same target with new settings, or none: its state is kept, results so far do not count. */
static void change_plan(struct watch *watch, const struct health_spec *spec)
{
    struct probe_plan *plan = probe_plan_new(&spec->addr, spec->check, spec->tls, spec->proxy_protocol);
    if (probe_plan_eq(plan, watch->plan)) {
        probe_plan_free(plan);
        return;
    }
    end_checks(watch);
    probe_plan_free(watch->plan);
    watch->plan = plan;
    if (!watch->is_enabled)
        return;
    begin_checks(watch);
    if (!watch_is_decided_by_checks(watch))
        watch_step(watch, TARGET_EVENT_PASS, HEALTH_REASON_UNCHECKED);
}

void watch_update(struct watch *watch, const struct health_spec *spec)
{
    change_plan(watch, spec);
    if (spec->enabled == watch->is_enabled)
        return;
    watch->is_enabled = spec->enabled;
    if (!spec->enabled) {
        watch_step(watch, TARGET_EVENT_DRAIN, HEALTH_REASON_DISABLED);
        return;
    }
    watch_step(watch, TARGET_EVENT_ENABLE, HEALTH_REASON_ENABLED);
    if (!watch_is_decided_by_checks(watch))
        watch_step(watch, TARGET_EVENT_PASS, HEALTH_REASON_UNCHECKED);
}

void watch_leave(struct watch *watch)
{
    watch_step(watch, TARGET_EVENT_DRAIN, HEALTH_REASON_GONE);
    watch_free(watch);
}
