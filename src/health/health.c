/* SPDX-License-Identifier: Apache-2.0 */
#include "health/health.h"

#include "core/clock.h"
#include "core/log.h"
#include "health/watch.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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

static struct watch *watch_new(struct health *health, struct watch_group *group,
                               const struct health_spec *spec)
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

/* Memory goes at the end of the turn: an event for the probe's socket may be in this one. */
static void watch_free(struct watch *watch)
{
    end_checks(watch);
    loop_timer_remove(&watch->health->loop, &watch->ejection_end);
    watch->release.release = release;
    loop_defer(&watch->health->loop, &watch->release);
}

/* Brings a target that is new in the set, whatever its status went through before, to where it belongs. */
static void enter(struct watch *watch, const struct health_spec *spec)
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

static void update(struct watch *watch, const struct health_spec *spec)
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

static void leave(struct watch *watch)
{
    watch_step(watch, TARGET_EVENT_DRAIN, HEALTH_REASON_GONE);
    watch_free(watch);
}

static int identity_compare(struct slice group_a, struct slice name_a, struct slice group_b,
                            struct slice name_b)
{
    int order = slice_compare(group_a, group_b);
    return order ? order : slice_compare(name_a, name_b);
}

static int spec_compare(const void *a, const void *b)
{
    const struct health_spec *x = *(const struct health_spec *const *)a,
                             *y = *(const struct health_spec *const *)b;
    return identity_compare(x->group, x->name, y->group, y->name);
}

struct apply {
    struct loop_call call;
    struct health *health;
    const struct health_spec *specs;
    uint32_t n;
    const struct slice *groups; /* [n_groups]: all others stay; NULL: these are all there are */
    uint32_t n_groups;
    sem_t done;
};

static int name_compare(const void *a, const void *b)
{
    return slice_compare(**(const struct slice *const *)a, **(const struct slice *const *)b);
}

/* A new set in the making; both sides are sorted by group and name. */
struct merge {
    struct health *health;
    const struct health_spec **specs;
    uint32_t n_specs, spec;     /* how many, the next one */
    uint32_t old_group, old;    /* of health->groups and health->watches: the next one */
    const struct slice **names; /* of the groups that change; NULL: all do */
    uint32_t n_names;
    struct watch_group **groups;
    uint32_t n_groups;
    struct watch **watches;
    uint32_t n_watches;
};

static bool stays(const struct merge *merge, const struct watch_group *group)
{
    const struct slice *name = &group->name;
    return merge->names && !bsearch(&name, merge->names, merge->n_names, sizeof(*merge->names), name_compare);
}

/* The group's watches as they are, to another place. */
static void move_group(struct merge *merge, struct watch_group *group)
{
    memcpy(merge->watches + merge->n_watches, merge->health->watches + merge->old,
           group->n * sizeof(*merge->watches));
    group->watches = merge->watches + merge->n_watches;
    merge->old += group->n;
    merge->n_watches += group->n;
    merge->groups[merge->n_groups++] = group;
}

static void end_group(struct merge *merge, struct watch_group *group)
{
    uint32_t end = merge->old + group->n;
    group->n = 0;
    while (merge->old < end)
        leave(merge->health->watches[merge->old++]);
    group_free(group);
}

/* Walks the old targets of a group and its new ones side by side. `group`: NULL, a new one. */
static void merge_group(struct merge *merge, struct watch_group *group)
{
    struct health *health = merge->health;
    const struct health_spec *first = merge->specs[merge->spec];
    uint32_t end = merge->old + (group ? group->n : 0), from = merge->n_watches;
    if (!group)
        group = group_new(health, first->group);
    group->n = 0;
    group_set(group, first);
    for (; merge->spec < merge->n_specs && slice_eq(merge->specs[merge->spec]->group, first->group);
         merge->spec++) {
        const struct health_spec *spec = merge->specs[merge->spec];
        int order = -1;
        while (merge->old < end && (order = slice_compare(health->watches[merge->old]->name, spec->name)) < 0)
            leave(health->watches[merge->old++]);
        /* With another status it is another target: the old one ended in between. */
        bool is_same = merge->old < end && order == 0 && health->watches[merge->old]->status == spec->status;
        struct watch *watch = is_same ? health->watches[merge->old++] : watch_new(health, group, spec);
        merge->watches[merge->n_watches++] = watch;
        group_set_watch(watch, spec);
        if (is_same)
            update(watch, spec);
        else
            enter(watch, spec);
    }
    while (merge->old < end)
        leave(health->watches[merge->old++]);
    merge->groups[merge->n_groups++] = group;
    group_fill(group, merge->watches + from, merge->n_watches - from);
}

static void merge_all(struct merge *merge)
{
    struct health *health = merge->health;
    while (merge->old_group < health->n_groups || merge->spec < merge->n_specs) {
        struct watch_group *old =
            merge->old_group < health->n_groups ? health->groups[merge->old_group] : NULL;
        int order = !old ? 1
                    : merge->spec == merge->n_specs
                        ? -1
                        : slice_compare(old->name, merge->specs[merge->spec]->group);
        merge->old_group += order <= 0;
        if (order < 0 && stays(merge, old))
            move_group(merge, old);
        else if (order < 0)
            end_group(merge, old);
        else
            merge_group(merge, order == 0 ? old : NULL);
    }
}

