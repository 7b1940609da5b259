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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
