/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every method. */
#include "fixture.h"

static void each_id_has_its_method(void **state)
{
    static const struct {
        const char *name;
        bool needs_hash;
    } expected[] = {
#define METHOD(id, name, needs_hash, text) {name, needs_hash},
#include "balance/methods.def"
#undef METHOD
    };
    for (unsigned i = 0; i < BALANCE_METHOD_COUNT; i++) {
        const struct balance_method *method = balance_method_get((enum balance_method_id)i);
        assert_string_equal(method->name, expected[i].name);
        assert_int_equal(method->needs_hash, expected[i].needs_hash);
        enum balance_method_id found;
        assert_true(balance_method_lookup(slice_str(expected[i].name), &found));
        assert_int_equal(found, i);
    }
}

static void rejects_names_that_are_no_method(void **state)
{
    enum balance_method_id id;
    assert_false(balance_method_lookup(SLICE("roundrobin"), &id));
    assert_false(balance_method_lookup(SLICE("random "), &id));
    assert_false(balance_method_lookup(SLICE(""), &id));
}

static void nobody_is_picked_from_an_empty_pool(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        struct fixture f;
        fixture_open(&f, (enum balance_method_id)id, 0, NULL);
        assert_int_equal(fixture_pick(&f), BALANCE_NONE);
        fixture_close(&f);
    }
}

static void nobody_is_picked_when_all_weights_are_zero_C_110(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        struct fixture f;
        fixture_open(&f, (enum balance_method_id)id, 70, (uint32_t[70]){0});
        for (uint64_t key = 0; key < 100; key++)
            assert_int_equal(fixture_pick_key(&f, key), BALANCE_NONE);
        fixture_close(&f);
    }
}

static void nobody_is_picked_when_nobody_is_eligible(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        struct fixture f;
        fixture_open(&f, (enum balance_method_id)id, 70, NULL);
        f.how.ramp = f.ramp;
        f.eligible[0] = f.eligible[1] = 0;
        for (uint64_t key = 0; key < 100; key++)
            assert_int_equal(fixture_pick_key(&f, key), BALANCE_NONE);
        fixture_close(&f);
    }
}

static void the_only_target_takes_everything(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        struct fixture f;
        fixture_open(&f, (enum balance_method_id)id, 1, NULL);
        for (uint64_t key = 0; key < 100; key++) {
            f.loads[0] = (uint32_t)key;
            assert_int_equal(fixture_pick_key(&f, key), 0);
        }
        fixture_close(&f);
    }
}

static void the_last_eligible_target_takes_everything(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        struct fixture f;
        fixture_open(&f, (enum balance_method_id)id, 500, NULL);
        memset(f.eligible, 0, 8 * sizeof(uint64_t));
        fixture_set_eligible(&f, 321, true);
        for (uint64_t key = 0; key < 1000; key++)
            assert_int_equal(fixture_pick_key(&f, key), 321);
        fixture_close(&f);
    }
}

/* Bits beyond the pool and targets without weight must never come out, whichever half of the pool is up. */
static void only_eligible_targets_with_weight_are_picked(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        struct fixture f;
        fixture_init(&f, (enum balance_method_id)id, 100, 3);
        for (uint32_t i = 0; i < 100; i++)
            f.weights[i] = i % 5;
        fixture_build(&f);
        f.eligible[0] = 0x5555555555555555ull;
        f.eligible[1] = ~0ull;
        for (uint64_t key = 0; key < 20000; key++) {
            uint32_t i = fixture_pick_key(&f, key);
            assert_in_range(i, 0, 99);
            assert_true(i >= 64 || i % 2 == 0);
            assert_int_not_equal(i % 5, 0);
            f.loads[i]++;
        }
        fixture_close(&f);
    }
}

static void each_target_gets_its_weighted_share_B5(void **state)
{
    static const struct {
        enum balance_method_id id;
        double part; /* a ring's points are uneven by nature, random ones deviate by 1/sqrt(count) */
    } cases[] = {{BALANCE_WEIGHTED_ROUND_ROBIN, 0.0001},
                 {BALANCE_LEAST_CONNECTIONS, 0.0001},
                 {BALANCE_P2C_LEAST_REQUEST, 0.01},
                 {BALANCE_RANDOM, 0.01},
                 {BALANCE_IP_HASH, 0.01},
                 {BALANCE_MAGLEV, 0.01},
                 {BALANCE_CONSISTENT_HASH, 0.15}};
    static const uint32_t weights[] = {10, 20, 30, 40, 100};
    for (size_t c = 0; c < iso_countof(cases); c++) {
        struct fixture f;
        uint32_t counts[5];
        fixture_open(&f, cases[c].id, 5, weights);
        fixture_count(&f, 1000000, counts);
        for (uint32_t i = 0; i < 5; i++)
            assert_within(counts[i], 1000000.0 * weights[i] / 200, cases[c].part);
        fixture_close(&f);
    }
}

