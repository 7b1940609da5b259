/* SPDX-License-Identifier: Apache-2.0 */
#include "health/outlier.h"

#include "core/clock.h"
#include "health/passive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct config_outlier limits = {.consecutive_5xx = 5,
                                             .consecutive_gateway_errors = 3,
                                             .error_rate_pct = 50,
                                             .min_requests = 100,
                                             .window_ms = 10000,
                                             .base_ejection_ms = 30000,
                                             .max_ejection_ms = 100000,
                                             .max_ejection_pct = 10};

/* Notes a row of answers ('+' good, '5' 500, 'g' gateway) by turns on `n_workers`; how often it rang. */
static unsigned note(struct passive_runs *runs, struct passive_worker *workers, unsigned n_workers,
                     const char *answers)
{
    unsigned rings = 0;
    for (size_t i = 0; answers[i]; i++)
        rings += passive_note(runs, &workers[i % n_workers], &limits,
                              answers[i] == '+'   ? PASSIVE_GOOD
                              : answers[i] == 'g' ? PASSIVE_GATEWAY
                                                  : PASSIVE_5XX);
    return rings;
}

static void answers_are_signs_by_their_status(void **state)
{
    assert_int_equal(passive_sign_of(200), PASSIVE_GOOD);
    assert_int_equal(passive_sign_of(101), PASSIVE_GOOD);
    assert_int_equal(passive_sign_of(499), PASSIVE_GOOD);
    assert_int_equal(passive_sign_of(500), PASSIVE_5XX);
    assert_int_equal(passive_sign_of(502), PASSIVE_GATEWAY);
    assert_int_equal(passive_sign_of(504), PASSIVE_GATEWAY);
    assert_int_equal(passive_sign_of(505), PASSIVE_5XX);
}

static void failures_in_a_row_are_counted_over_all_workers_D2(void **state)
{
    struct passive_runs runs = {0};
    struct passive_worker workers[3] = {0};
    assert_int_equal(note(&runs, workers, 3, "5555"), 0);
    assert_int_equal(note(&runs, workers, 3, "5"), 1);
    assert_int_equal(runs.errors_5xx, 5);
    assert_int_equal(note(&runs, workers, 3, "555"), 0); /* rings once a run */
    assert_int_equal(note(&runs, workers, 3, "+5555"), 0);
    assert_int_equal(note(&runs, workers, 3, "5"), 1);
}

static void gateway_errors_are_failures_too_but_not_the_other_way_round(void **state)
{
    struct passive_runs runs = {0};
    struct passive_worker worker = {0};
    assert_int_equal(note(&runs, &worker, 1, "gg5gg"), 1); /* five failures; never three gateway errors */
    assert_int_equal(runs.gateway_errors, 2);
    assert_int_equal(note(&runs, &worker, 1, "g"), 1);
    assert_int_equal(worker.attempts, 6);
    assert_int_equal(worker.failures, 6);
}

static void a_success_ends_every_run(void **state)
{
    struct passive_runs runs = {0};
    struct passive_worker worker = {0};
    note(&runs, &worker, 1, "gg+");
    assert_int_equal(runs.errors_5xx, 0);
    assert_int_equal(runs.gateway_errors, 0);
}

static void each_limit_is_a_cause_of_its_own(void **state)
{
    struct outlier outlier = {0};
    struct config_outlier none = {.min_requests = 1};
    assert_int_equal(outlier_cause(&outlier, &limits, &(struct outlier_sums){.run_5xx = 4}),
                     HEALTH_REASON_NONE);
    assert_int_equal(outlier_cause(&outlier, &limits, &(struct outlier_sums){.run_5xx = 5}),
                     HEALTH_REASON_ERRORS_5XX);
    assert_int_equal(outlier_cause(&outlier, &limits, &(struct outlier_sums){.run_5xx = 5, .run_gateway = 3}),
                     HEALTH_REASON_GATEWAY_ERRORS);
    assert_int_equal(outlier_cause(&outlier, &none,
                                   &(struct outlier_sums){1000, 1000, .run_5xx = 1000, .run_gateway = 1000}),
                     HEALTH_REASON_NONE);
}

