/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/slow_start.h"

#include "fixture.h"

static void linear_grows_with_age_B7(void **state)
{
    assert_within(slow_start_ramp(SLOW_START_LINEAR, 3000, 30000), BALANCE_RAMP_FULL * 0.1, 0.001);
    assert_within(slow_start_ramp(SLOW_START_LINEAR, 15000, 30000), BALANCE_RAMP_FULL * 0.5, 0.001);
    assert_within(slow_start_ramp(SLOW_START_LINEAR, 29999, 30000), BALANCE_RAMP_FULL, 0.001);
    assert_int_equal(slow_start_ramp(SLOW_START_LINEAR, 30000, 30000), BALANCE_RAMP_FULL);
}

static void stepped_goes_10_50_100_percent_B7(void **state)
{
    assert_within(slow_start_ramp(SLOW_START_STEPPED, 0, 30000), BALANCE_RAMP_FULL * 0.1, 0.001);
    assert_within(slow_start_ramp(SLOW_START_STEPPED, 14999, 30000), BALANCE_RAMP_FULL * 0.1, 0.001);
    assert_within(slow_start_ramp(SLOW_START_STEPPED, 15000, 30000), BALANCE_RAMP_FULL * 0.5, 0.001);
    assert_within(slow_start_ramp(SLOW_START_STEPPED, 29999, 30000), BALANCE_RAMP_FULL * 0.5, 0.001);
    assert_int_equal(slow_start_ramp(SLOW_START_STEPPED, 30000, 30000), BALANCE_RAMP_FULL);
}

static void the_ramp_is_never_nothing_and_never_falls_C_100(void **state)
{
    for (int shape = SLOW_START_LINEAR; shape <= SLOW_START_STEPPED; shape++) {
        uint16_t last = 1;
        for (uint64_t age = 0; age <= 21000; age += 10) {
            uint16_t now = slow_start_ramp((enum slow_start_shape)shape, age, 20000);
            assert_true(now >= last);
            last = now;
        }
        assert_int_equal(last, BALANCE_RAMP_FULL);
    }
}

static void without_a_ramp_the_weight_is_full_at_once(void **state)
{
    assert_int_equal(slow_start_ramp(SLOW_START_LINEAR, 0, 0), BALANCE_RAMP_FULL);
    assert_int_equal(slow_start_ramp(SLOW_START_STEPPED, 0, 0), BALANCE_RAMP_FULL);
    assert_int_equal(slow_start_ramp(SLOW_START_LINEAR, UINT64_MAX, 1), BALANCE_RAMP_FULL);
    assert_int_equal(slow_start_ramp(SLOW_START_LINEAR, UINT64_MAX / 2, UINT64_MAX), BALANCE_RAMP_FULL / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_grows_with_age_B7),
        cmocka_unit_test(stepped_goes_10_50_100_percent_B7),
        cmocka_unit_test(the_ramp_is_never_nothing_and_never_falls_C_100),
        cmocka_unit_test(without_a_ramp_the_weight_is_full_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
