/* SPDX-License-Identifier: Apache-2.0 */
/* Counters are fed as the control thread would, one call a step of ten seconds. */
#include "observe/history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

enum { STEP_MS = HISTORY_STEP_S * 1000, WALL_MS = 1000000 };

static struct history *history;

static int begin(void **state)
{
    history = history_new();
    return 0;
}

static int end(void **state)
{
    history_free(&history);
    return 0;
}

/* The counters of "a" at the end of step `n`, from 0. */
static void feed(uint32_t n, uint64_t requests, uint64_t errors, uint64_t latency_us)
{
    struct history_totals totals = {requests, errors, latency_us, n};
    history_begin(history, (uint64_t)n * STEP_MS, WALL_MS + (uint64_t)n * STEP_MS);
    history_feed(history, SLICE("a"), &totals);
    history_end(history);
}

static void a_step_holds_what_was_added_to_the_counters_G4(void **state)
{
    feed(0, 1000, 10, 5000);
    const struct history_series *series = history_find(history, SLICE("a"));
    assert_non_null(series);
    assert_int_equal(history_steps(series), 0);
    feed(1, 1100, 12, 205000);
    assert_int_equal(history_steps(series), 1);
    struct history_point point = history_step(history, series, 0);
    assert_int_equal(point.requests, 100);
    assert_int_equal(point.errors, 2);
    assert_int_equal(point.active, 1);
    assert_int_equal(point.span_ms, STEP_MS);
    assert_int_equal(point.end_wall_ms, WALL_MS + STEP_MS);
    assert_true(point.latency_ms > 1.99f && point.latency_ms < 2.01f);
}

static void an_hour_is_kept_and_no_more(void **state)
{
    for (uint32_t n = 0; n < HISTORY_STEPS + 50; n++)
        feed(n, (uint64_t)n * n, 0, 0);
    const struct history_series *series = history_find(history, SLICE("a"));
    assert_int_equal(history_steps(series), HISTORY_STEPS);
    for (uint32_t i = 0; i < HISTORY_STEPS; i++) {
        uint32_t n = i + 50;
        struct history_point point = history_step(history, series, i);
        assert_int_equal(point.requests, 2 * n - 1);
        assert_int_equal(point.end_wall_ms, WALL_MS + (uint64_t)n * STEP_MS);
    }
}

static void a_series_that_is_not_fed_is_gone_C_142(void **state)
{
    struct history_totals totals = {0};
    feed(0, 0, 0, 0);
    history_begin(history, STEP_MS, WALL_MS);
    history_feed(history, SLICE("b"), &totals);
    history_end(history);
    assert_null(history_find(history, SLICE("a")));
    assert_non_null(history_find(history, SLICE("b")));
    assert_int_equal(history_count(history), 1);
}

static void one_that_comes_back_begins_anew(void **state)
{
    feed(0, 500, 0, 0);
    history_begin(history, STEP_MS, WALL_MS);
    history_end(history);
    feed(2, 700, 0, 0);
    assert_int_equal(history_steps(history_find(history, SLICE("a"))), 0);
    feed(3, 710, 0, 0);
    assert_int_equal(history_step(history, history_find(history, SLICE("a")), 0).requests, 10);
}

static void counters_that_fell_count_as_nothing(void **state)
{
    feed(0, 500, 5, 100);
    feed(1, 20, 0, 0);
    struct history_point point = history_step(history, history_find(history, SLICE("a")), 0);
    assert_int_equal(point.requests, 0);
    assert_int_equal(point.errors, 0);
}

static void the_recent_rate_reaches_back_one_to_two_steps(void **state)
{
    feed(0, 0, 0, 0);
    struct history_totals now = {30, 3, 60000, 7};
    const struct history_series *series = history_find(history, SLICE("a"));
    struct history_point recent = history_recent(history, series, &now, 2000);
    assert_int_equal(recent.requests, 30);
    assert_int_equal(recent.span_ms, 2000);
    feed(1, 30, 3, 60000);
    feed(2, 50, 3, 60000);
    now.requests = 60;
    recent = history_recent(history, series, &now, 2 * STEP_MS + 500);
    assert_int_equal(recent.requests, 30);
    assert_int_equal(recent.errors, 0);
    assert_int_equal(recent.span_ms, STEP_MS + 500);
    assert_int_equal(recent.active, 7);
}

static void feed_many(uint32_t from, uint32_t to, uint32_t step)
{
    struct history_totals totals = {0};
    char name[32];
    history_begin(history, (uint64_t)step * STEP_MS, WALL_MS);
    for (uint32_t i = from; i < to; i++) {
        snprintf(name, sizeof(name), "web 10.0.%u.%u:80", i / 256, i % 256);
        history_feed(history, slice_str(name), &totals);
    }
    history_end(history);
}

static void there_are_never_more_series_than_the_limit(void **state)
{
    feed_many(0, HISTORY_SERIES_MAX + 500, 0);
    assert_int_equal(history_count(history), HISTORY_SERIES_MAX);
    assert_non_null(history_find(history, SLICE("web 10.0.0.0:80")));
    /* Half go, others come: all that were fed are found, all others are not. */
    for (uint32_t step = 1; step < 5; step++) {
        uint32_t from = step * 1000;
        feed_many(from, from + 2000, step);
        feed_many(from, from + 2000, step);
        assert_int_equal(history_count(history), 2000);
        for (uint32_t i = from; i < from + 2000; i++) {
            char name[32];
            snprintf(name, sizeof(name), "web 10.0.%u.%u:80", i / 256, i % 256);
            assert_non_null(history_find(history, slice_str(name)));
        }
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(a_step_holds_what_was_added_to_the_counters_G4),
        test(an_hour_is_kept_and_no_more),
        test(a_series_that_is_not_fed_is_gone_C_142),
        test(one_that_comes_back_begins_anew),
        test(counters_that_fell_count_as_nothing),
        test(the_recent_rate_reaches_back_one_to_two_steps),
        test(there_are_never_more_series_than_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
