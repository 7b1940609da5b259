/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static void targets_take_turns_B1(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_ROUND_ROBIN, 3, NULL);
    fixture_expect(&f, "ABCABCABC");
    fixture_close(&f);
}

static void weights_count_only_when_zero(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_ROUND_ROBIN, 4, (uint32_t[]){100, 0, 1, 65535});
    fixture_expect(&f, "ACDACD");
    fixture_close(&f);
}

static void a_target_that_is_out_loses_its_turn_only(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_ROUND_ROBIN, 4, NULL);
    fixture_expect(&f, "AB");
    fixture_set_eligible(&f, 2, false);
    fixture_expect(&f, "DABDA");
    fixture_set_eligible(&f, 2, true);
    fixture_expect(&f, "BCDA");
    fixture_close(&f);
}

static void the_turn_crosses_words_of_the_bitmap(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_ROUND_ROBIN, 200, NULL);
    for (uint32_t i = 0; i < 200; i++)
        fixture_set_eligible(&f, i, i == 3 || i == 63 || i == 64 || i == 199);
    static const uint32_t expected[] = {3, 63, 64, 199, 3, 63, 64, 199};
    for (size_t k = 0; k < iso_countof(expected); k++)
        assert_int_equal(fixture_pick(&f), expected[k]);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_take_turns_B1),
        cmocka_unit_test(weights_count_only_when_zero),
        cmocka_unit_test(a_target_that_is_out_loses_its_turn_only),
        cmocka_unit_test(the_turn_crosses_words_of_the_bitmap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
