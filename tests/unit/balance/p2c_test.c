/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdlib.h>

/* A closed loop: each client sends its next request when its last is answered. Time is in ticks. */
struct simulation {
    struct fixture f;
    uint32_t service[10]; /* ticks that a target takes on average */
    uint32_t served[10];
};

enum { CLIENTS = 200, TICKS = 100000 };

static void run_closed_loop(struct simulation *sim)
{
    struct fixture *f = &sim->f;
    uint32_t *due = arena_array(&f->arena, uint32_t, CLIENTS);
    uint32_t *target = arena_array(&f->arena, uint32_t, CLIENTS);
    struct rng rng;
    rng_init(&rng, 2);
    for (uint32_t c = 0; c < CLIENTS; c++)
        target[c] = BALANCE_NONE;
    for (uint32_t now = 0; now < TICKS; now++) {
        for (uint32_t c = 0; c < CLIENTS; c++) {
            if (target[c] != BALANCE_NONE && due[c] > now)
                continue;
            if (target[c] != BALANCE_NONE) {
                f->loads[target[c]]--;
                sim->served[target[c]]++;
            }
            target[c] = fixture_pick(f);
            f->loads[target[c]]++;
            uint32_t service = sim->service[target[c]];
            due[c] = now + service / 2 + rng_below(&rng, service);
        }
    }
}

static double share_of(const struct simulation *sim, uint32_t i)
{
    uint32_t sum = 0;
    for (uint32_t k = 0; k < sim->f.pool.n; k++)
        sum += sim->served[k];
    return (double)sim->served[i] / sum;
}

static void slow_server_gets_under_two_percent_C_109(void **state)
{
    static const enum balance_method_id ids[] = {BALANCE_P2C_LEAST_REQUEST, BALANCE_LEAST_CONNECTIONS};
    for (size_t m = 0; m < iso_countof(ids); m++) {
        struct simulation sim = {0};
        fixture_open(&sim.f, ids[m], 10, NULL);
        for (uint32_t i = 0; i < 10; i++)
            sim.service[i] = i == 3 ? 2000 : 100;
        run_closed_loop(&sim);
        assert_true(share_of(&sim, 3) < 0.02);
        fixture_close(&sim.f);
    }
}

static void equal_speed_gives_the_weighted_share_C_109(void **state)
{
    static const uint32_t weights[] = {4, 1, 4, 1, 4, 1, 4, 1, 4, 1};
    for (uint32_t n = 2; n <= 10; n += 8) {
        struct simulation sim = {0};
        fixture_open(&sim.f, BALANCE_P2C_LEAST_REQUEST, n, weights);
        for (uint32_t i = 0; i < n; i++)
            sim.service[i] = 100;
        run_closed_loop(&sim);
        for (uint32_t i = 0; i < n; i++)
            assert_within(share_of(&sim, i), weights[i] / (2.5 * n), 0.1);
        fixture_close(&sim.f);
    }
}

/* With two targets both are always looked at, so the busier one never gets the request. */
static void the_two_drawn_are_different_C_109(void **state)
{
    static const uint32_t weights[][2] = {{1, 1}, {65535, 65535}, {65535, 1}};
    for (size_t w = 0; w < iso_countof(weights); w++) {
        struct fixture f;
        fixture_open(&f, BALANCE_P2C_LEAST_REQUEST, 2, weights[w]);
        for (uint32_t k = 0; k < 10000; k++) {
            f.loads[0] = k % 2 * 1000000;
            f.loads[1] = (k + 1) % 2 * 1000000;
            assert_int_equal(fixture_pick(&f), k % 2);
        }
        fixture_close(&f);
    }
}

static void two_of_many_are_different_too(void **state)
{
    struct fixture f;
    fixture_open(&f, BALANCE_P2C_LEAST_REQUEST, 300, NULL);
    for (uint32_t i = 0; i < 300; i++)
        fixture_set_eligible(&f, i, i == 7 || i == 250);
    f.loads[250] = 1;
    for (uint32_t k = 0; k < 1000; k++)
        assert_int_equal(fixture_pick(&f), 7);
    fixture_close(&f);
}

static void an_idle_pool_is_used_by_weight_B5(void **state)
{
    struct fixture f;
    uint32_t counts[3];
    fixture_open(&f, BALANCE_P2C_LEAST_REQUEST, 3, (uint32_t[]){1, 2, 7});
    fixture_count(&f, 1000000, counts);
    assert_within(counts[0], 100000, 0.02);
    assert_within(counts[1], 200000, 0.02);
    assert_within(counts[2], 700000, 0.02);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_server_gets_under_two_percent_C_109),
        cmocka_unit_test(equal_speed_gives_the_weighted_share_C_109),
        cmocka_unit_test(the_two_drawn_are_different_C_109),
        cmocka_unit_test(two_of_many_are_different_too),
        cmocka_unit_test(an_idle_pool_is_used_by_weight_B5),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
