/* SPDX-License-Identifier: Apache-2.0 */
#include "health/judge.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct config_health_check check = {
    .interval_ms = 5000, .down_interval_ms = 1000, .healthy_threshold = 2, .unhealthy_threshold = 3};

/* Runs results ('+' or '-') through judge and states; returns the states' first letters. */
static const char *run(struct judge *judge, enum target_state *state, const char *results)
{
    static char out[64];
    size_t n = 0;
    for (; results[n]; n++) {
        enum target_event event;
        if (judge_result(judge, &check, results[n] == '+', &event)) {
            struct target_step step = target_step(*state, event);
            if (step.to != *state)
                judge_forget(judge);
            *state = step.to;
        }
        out[n] = target_state_word(*state)[0];
    }
    out[n] = '\0';
    return out;
}

static void thresholds_must_be_reached_in_a_row(void **unused)
{
    struct judge judge;
    enum target_state state = TARGET_PENDING;
    judge_begin(&judge);
    assert_string_equal(run(&judge, &state, "+-++"), "pppa");
    assert_string_equal(run(&judge, &state, "--+--+---"), "aaaaaaaau");
    assert_string_equal(run(&judge, &state, "+-++"), "uuua");
}

static void alternating_results_change_nothing_C_095(void **unused)
{
    struct judge judge;
    enum target_state state = TARGET_ACTIVE;
    judge_begin(&judge);
    assert_string_equal(run(&judge, &state, "+-+-+-+-+-+-"), "aaaaaaaaaaaa");
    state = TARGET_UNHEALTHY;
    judge_begin(&judge);
    assert_string_equal(run(&judge, &state, "-+-+-+-+-+-+"), "uuuuuuuuuuuu");
}

static void after_passive_ejection_rise_good_checks_bring_it_back_C_095(void **unused)
{
    struct judge judge;
    enum target_state state = TARGET_ACTIVE;
    judge_begin(&judge);
    run(&judge, &state, "++++++++");
    state = target_step(state, TARGET_EVENT_EJECT).to;
    judge_forget(&judge);
    assert_string_equal(run(&judge, &state, "++"), "ua");
    /* Also when the ejector forgot to say so, nothing is stuck. */
    state = target_step(state, TARGET_EVENT_EJECT).to;
    assert_string_equal(run(&judge, &state, "++"), "ua");
}

static void a_new_target_is_checked_in_quick_succession(void **unused)
{
    struct judge judge;
    struct rng rng;
    bool from_start;
    rng_init(&rng, 1);
    judge_begin(&judge);
    assert_int_equal(judge_delay_ms(&judge, &check, TARGET_PENDING, true, &rng, &from_start), JUDGE_QUICK_MS);
    assert_false(from_start);
}

static void a_bad_new_target_falls_back_to_the_down_interval(void **unused)
{
    struct judge judge;
    struct rng rng;
    bool from_start;
    uint32_t total_ms = 0, tries = 0, delay_ms = 0;
    rng_init(&rng, 1);
    judge_begin(&judge);
    while (judge.quick_ms) {
        delay_ms = judge_delay_ms(&judge, &check, TARGET_PENDING, false, &rng, &from_start);
        total_ms += delay_ms;
        tries++;
    }
    assert_in_range(tries, 4, 8);
    assert_in_range(total_ms, 500, 3000);
    delay_ms = judge_delay_ms(&judge, &check, TARGET_PENDING, false, &rng, &from_start);
    assert_in_range(delay_ms, 900, 1100);
    assert_true(from_start);
}

static void active_targets_use_the_interval_and_others_the_down_interval(void **unused)
{
    struct judge judge = {0};
    struct config_health_check no_down = check;
    struct rng rng;
    bool from_start;
    rng_init(&rng, 1);
    no_down.down_interval_ms = 0;
    assert_in_range(judge_delay_ms(&judge, &check, TARGET_ACTIVE, true, &rng, &from_start), 4500, 5500);
    assert_in_range(judge_delay_ms(&judge, &check, TARGET_UNHEALTHY, false, &rng, &from_start), 900, 1100);
    assert_in_range(judge_delay_ms(&judge, &no_down, TARGET_UNHEALTHY, false, &rng, &from_start), 4500, 5500);
}

static void checks_of_a_pool_spread_over_the_interval(void **unused)
{
    enum { TARGETS = 500, TENTHS = 10 };
    uint32_t in_tenth[TENTHS] = {0};
    struct rng rng;
    bool from_start;
    rng_init(&rng, 7);
    for (int i = 0; i < TARGETS; i++) {
        struct judge judge;
        judge_begin(&judge);
        uint32_t at_ms = judge_delay_ms(&judge, &check, TARGET_ACTIVE, true, &rng, &from_start);
        in_tenth[(at_ms - 1) * TENTHS / check.interval_ms]++;
    }
    for (int i = 0; i < TENTHS; i++)
        assert_in_range(in_tenth[i], 25, 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thresholds_must_be_reached_in_a_row),
        cmocka_unit_test(alternating_results_change_nothing_C_095),
        cmocka_unit_test(after_passive_ejection_rise_good_checks_bring_it_back_C_095),
        cmocka_unit_test(a_new_target_is_checked_in_quick_succession),
        cmocka_unit_test(a_bad_new_target_falls_back_to_the_down_interval),
        cmocka_unit_test(active_targets_use_the_interval_and_others_the_down_interval),
        cmocka_unit_test(checks_of_a_pool_spread_over_the_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
