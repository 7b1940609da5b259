/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/recorder.h"

#include "core/clock.h"

#include <stdio.h>
#include <stdlib.h>

struct recorder {
    struct loop *loop;         /* borrows */
    struct control_view *view; /* borrows */
    struct history *history;   /* owns */
    struct loop_timer timer;
};

static void add_target(const struct backend *target, struct history_totals *totals)
{
    for (uint32_t w = 0; w < target->n_workers; w++) {
        const struct target_counters *c = &target->workers[w].counters;
        uint64_t unanswered = counter_read(&c->connect_errors) + counter_read(&c->connect_timeouts) +
                              counter_read(&c->tls_errors) + counter_read(&c->resets) +
                              counter_read(&c->response_timeouts) + counter_read(&c->bad_responses);
        uint64_t failed = counter_read(&c->requests_5xx);
        totals->requests += counter_read(&c->requests_1xx) + counter_read(&c->requests_2xx) +
                            counter_read(&c->requests_3xx) + counter_read(&c->requests_4xx) + failed +
                            unanswered;
        totals->errors += failed + unanswered;
        totals->latency_us += counter_read(&c->latency.sum_us);
    }
    totals->active += atomic_load_explicit(&((struct backend *)target)->in_flight, memory_order_relaxed);
}

void recorder_target_totals(const struct backend *target, struct history_totals *totals)
{
    *totals = (struct history_totals){0};
    add_target(target, totals);
}

void recorder_group_totals(const struct snap_group *group, struct history_totals *totals)
{
    *totals = (struct history_totals){0};
    for (uint32_t i = 0; i < group->n_targets; i++)
        add_target(group->targets[i], totals);
}

struct slice recorder_name(const struct snap_group *group, const struct backend *target,
                           char out[RECORDER_NAME_MAX])
{
    int n = snprintf(out, RECORDER_NAME_MAX, "%s %.*s", target ? target->name : "",
                     SLICE_ARG(group->config->name));
    /* The endpoint goes first: when names are longer than are kept, targets still differ. */
    return slice_of(out, n < RECORDER_NAME_MAX ? (size_t)n : RECORDER_NAME_MAX - 1);
}

static void record(struct recorder *recorder)
{
    const struct snapshot *snapshot = recorder->view->snapshot;
    struct history_totals totals;
    char name[RECORDER_NAME_MAX];
    history_begin(recorder->history, clock_mono_ns() / NS_PER_MS, clock_wall_ns() / NS_PER_MS);
    for (uint32_t g = 0; snapshot && g < snapshot->n_groups; g++) {
        recorder_group_totals(&snapshot->groups[g], &totals);
        history_feed(recorder->history, recorder_name(&snapshot->groups[g], NULL, name), &totals);
    }
    for (uint32_t g = 0; snapshot && g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        for (uint32_t t = 0; t < group->n_targets; t++) {
            recorder_target_totals(group->targets[t], &totals);
            history_feed(recorder->history, recorder_name(group, group->targets[t], name), &totals);
        }
    }
    history_end(recorder->history);
}

static void on_step(struct loop *loop, struct loop_timer *timer)
{
    record(container_of(timer, struct recorder, timer));
    loop_timer_set(loop, timer, loop->now_ns + HISTORY_STEP_S * NS_PER_S);
}

struct recorder *recorder_start(struct loop *loop, struct control_view *view)
{
    struct recorder *recorder = calloc(1, sizeof(*recorder));
    iso_assert(recorder != NULL);
    *recorder = (struct recorder){.loop = loop, .view = view, .history = history_new()};
    loop_timer_init(&recorder->timer, on_step);
    view->history = recorder->history;
    record(recorder);
    loop_timer_set(loop, &recorder->timer, clock_mono_ns() + HISTORY_STEP_S * NS_PER_S);
    return recorder;
}

void recorder_stop(struct recorder **taken)
{
    struct recorder *recorder = *taken;
    *taken = NULL;
    if (!recorder)
        return;
    loop_timer_remove(recorder->loop, &recorder->timer);
    recorder->view->history = NULL;
    history_free(&recorder->history);
    free(recorder);
}
