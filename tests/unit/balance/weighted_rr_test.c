/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static void three_to_one_gives_a_a_b_a_B1(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_WEIGHTED_ROUND_ROBIN, 2, (uint32_t[]){3, 1});
    fixture_expect(&f, "AABAAABAAABA");
    fixture_close(&f);
}

static void five_one_one_gives_a_a_b_a_c_a_a_C_105(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_WEIGHTED_ROUND_ROBIN, 3, (uint32_t[]){5, 1, 1});
    fixture_expect(&f, "AABACAAAABACAA");
    fixture_close(&f);
}

static void weights_with_a_common_factor_give_the_same_order(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_WEIGHTED_ROUND_ROBIN, 3, (uint32_t[]){50000, 10000, 10000});
    fixture_expect(&f, "AABACAAAABACAA");
    fixture_close(&f);
}

static void five_one_one_over_700_is_exact_C_105(void **state)
{
    struct fixture f;
    uint32_t counts[3];
    fixture_open(&f, BALANCE_WEIGHTED_ROUND_ROBIN, 3, (uint32_t[]){5, 1, 1});
    fixture_count(&f, 700, counts);
    assert_int_equal(counts[0], 500);
    assert_int_equal(counts[1], 100);
    assert_int_equal(counts[2], 100);
    fixture_close(&f);
}

static void a_heavy_target_never_takes_its_whole_share_in_a_row_C_105(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_WEIGHTED_ROUND_ROBIN, 4, (uint32_t[]){50, 1, 1, 1});
    uint32_t in_a_row = 0, longest = 0, counts[4] = {0};
    for (int k = 0; k < 53; k++) {
        uint32_t i = fixture_pick(&f);
        counts[i]++;
        in_a_row = i == 0 ? in_a_row + 1 : 0;
        longest = in_a_row > longest ? in_a_row : longest;
    }
    assert_in_range(longest, 10, 25);
    assert_int_equal(counts[0], 50);
    assert_true(counts[1] == 1 && counts[2] == 1 && counts[3] == 1);
    fixture_close(&f);
}

static void equal_weights_are_plain_turns(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_WEIGHTED_ROUND_ROBIN, 4, (uint32_t[]){100, 100, 0, 100});
    fixture_expect(&f, "ABDABDABD");
    fixture_close(&f);
}

/* The algorithm as it is usually written, one target after the other. */
static uint32_t plain_smooth_pick(int64_t *credit, const struct fixture *f)
{
    uint32_t best = BALANCE_NONE;
    int64_t total = 0;
    for (uint32_t i = 0; i < f->pool.n; i++) {
        if (!balance_is_eligible(f->eligible, i) || f->weights[i] == 0)
            continue;
        credit[i] += f->weights[i];
        total += f->weights[i];
        if (best == BALANCE_NONE || credit[i] > credit[best])
            best = i;
    }
    if (best != BALANCE_NONE)
        credit[best] -= total;
    return best;
}

static void vectors_give_the_plain_algorithms_order_while_targets_come_and_go(void **state)
{
    for (uint32_t n = 2; n <= 300; n += 37) {
        struct fixture f;
        struct rng rng;
        int64_t credit[300] = {0};
        rng_init(&rng, n);
        fixture_init(&f, BALANCE_WEIGHTED_ROUND_ROBIN, n, 1);
        for (uint32_t i = 0; i < n; i++)
            f.weights[i] = rng_below(&rng, 4) ? 1 + rng_below(&rng, 100) : 0;
        f.weights[0] = 7;
        f.weights[1] = 6; /* the gcd is 1 */
        fixture_build(&f);
        for (int k = 0; k < 3000; k++) {
            if (rng_below(&rng, 10) == 0)
                fixture_set_eligible(&f, rng_below(&rng, n), rng_below(&rng, 3) > 0);
            assert_int_equal(fixture_pick(&f), plain_smooth_pick(credit, &f));
        }
        fixture_close(&f);
    }
}

static void shares_hold_when_the_sum_of_weights_is_huge(void **state)
{
    struct fixture f;
    static uint32_t counts[4000];
    fixture_init(&f, BALANCE_WEIGHTED_ROUND_ROBIN, 4000, 65535);
    for (uint32_t i = 0; i < 2000; i++)
        f.weights[i] = 32768;
    fixture_build(&f);
    fixture_count(&f, 60000, counts);
    for (uint32_t i = 0; i < 4000; i++)
        assert_in_range(counts[i], i < 2000 ? 9 : 19, i < 2000 ? 11 : 21);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_to_one_gives_a_a_b_a_B1),
        cmocka_unit_test(five_one_one_gives_a_a_b_a_c_a_a_C_105),
        cmocka_unit_test(weights_with_a_common_factor_give_the_same_order),
        cmocka_unit_test(five_one_one_over_700_is_exact_C_105),
        cmocka_unit_test(a_heavy_target_never_takes_its_whole_share_in_a_row_C_105),
        cmocka_unit_test(equal_weights_are_plain_turns),
        cmocka_unit_test(vectors_give_the_plain_algorithms_order_while_targets_come_and_go),
        cmocka_unit_test(shares_hold_when_the_sum_of_weights_is_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
