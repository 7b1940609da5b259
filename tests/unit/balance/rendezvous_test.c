/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static void shares_follow_weights_of_any_size_B5(void **state)
{
    static const uint32_t weights[] = {1, 9, 90, 900, 9000};
    struct fixture f;
    uint32_t counts[5];
    fixture_open(&f, BALANCE_IP_HASH, 5, weights);
    fixture_count(&f, 4000000, counts);
    for (uint32_t i = 0; i < 5; i++)
        assert_within(counts[i], 400 * weights[i], i < 2 ? 0.2 : 0.02);
    fixture_close(&f);
}

/* Weights that are equal or not take different paths through the code; who wins must not depend on it. */
static void a_weight_that_changes_moves_only_what_it_must(void **state)
{
    struct fixture f, g;
    fixture_init(&f, BALANCE_IP_HASH, 10, 100);
    fixture_init(&g, BALANCE_IP_HASH, 10, 100);
    g.weights[4] = 101;
    fixture_build(&f);
    fixture_build(&g);
    uint32_t gained = 0;
    for (uint64_t key = 0; key < 300000; key++) {
        uint32_t before = fixture_pick_key(&f, key), after = fixture_pick_key(&g, key);
        assert_true(after == before || after == 4);
        gained += after != before;
    }
    assert_within(gained, 300000 * (101.0 / 1001 - 0.1), 0.15);
    fixture_close(&f);
    fixture_close(&g);
}

static void one_factor_on_all_weights_moves_nothing(void **state)
{
    struct fixture f, g;
    fixture_init(&f, BALANCE_IP_HASH, 10, 1);
    fixture_init(&g, BALANCE_IP_HASH, 10, 1);
    for (uint32_t i = 0; i < 10; i++) {
        f.weights[i] = 1 + i;
        g.weights[i] = 64 * (1 + i);
    }
    fixture_build(&f);
    fixture_build(&g);
    for (uint64_t key = 0; key < 100000; key++)
        assert_int_equal(fixture_pick_key(&f, key), fixture_pick_key(&g, key));
    fixture_close(&f);
    fixture_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_follow_weights_of_any_size_B5),
        cmocka_unit_test(a_weight_that_changes_moves_only_what_it_must),
        cmocka_unit_test(one_factor_on_all_weights_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
