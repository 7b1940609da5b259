/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/draw.h"

#include "fixture.h"

static void count_draws(struct fixture *f, const struct draw *draw, uint32_t except, uint32_t picks,
                        uint32_t *counts)
{
    memset(counts, 0, sizeof(counts[0]) * f->pool.n);
    for (uint32_t k = 0; k < picks; k++)
        counts[draw_one(draw, &f->pool, &f->how, except)]++;
}

static void draws_by_weight_B1(void **state)
{
    static const uint32_t weights[] = {1, 0, 500, 20, 65535, 20, 1000, 300, 1, 32000};
    struct fixture f;
    struct draw draw;
    uint32_t counts[10], sum = 0;
    fixture_open(&f, BALANCE_RANDOM, 10, weights);
    draw_build(&draw, &f.pool, &f.arena);
    for (uint32_t i = 0; i < 10; i++)
        sum += weights[i];
    count_draws(&f, &draw, BALANCE_NONE, 4000000, counts);
    assert_int_equal(counts[1], 0);
    for (uint32_t i = 0; i < 10; i++)
        if (weights[i] >= 300)
            assert_within(counts[i], 4000000.0 * weights[i] / sum, 0.05);
    fixture_close(&f);
}

/* Tries that miss and the exact draw behind them must agree: shares stay those of the usable targets. */
static void shares_hold_whatever_part_of_the_pool_is_usable(void **state)
{
    for (uint32_t every = 2; every <= 32; every *= 4) {
        struct fixture f;
        struct draw draw;
        uint32_t counts[64], sum = 0;
        fixture_init(&f, BALANCE_RANDOM, 64, 1);
        for (uint32_t i = 0; i < 64; i++) {
            f.weights[i] = 1 + i % 5;
            fixture_set_eligible(&f, i, i % every == 0);
            sum += i % every == 0 ? f.weights[i] : 0;
        }
        draw_build(&draw, &f.pool, &f.arena);
        count_draws(&f, &draw, BALANCE_NONE, 1000000, counts);
        for (uint32_t i = 0; i < 64; i++)
            assert_within(counts[i], i % every == 0 ? 1000000.0 * f.weights[i] / sum : 0, 0.03);
        fixture_close(&f);
    }
}

static void who_is_excepted_is_never_drawn_and_the_others_keep_their_ratio(void **state)
{
    for (uint32_t n = 3; n <= 30; n += 27) {
        struct fixture f;
        struct draw draw;
        uint32_t counts[30];
        fixture_init(&f, BALANCE_RANDOM, n, 1);
        f.weights[0] = 10000;
        f.weights[2] = 3;
        draw_build(&draw, &f.pool, &f.arena);
        count_draws(&f, &draw, 0, 400000, counts);
        assert_int_equal(counts[0], 0);
        assert_within(counts[2], 400000 * 3.0 / (n + 1), 0.03);
        fixture_close(&f);
    }
}

static void nobody_is_drawn_when_the_only_one_is_excepted(void **state)
{
    struct fixture f;
    struct draw draw;
    fixture_open(&f, BALANCE_RANDOM, 3, (uint32_t[]){0, 4, 0});
    draw_build(&draw, &f.pool, &f.arena);
    assert_int_equal(draw_one(&draw, &f.pool, &f.how, 1), BALANCE_NONE);
    assert_int_equal(draw_one(&draw, &f.pool, &f.how, 0), 1);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_by_weight_B1),
        cmocka_unit_test(shares_hold_whatever_part_of_the_pool_is_usable),
        cmocka_unit_test(who_is_excepted_is_never_drawn_and_the_others_keep_their_ratio),
        cmocka_unit_test(nobody_is_drawn_when_the_only_one_is_excepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