/* 4 targets, one of them at `ramp` of 65535: its share of 400,000 picks. */
static double share_of_a_newcomer(enum balance_method_id id, uint16_t ramp)
{
    struct fixture f;
    uint32_t counts[4];
    fixture_open(&f, id, 4, NULL);
    f.how.ramp = f.ramp;
    f.ramp[2] = ramp;
    fixture_count(&f, 400000, counts);
    fixture_close(&f);
    return counts[2] / 400000.0;
}

static void a_newcomers_share_grows_with_its_ramp_B7_C_100(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        double last = 0, full = share_of_a_newcomer((enum balance_method_id)id, BALANCE_RAMP_FULL);
        assert_within(full, 0.25, 0.15);
        for (uint32_t ramp = 6553; ramp < BALANCE_RAMP_FULL; ramp += 6553) {
            double share = share_of_a_newcomer((enum balance_method_id)id, (uint16_t)ramp);
            double part = (double)ramp / BALANCE_RAMP_FULL;
            assert_true(share > last && share <= full);
            assert_true(share >= 0.2 * part && share <= 0.36 * part); /* 0.25 of all, 0.33 of the others */
            last = share;
        }
        assert_true(share_of_a_newcomer((enum balance_method_id)id, 655) < 0.05);
    }
}

static void a_pool_of_newcomers_refuses_nobody_C_100(void **state)
{
    for (unsigned id = 0; id < BALANCE_METHOD_COUNT; id++) {
        struct fixture f;
        uint32_t counts[3];
        fixture_open(&f, (enum balance_method_id)id, 3, NULL);
        f.how.ramp = f.ramp;
        f.ramp[0] = f.ramp[1] = f.ramp[2] = 655;
        fixture_count(&f, 30000, counts);
        for (uint32_t i = 0; i < 3; i++)
            assert_within(counts[i], 10000, 0.15);
        fixture_close(&f);
    }
}

static const enum balance_method_id hashing[] = {BALANCE_IP_HASH, BALANCE_CONSISTENT_HASH, BALANCE_MAGLEV};

static void equal_keys_give_equal_targets(void **state)
{
    for (size_t m = 0; m < iso_countof(hashing); m++) {
        struct fixture f;
        fixture_open(&f, hashing[m], 30, NULL);
        for (uint64_t key = 0; key < 1000; key++)
            assert_int_equal(fixture_pick_key(&f, key), fixture_pick_key(&f, key));
        fixture_close(&f);
    }
}

static void the_order_in_which_targets_are_listed_does_not_matter_C_108(void **state)
{
    for (size_t m = 0; m < iso_countof(hashing); m++) {
        struct fixture f, g;
        fixture_init(&f, hashing[m], 20, 1);
        fixture_init(&g, hashing[m], 20, 1);
        for (uint32_t i = 0; i < 20; i++) {
            f.weights[i] = 1 + i % 3;
            g.weights[i * 7 % 20] = f.weights[i];
            g.names[i * 7 % 20] = f.names[i];
        }
        fixture_build(&f);
        fixture_build(&g);
        for (uint64_t key = 0; key < 100000; key++)
            assert_int_equal(fixture_pick_key(&f, key) * 7 % 20, fixture_pick_key(&g, key));
        fixture_close(&f);
        fixture_close(&g);
    }
}

/* Down, full or tried before: not a change of the table. Weights are 1 to 4, target 4 has 1 of 25. */
static void only_the_keys_of_a_target_that_is_out_move_and_they_spread(void **state)
{
    for (size_t m = 0; m < iso_countof(hashing); m++) {
        struct fixture f;
        uint32_t keys = 0, gained[10] = {0};
        fixture_open(&f, hashing[m], 10, (uint32_t[]){1, 2, 3, 4, 1, 2, 3, 4, 1, 4});
        for (uint64_t key = 0; key < 200000; key++) {
            fixture_set_eligible(&f, 4, true);
            uint32_t before = fixture_pick_key(&f, key);
            fixture_set_eligible(&f, 4, false);
            uint32_t after = fixture_pick_key(&f, key);
            if (before == 4) {
                keys++;
                gained[after]++;
            } else {
                assert_int_equal(before, after);
            }
        }
        assert_int_equal(gained[4], 0);
        for (uint32_t i = 0; i < 10; i++)
            if (i != 4)
                assert_within(gained[i], keys * f.weights[i] / 24.0, 0.4);
        fixture_close(&f);
    }
}

