/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/churn.h"

#include "fixture.h"

enum { KEYS = 100000 };

static struct churn measure(struct fixture *before, struct fixture *after)
{
    struct churn churn = {0};
    assert_int_equal(churn_measure(&before->pool, &after->pool, KEYS, &churn), ISO_OK);
    fixture_close(before);
    fixture_close(after);
    return churn;
}

static double part(const struct churn *churn, enum churn_scheme scheme)
{
    return (double)churn->moved[scheme] / churn->keys;
}

static void adding_one_to_ten_moves_an_eleventh_but_with_hash_mod_n_nearly_all_B4(void **state)
{
    struct fixture before, after;
    fixture_init(&before, BALANCE_RANDOM, 10, 1);
    fixture_init(&after, BALANCE_RANDOM, 11, 1);
    struct churn churn = measure(&before, &after);
    assert_within(churn.least, 1 / 11.0, 0.0001);
    assert_within(part(&churn, CHURN_MODULO), 10 / 11.0, 0.02);
    assert_within(part(&churn, CHURN_IP_HASH), churn.least, 0.03);
    assert_within(part(&churn, CHURN_RING), churn.least, 0.15);
    assert_within(part(&churn, CHURN_MAGLEV), churn.least, 0.1);
}

static void a_weight_that_doubles_moves_what_it_gains_B4(void **state)
{
    struct fixture before, after;
    fixture_init(&before, BALANCE_RANDOM, 4, 10);
    fixture_init(&after, BALANCE_RANDOM, 4, 10);
    after.weights[2] = 20;
    struct churn churn = measure(&before, &after);
    assert_within(churn.least, 0.4 - 0.25, 0.0001);
    assert_within(part(&churn, CHURN_IP_HASH), churn.least, 0.03);
    assert_within(part(&churn, CHURN_RING), churn.least, 0.25);
    assert_true(part(&churn, CHURN_MODULO) > 0.4);
}

static void no_change_moves_nothing(void **state)
{
    struct fixture before, after;
    fixture_init(&before, BALANCE_RANDOM, 5, 7);
    fixture_init(&after, BALANCE_RANDOM, 5, 7);
    struct churn churn = measure(&before, &after);
    for (int scheme = 0; scheme < CHURN_SCHEME_COUNT; scheme++)
        assert_int_equal(churn.moved[scheme], 0);
    assert_true(churn.least == 0);
}

static void targets_are_known_by_name_not_by_place(void **state)
{
    struct fixture before, after;
    fixture_init(&before, BALANCE_RANDOM, 6, 1);
    fixture_init(&after, BALANCE_RANDOM, 6, 1);
    for (uint32_t i = 0; i < 6; i++)
        after.names[i] = before.names[5 - i];
    struct churn churn = measure(&before, &after);
    assert_true(churn.least == 0);
    assert_int_equal(churn.moved[CHURN_IP_HASH], 0);
    assert_int_equal(churn.moved[CHURN_RING], 0);
    assert_int_equal(churn.moved[CHURN_MAGLEV], 0);
    assert_true(part(&churn, CHURN_MODULO) > 0.9); /* a list sorted anew is another list */
}

static void everything_moves_when_all_targets_are_others_or_gone(void **state)
{
    for (uint32_t n = 0; n <= 3; n += 3) {
        struct fixture before, after;
        fixture_init(&before, BALANCE_RANDOM, 3, 1);
        fixture_init(&after, BALANCE_RANDOM, n, 1);
        for (uint32_t i = 0; i < n; i++)
            after.names[i] = slice_str(arena_printf(&after.arena, "other-%u", i));
        struct churn churn = measure(&before, &after);
        assert_true(churn.least == 1);
        for (int scheme = 0; scheme < CHURN_SCHEME_COUNT; scheme++)
            assert_int_equal(churn.moved[scheme], KEYS);
    }
}

static void rejects_a_pool_with_one_name_twice(void **state)
{
    struct fixture before, after;
    struct churn churn;
    fixture_init(&before, BALANCE_RANDOM, 3, 1);
    fixture_init(&after, BALANCE_RANDOM, 3, 1);
    after.names[1] = after.names[0];
    assert_int_equal(churn_measure(&before.pool, &after.pool, 10, &churn), ISO_ERR_INVALID);
    fixture_close(&before);
    fixture_close(&after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adding_one_to_ten_moves_an_eleventh_but_with_hash_mod_n_nearly_all_B4),
        cmocka_unit_test(a_weight_that_doubles_moves_what_it_gains_B4),
        cmocka_unit_test(no_change_moves_nothing),
        cmocka_unit_test(targets_are_known_by_name_not_by_place),
        cmocka_unit_test(everything_moves_when_all_targets_are_others_or_gone),
        cmocka_unit_test(rejects_a_pool_with_one_name_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