static void apply(struct loop *loop, void *arg)
{
    struct apply *apply = arg;
    struct health *health = apply->health;
    struct merge merge = {.health = health,
                          .specs = calloc(apply->n + 1, sizeof(struct health_spec *)),
                          .n_specs = apply->n,
                          .names = apply->groups ? calloc(apply->n_groups + 1, sizeof(struct slice *)) : NULL,
                          .n_names = apply->n_groups,
                          .groups = calloc(health->n_groups + apply->n + 1, sizeof(struct watch_group *)),
                          .watches = calloc(health->n_watches + apply->n + 1, sizeof(struct watch *))};
    iso_assert(merge.specs && merge.groups && merge.watches && (merge.names || !apply->groups));
    for (uint32_t i = 0; i < apply->n; i++)
        merge.specs[i] = &apply->specs[i];
    qsort(merge.specs, apply->n, sizeof(struct health_spec *), spec_compare);
    for (uint32_t i = 0; apply->groups && i < apply->n_groups; i++)
        merge.names[i] = &apply->groups[i];
    if (merge.names)
        qsort(merge.names, apply->n_groups, sizeof(struct slice *), name_compare);
    merge_all(&merge);
    free(merge.specs);
    free(merge.names);
    free(health->watches);
    free(health->groups);
    health->watches = merge.watches;
    health->n_watches = merge.n_watches;
    health->groups = merge.groups;
    health->n_groups = merge.n_groups;
    sem_post(&apply->done);
}

static void on_rung(struct loop *loop, void *arg)
{
    struct health *health = arg;
    atomic_exchange_explicit(&health->is_rung, false, memory_order_acq_rel);
    for (uint32_t g = 0; g < health->n_groups; g++)
        group_judge(health->groups[g]);
    for (uint32_t i = 0; i < health->n_watches; i++)
        if (atomic_exchange_explicit(&health->watches[i]->status->is_suspect, 0, memory_order_relaxed))
            watch_check_now(health->watches[i]);
}

void health_ring(struct health *health)
{
    if (!atomic_exchange_explicit(&health->is_rung, true, memory_order_acq_rel))
        loop_post(&health->loop, &health->ring_call);
}

void health_suspect(void *arg)
{
    struct health_status *status = arg;
    atomic_store_explicit(&status->is_suspect, 1, memory_order_relaxed);
    if (status->watcher)
        health_ring(status->watcher);
}

static void stop(struct loop *loop, void *arg)
{
    loop_stop(loop);
}

static void *run(void *arg)
{
    struct health *health = arg;
    pthread_setname_np(pthread_self(), "isobar-health");
    loop_run(&health->loop);
    for (uint32_t i = 0; i < health->n_watches; i++)
        watch_free(health->watches[i]);
    for (uint32_t g = 0; g < health->n_groups; g++)
        group_free(health->groups[g]);
    free(health->watches);
    free(health->groups);
    tls_thread_free(health->tls);
    http2_client_thread_free(health->http2);
    loop_fini(&health->loop);
    buf_pool_fini(&health->bufs);
    return NULL;
}

iso_err health_start(struct health **out)
{
    struct health *health = calloc(1, sizeof(*health));
    iso_assert(health != NULL);
    rng_init(&health->rng, clock_mono_ns());
    health->ring_call = (struct loop_call){.fn = on_rung, .arg = health};
    if (loop_init(&health->loop)) {
        free(health);
        return ISO_ERR_SYSTEM;
    }
    buf_pool_init(&health->bufs);
    health->tls = tls_thread_new(&health->loop, &health->bufs);
    health->http2 = http2_client_thread_new(&health->bufs);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread takes no signal */
    int failed = pthread_create(&health->thread, NULL, run, health);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        log_error("cannot start the health thread: %s", strerror(failed));
        tls_thread_free(health->tls);
        http2_client_thread_free(health->http2);
        loop_fini(&health->loop);
        buf_pool_fini(&health->bufs);
        free(health);
        return ISO_ERR_SYSTEM;
    }
    *out = health;
    return ISO_OK;
}

static void call_apply(struct health *health, struct apply *call)
{
    call->call = (struct loop_call){.fn = apply, .arg = call};
    call->health = health;
    sem_init(&call->done, 0, 0);
    loop_post(&health->loop, &call->call);
    while (sem_wait(&call->done) < 0 && errno == EINTR)
        continue;
    sem_destroy(&call->done);
}

void health_apply(struct health *health, const struct health_spec *specs, uint32_t n)
{
    call_apply(health, &(struct apply){.specs = specs, .n = n});
}

void health_apply_groups(struct health *health, const struct slice *groups, uint32_t n_groups,
                         const struct health_spec *specs, uint32_t n)
{
    call_apply(health, &(struct apply){.specs = specs, .n = n, .groups = groups, .n_groups = n_groups});
}

bool health_settle(struct health *health, uint32_t timeout_ms)
{
    const struct timespec pause = {0, 2 * (long)NS_PER_MS};
    uint64_t until_ns = clock_mono_ns() + timeout_ms * NS_PER_MS;
    while (atomic_load_explicit(&health->n_unsettled, memory_order_relaxed)) {
        if (clock_mono_ns() >= until_ns)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

void health_stop(struct health **health)
{
    if (!*health)
        return;
    struct loop_call call = {.fn = stop};
    loop_post(&(*health)->loop, &call);
    pthread_join((*health)->thread, NULL);
    free(*health);
    *health = NULL;
}

const char *health_reason_word(enum health_reason reason)
{
    static const char *const words[] = {
#define HEALTH_REASON(id, kind, word, text) [HEALTH_REASON_##id] = word,
#include "health/reasons.def"
#undef HEALTH_REASON
    };
    iso_assert(reason < HEALTH_REASON_COUNT);
    return words[reason];
}