static void a_rising_ramp_moves_keys_to_the_newcomer_only_B7(void **state)
{
    for (size_t m = 0; m < iso_countof(hashing); m++) {
        struct fixture f;
        fixture_open(&f, hashing[m], 10, NULL);
        f.how.ramp = f.ramp;
        for (uint64_t key = 0; key < 20000; key++) {
            f.ramp[3] = 1;
            uint32_t last = fixture_pick_key(&f, key);
            for (uint32_t ramp = 655; ramp <= BALANCE_RAMP_FULL; ramp += 6488) {
                f.ramp[3] = (uint16_t)ramp;
                uint32_t now = fixture_pick_key(&f, key);
                assert_true(now == last || now == 3);
                last = now;
            }
        }
        fixture_close(&f);
    }
}

/* The share of keys that change hands between targets which stay, when `f` becomes `g`; in percent. */
static double moved_needlessly(struct fixture *f, struct fixture *g, uint32_t n_staying, double *moved)
{
    uint32_t needless = 0, all = 0;
    for (uint64_t key = 0; key < 100000; key++) {
        uint32_t before = fixture_pick_key(f, key), after = fixture_pick_key(g, key);
        all += before != after;
        needless += before != after && before < n_staying && after < n_staying;
    }
    *moved = all / 1000.0;
    return needless / 1000.0;
}

static void keys_of_other_targets_stay_when_one_leaves_or_comes_C_108_B4(void **state)
{
    static const double allowed[] = {0, 0, 1}; /* Maglev trades a little movement for evenness */
    for (size_t m = 0; m < iso_countof(hashing); m++) {
        for (uint32_t weight = 1; weight <= 100; weight *= 100) {
            struct fixture ten, nine;
            double moved;
            fixture_init(&ten, hashing[m], 10, weight);
            fixture_init(&nine, hashing[m], 9, weight);
            fixture_build(&ten);
            fixture_build(&nine);
            assert_true(moved_needlessly(&ten, &nine, 9, &moved) <= allowed[m]);
            assert_within(moved, 10, 0.15);
            fixture_close(&ten);
            fixture_close(&nine);
        }
    }
}

static void a_canary_moves_no_keys_but_its_own(void **state)
{
    static const double allowed[] = {0, 0, 1};
    for (size_t m = 0; m < iso_countof(hashing); m++) {
        struct fixture with, without;
        double moved;
        fixture_init(&with, hashing[m], 11, 100);
        fixture_init(&without, hashing[m], 10, 100);
        with.weights[10] = 7;
        fixture_build(&with);
        fixture_build(&without);
        assert_true(moved_needlessly(&with, &without, 10, &moved) <= allowed[m]);
        fixture_close(&with);
        fixture_close(&without);
    }
}

static void rejects_two_targets_of_one_name(void **state)
{
    for (size_t m = 1; m < iso_countof(hashing); m++) { /* ip_hash has no table to spoil */
        struct fixture f;
        fixture_init(&f, hashing[m], 3, 1);
        f.names[2] = f.names[0];
        assert_int_equal(fixture_try_build(&f), ISO_ERR_INVALID);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_id_has_its_method),
        cmocka_unit_test(rejects_names_that_are_no_method),
        cmocka_unit_test(nobody_is_picked_from_an_empty_pool),
        cmocka_unit_test(nobody_is_picked_when_all_weights_are_zero_C_110),
        cmocka_unit_test(nobody_is_picked_when_nobody_is_eligible),
        cmocka_unit_test(the_only_target_takes_everything),
        cmocka_unit_test(the_last_eligible_target_takes_everything),
        cmocka_unit_test(only_eligible_targets_with_weight_are_picked),
        cmocka_unit_test(each_target_gets_its_weighted_share_B5),
        cmocka_unit_test(a_newcomers_share_grows_with_its_ramp_B7_C_100),
        cmocka_unit_test(a_pool_of_newcomers_refuses_nobody_C_100),
        cmocka_unit_test(equal_keys_give_equal_targets),
        cmocka_unit_test(the_order_in_which_targets_are_listed_does_not_matter_C_108),
        cmocka_unit_test(only_the_keys_of_a_target_that_is_out_move_and_they_spread),
        cmocka_unit_test(a_rising_ramp_moves_keys_to_the_newcomer_only_B7),
        cmocka_unit_test(keys_of_other_targets_stay_when_one_leaves_or_comes_C_108_B4),
        cmocka_unit_test(a_canary_moves_no_keys_but_its_own),
        cmocka_unit_test(rejects_two_targets_of_one_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
