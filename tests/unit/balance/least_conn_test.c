/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static void set_loads(struct fixture *f, uint32_t a, uint32_t b, uint32_t c)
{
    f->loads[0] = a;
    f->loads[1] = b;
    f->loads[2] = c;
}

static void the_lowest_count_wins_B1(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_LEAST_CONNECTIONS, 200, NULL);
    for (uint32_t i = 0; i < 200; i++)
        f.loads[i] = 10 + i % 7;
    f.loads[137] = 9;
    for (int k = 0; k < 5; k++)
        assert_int_equal(fixture_pick(&f), 137);
    fixture_set_eligible(&f, 137, false);
    assert_int_equal(atomic_load(&f.loads[fixture_pick(&f)]), 10);
    fixture_close(&f);
}

static void the_score_is_active_by_weight_B1(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_LEAST_CONNECTIONS, 3, (uint32_t[]){10, 5, 1});
    set_loads(&f, 21, 10, 3);
    assert_int_equal(fixture_pick(&f), 1);
    set_loads(&f, 21, 11, 3);
    assert_int_equal(fixture_pick(&f), 0);
    set_loads(&f, 31, 16, 3);
    assert_int_equal(fixture_pick(&f), 2);
    set_loads(&f, 1, 1, 0);
    assert_int_equal(fixture_pick(&f), 2);
    fixture_close(&f);
}

static void equal_targets_take_turns(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_LEAST_CONNECTIONS, 4, NULL);
    fixture_expect(&f, "ABCDABCD");
    f.loads[1] = 1;
    fixture_expect(&f, "ACDACD");
    f.loads[0] = f.loads[2] = f.loads[3] = 1;
    fixture_expect(&f, "ABCDABCD");
    fixture_close(&f);
}

static void ties_are_shared_by_weight_B5(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_LEAST_CONNECTIONS, 3, (uint32_t[]){5, 1, 1});
    fixture_expect(&f, "AABACAAAABACAA");
    set_loads(&f, 10, 2, 2);
    fixture_expect(&f, "AABACAA");
    fixture_close(&f);
}

/* As it runs: each pick raises a count, each answer lowers one; nobody is ever ahead by more than one. */
static void counts_stay_level_while_requests_come_and_go(void **state)
{
    struct fixture f;
    struct rng rng;
    fixture_open(&f, BALANCE_LEAST_CONNECTIONS, 70, NULL);
    rng_init(&rng, 3);
    for (int k = 0; k < 700; k++)
        f.loads[fixture_pick(&f)]++;
    for (uint32_t i = 0; i < 70; i++)
        assert_int_equal(f.loads[i], 10);
    for (int k = 0; k < 10000; k++) {
        uint32_t ended = rng_below(&rng, 70);
        f.loads[ended]--;
        assert_int_equal(fixture_pick(&f), ended);
        f.loads[ended]++;
    }
    fixture_close(&f);
}

static void counts_near_the_limit_do_not_overflow(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_LEAST_CONNECTIONS, 3, (uint32_t[]){65535, 65534, 1});
    f.how.ramp = f.ramp;
    set_loads(&f, UINT32_MAX, UINT32_MAX, UINT32_MAX);
    fixture_expect(&f, "AAA");
    set_loads(&f, UINT32_MAX, UINT32_MAX, 65538);
    fixture_expect(&f, "A");
    set_loads(&f, UINT32_MAX, UINT32_MAX, 65536);
    fixture_expect(&f, "C");
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lowest_count_wins_B1),
        cmocka_unit_test(the_score_is_active_by_weight_B1),
        cmocka_unit_test(equal_targets_take_turns),
        cmocka_unit_test(ties_are_shared_by_weight_B5),
        cmocka_unit_test(counts_stay_level_while_requests_come_and_go),
        cmocka_unit_test(counts_near_the_limit_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