static void a_rate_says_nothing_before_min_requests(void **state)
{
    struct outlier outlier = {0};
    assert_int_equal(outlier_cause(&outlier, &limits, &(struct outlier_sums){99, 99}), HEALTH_REASON_NONE);
    assert_int_equal(outlier_cause(&outlier, &limits, &(struct outlier_sums){100, 50}),
                     HEALTH_REASON_ERROR_RATE);
    assert_int_equal(outlier_cause(&outlier, &limits, &(struct outlier_sums){100, 49}), HEALTH_REASON_NONE);
}

static void what_left_the_window_does_not_count(void **state)
{
    struct outlier outlier = {0};
    struct outlier_sums sums = {100, 100};
    outlier_forget(&outlier, &sums);
    assert_int_equal(outlier_cause(&outlier, &limits, &sums), HEALTH_REASON_NONE);
    sums = (struct outlier_sums){200, 200};
    for (int slot = 0; slot < OUTLIER_SLOTS; slot++) {
        assert_int_equal(outlier_cause(&outlier, &limits, &sums), HEALTH_REASON_ERROR_RATE);
        outlier_slide(&outlier, &sums);
    }
    assert_int_equal(outlier_cause(&outlier, &limits, &sums), HEALTH_REASON_NONE);
}

static uint64_t eject_s(struct outlier *outlier, uint64_t now_s)
{
    outlier_eject(outlier, &limits, now_s * NS_PER_S);
    return outlier->until_ns / NS_PER_S - now_s;
}

static void ejections_grow_with_repeats_up_to_the_longest_D2(void **state)
{
    struct outlier outlier = {0};
    uint64_t now_s = 1000;
    static const uint64_t want_s[] = {30, 60, 90, 100, 100};
    for (size_t i = 0; i < iso_countof(want_s); i++) {
        uint64_t s = eject_s(&outlier, now_s);
        assert_int_equal(s, want_s[i]);
        outlier_return(&outlier, (now_s += s) * NS_PER_S);
        now_s += 1;
    }
}

static void good_behaviour_makes_them_shorter_again_D2(void **state)
{
    struct outlier outlier = {0};
    assert_int_equal(eject_s(&outlier, 1000), 30);
    outlier_return(&outlier, 1030 * NS_PER_S);
    assert_int_equal(eject_s(&outlier, 1031), 60);
    outlier_return(&outlier, 1091 * NS_PER_S);
    assert_int_equal(eject_s(&outlier, 1091 + 31), 60); /* one forgiven */
    outlier_return(&outlier, 1182 * NS_PER_S);
    assert_int_equal(eject_s(&outlier, 1182 + 600), 30); /* all */
}

static void the_cap_is_rounded_down_but_one_may_always_go_D4_C_114(void **state)
{
    struct config_outlier half = {.max_ejection_pct = 50}, all = {.max_ejection_pct = 100};
    static const struct {
        uint32_t n, cap;
    } want[] = {{1, 1}, {2, 1}, {3, 1}, {10, 1}, {19, 1}, {20, 2}, {29, 2}, {500, 50}};
    for (size_t i = 0; i < iso_countof(want); i++)
        assert_int_equal(outlier_cap(&limits, want[i].n), want[i].cap);
    assert_int_equal(outlier_cap(&half, 4), 2);
    assert_int_equal(outlier_cap(&half, 3), 1);
    assert_int_equal(outlier_cap(&all, 4), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_signs_by_their_status),
        cmocka_unit_test(failures_in_a_row_are_counted_over_all_workers_D2),
        cmocka_unit_test(gateway_errors_are_failures_too_but_not_the_other_way_round),
        cmocka_unit_test(a_success_ends_every_run),
        cmocka_unit_test(each_limit_is_a_cause_of_its_own),
        cmocka_unit_test(a_rate_says_nothing_before_min_requests),
        cmocka_unit_test(what_left_the_window_does_not_count),
        cmocka_unit_test(ejections_grow_with_repeats_up_to_the_longest_D2),
        cmocka_unit_test(good_behaviour_makes_them_shorter_again_D2),
        cmocka_unit_test(the_cap_is_rounded_down_but_one_may_always_go_D4_C_114),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
