/* SPDX-License-Identifier: Apache-2.0 */
/* What faults of targets do to clients: 500 targets in three zones, each scenario with the curve that it must
 * follow. docs/simulation.md has the timelines; ISOBAR_WRITE_DOCS=1 writes them. */
#include "world.h"

#include "core/log.h"
#include "golden.h"

enum { N = 500, RATE = 10000 };

#define CHECKS    "health_check: {type: http, path: /healthz, interval_s: 5, timeout_ms: 2000}\n    "
#define ROUND     "algorithm: round_robin\n    " CHECKS
#define UNTIL_END (world->n_seconds)

static struct world *world; /* of the test that runs; ended behind it, whatever came of it */

/* Puts the timeline into the document. */
static void finish(const char *name, uint32_t every)
{
    struct text out;
    text_init(&out);
    world_print(world, every, &out);
    golden_check("docs/simulation.md", name, text_slice(&out));
    text_fini(&out);
}

static int end_world(void **state)
{
    if (world && getenv("ISOBAR_SIM_PRINT")) {
        struct text out;
        text_init(&out);
        world_print(world, 1, &out);
        fputs(out.data, stdout);
        text_fini(&out);
    }
    if (world)
        world_free(world);
    world = NULL;
    return 0;
}

static void at_least(double is, double least)
{
    if (is < least)
        fail_msg("%.4f, must be at least %.4f", is, least);
}

static void at_most(double is, double most)
{
    if (is > most)
        fail_msg("%.4f, must be at most %.4f", is, most);
}

static void one_slow_host_gets_little_and_stays_in_C_109(void **state)
{
    world = world_new(N, RATE, "algorithm: p2c_least_request\n    " CHECKS);
    world->is_watched[7] = true;
    world_run(world, 10);
    world->targets[7].latency_us *= 100;
    world_run(world, 40);
    double fair = 1.0 / N;
    at_least(world_watched_share(world, 0, 10), fair * 0.9);
    at_most(world_watched_share(world, 15, 50), fair * 0.35);
    at_least(world_goodput(world, 0, 49), 0.999);
    assert_int_equal(world->seconds[49].usable, N); /* slow is no failure */
    world->targets[7].latency_us /= 100;
    world_run(world, 20);
    at_least(world_watched_share(world, 60, 70), fair * 0.9);
    finish("slow-host", 5);
}

/* 70 % of the targets get a version that fails checks and requests. Until checks have told, errors are what
 * the bad ones are asked; then health cannot be right and everybody is asked: never less is served than the
 * share of hosts that still answer. */
static void a_bad_deploy_serves_what_can_be_served_D5(void **state)
{
    world = world_new(N, RATE, ROUND);
    world_run(world, 5);
    for (uint32_t i = 0; i < N; i++)
        if (i % 10 < 7) {
            world->targets[i].check = SIM_CHECK_FAILS;
            world->targets[i].failing_pct = 100;
        }
    world_run(world, 60);
    at_least(world_worst_second(world, 6, 65), 0.30 - 0.005);
    assert_true(world->seconds[64].is_panicking);
    for (uint32_t i = 0; i < N; i++) {
        world->targets[i].check = SIM_CHECK_PASSES;
        world->targets[i].failing_pct = 0;
    }
    world_run(world, 60);
    at_least(world_worst_second(world, 66, UNTIL_END), 0.99); /* at once: panic asks all, and all answer */
    assert_false(world->seconds[UNTIL_END - 1].is_panicking);
    assert_int_equal(world->seconds[UNTIL_END - 1].usable, N);
    finish("bad-deploy", 5);
}

/* The same below the threshold: 40 % are bad, and leave. */
static void a_minority_of_bad_hosts_is_taken_out_D1(void **state)
{
    world = world_new(N, RATE, ROUND);
    world_run(world, 5);
    for (uint32_t i = 0; i < N; i++)
        if (i % 10 < 4) {
            world->targets[i].check = SIM_CHECK_FAILS;
            world->targets[i].failing_pct = 100;
        }
    world_run(world, 40);
    at_least(world_worst_second(world, 6, 45), 0.60 - 0.005);
    at_least(world_worst_second(world, 25, 45), 0.999);
    assert_int_equal(world->seconds[44].usable, N * 6 / 10);
    assert_false(world->seconds[44].is_panicking);
    finish("minority", 5);
}

/* One zone goes dark: nothing answers there, neither checks nor requests. A second try elsewhere hides it
 * from clients until checks have taken the zone out. */
static void a_dark_zone_costs_no_more_than_the_requests_that_may_not_be_repeated(void **state)
{
    world = world_new(N, RATE, ROUND);
    world->attempts = 2;
    world_run(world, 5);
    for (uint32_t i = 0; i < N; i++)
        if (world->targets[i].zone == 1) {
            world->targets[i].check = SIM_CHECK_HANGS;
            world->targets[i].refuses = true;
            world->is_watched[i] = true;
        }
    world_run(world, 45);
    /* Two tries that both meet the zone: a ninth at most, and less as the first of it are out. */
    at_least(world_worst_second(world, 6, 50), 1 - 1.0 / 9 - 0.01);
    at_least(world_worst_second(world, 28, 50), 0.999);
    at_most(world_watched_share(world, 28, 50), 0.001);
    for (uint32_t i = 0; i < N; i++) {
        world->targets[i].check = SIM_CHECK_PASSES;
        world->targets[i].refuses = false;
    }
    world_run(world, 60);
    at_least(world_watched_share(world, 100, 110), 1.0 / 3 - 0.01);
    finish("dark-zone", 5);
}

/* One host fails for three seconds, serves for three, and so on for ten minutes: it is ejected for longer
 * each time, so it costs ever less. */
static void a_flapping_host_is_kept_out_for_longer_each_time_D2(void **state)
{
    world = world_new(N, 20000, ROUND);
    uint32_t bad[2] = {0};
    world->is_watched[3] = true;
    for (uint32_t i = 0; i < 200; i++) {
        world->targets[3].failing_pct = i % 2 ? 0 : 100;
        world_run(world, 3);
    }
    for (uint32_t s = 0; s < 600; s++)
        bad[s >= 300] += world->seconds[s].failed;
    const struct health_status *health = &world->group->targets[3]->health;
    uint64_t ejections =
        atomic_load_explicit(&((struct health_status *)health)->ejections, memory_order_relaxed);
    assert_in_range(ejections, 3, 12);
    assert_in_range(world_transitions(world), N, N + 2 * 12);
    at_most(world_watched_share(world, 300, 600), 0.5 / N);
    assert_true(bad[1] <= bad[0]);
    at_least(world_worst_second(world, 1, 599), 0.995);
    finish("flapping", 30);
}

/* The checkers lose one zone while requests still get there: fewer hosts serve, nobody notices. */
static void checkers_that_lose_a_zone_take_it_out_without_loss(void **state)
{
    world = world_new(N, RATE, ROUND);
    world_run(world, 5);
    for (uint32_t i = 0; i < N; i++)
        if (world->targets[i].zone == 2)
            world->targets[i].check = SIM_CHECK_HANGS;
    world_run(world, 40);
    at_least(world_worst_second(world, 1, 45), 0.99);
    assert_int_equal(world->seconds[44].unhealthy, N / WORLD_ZONES);
    assert_false(world->seconds[44].is_panicking);
    finish("partition-zone", 5);
}

/* The checkers lose all targets: that cannot be true of all at once, so health is ignored. */
static void checkers_that_lose_everything_change_nothing_D5(void **state)
{
    world = world_new(N, RATE, ROUND);
    world_run(world, 5);
    for (uint32_t i = 0; i < N; i++)
        world->targets[i].check = SIM_CHECK_HANGS;
    world_run(world, 60);
    at_least(world_worst_second(world, 1, 65), 0.99);
    assert_true(world->seconds[64].is_panicking);
    for (uint32_t i = 0; i < N; i++)
        world->targets[i].check = SIM_CHECK_PASSES;
    world_run(world, 40);
    at_least(world_worst_second(world, 65, UNTIL_END), 0.99);
    assert_false(world->seconds[UNTIL_END - 1].is_panicking);
    finish("partition-all", 5);
}

/* A fifth of the hosts restarts at once: they come back with a share that grows over slow_start_s. */
static void a_mass_restart_starts_slowly_C_100(void **state)
{
    enum { RAMP_S = 30 };
    world = world_new(N, RATE, ROUND "slow_start_s: 30\n    ");
    world->attempts = 2;
    world_run(world, 10);
    for (uint32_t i = 0; i < N; i++)
        if (i % 5 == 0) {
            world->is_watched[i] = true;
            world->targets[i].check = SIM_CHECK_REFUSED;
            world->targets[i].refuses = true;
        }
    world_run(world, 30);
    assert_int_equal(world->seconds[39].usable, N * 4 / 5);
    for (uint32_t i = 0; i < N; i++) {
        world->targets[i].check = SIM_CHECK_PASSES;
        world->targets[i].refuses = false;
    }
    uint32_t back = 0;
    for (uint32_t s = 0; s < 60; s++) {
        world_run(world, 1);
        if (!back && world->seconds[world->n_seconds - 1].usable == N)
            back = world->n_seconds;
    }
    /* The first came back up to an interval and a second check before the last: the curve lies between. */
    assert_in_range(back, 41, 55);
    for (uint32_t s = back; s < UNTIL_END; s++) /* nobody is ejected for what was before it was out */
        assert_int_equal(world->seconds[s].ejected, 0);
    for (uint32_t s = 0; s + 5 < RAMP_S; s += 5) {
        double share = world_watched_share(world, back + s, back + s + 1);
        double least = 0.2 * s / RAMP_S / (0.8 + 0.2 * s / RAMP_S), late = s + 15 > RAMP_S ? RAMP_S : s + 15;
        double most = 0.2 * late / RAMP_S / (0.8 + 0.2 * late / RAMP_S);
        at_least(share, least - 0.01);
        at_most(share, most + 0.01);
    }
    at_least(world_watched_share(world, back + RAMP_S + 5, UNTIL_END), 0.195);
    at_least(world_worst_second(world, 40, UNTIL_END), 0.99);
    finish("slow-start", 5);
}

/* All restart at once: nobody is refused because everybody starts slowly. */
static void a_restart_of_all_refuses_nobody_once_they_are_back_C_100(void **state)
{
    world = world_new(N, RATE, ROUND "slow_start_s: 30\n    ");
    world_run(world, 5);
    for (uint32_t i = 0; i < N; i++) {
        world->targets[i].check = SIM_CHECK_REFUSED;
        world->targets[i].refuses = true;
    }
    world_run(world, 20);
    for (uint32_t i = 0; i < N; i++) {
        world->targets[i].check = SIM_CHECK_PASSES;
        world->targets[i].refuses = false;
    }
    world_run(world, 45);
    at_least(world_worst_second(world, 26, UNTIL_END), 0.99);
    uint32_t no_target = 0;
    for (uint32_t s = 26; s < UNTIL_END; s++)
        no_target += world->seconds[s].no_target;
    assert_int_equal(no_target, 0);
    finish("restart-of-all", 5);
}

/* Something that all targets share fails: every answer is a 500 for half a minute, then a fifth of them for a
 * minute. No more than a tenth is ejected, so all is well at once when it is over. */
static void failures_that_all_share_eject_a_tenth_at_most_D4(void **state)
{
    world = world_new(N, RATE, ROUND);
    world_run(world, 5);
    for (uint32_t i = 0; i < N; i++)
        world->targets[i].failing_pct = 100;
    world_run(world, 30);
    for (uint32_t i = 0; i < N; i++)
        world->targets[i].failing_pct = 20;
    world_run(world, 60);
    for (uint32_t i = 0; i < N; i++)
        world->targets[i].failing_pct = 0;
    world_run(world, 30);
    for (uint32_t s = 0; s < UNTIL_END; s++)
        assert_in_range(world->seconds[s].ejected, 0, N / 10);
    at_least(world_worst_second(world, 36, 95), 0.78);
    at_least(world_worst_second(world, 96, UNTIL_END), 0.995);
    finish("shared-failure", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(one_slow_host_gets_little_and_stays_in_C_109, end_world),
        cmocka_unit_test_teardown(a_bad_deploy_serves_what_can_be_served_D5, end_world),
        cmocka_unit_test_teardown(a_minority_of_bad_hosts_is_taken_out_D1, end_world),
        cmocka_unit_test_teardown(a_dark_zone_costs_no_more_than_the_requests_that_may_not_be_repeated,
                                  end_world),
        cmocka_unit_test_teardown(a_flapping_host_is_kept_out_for_longer_each_time_D2, end_world),
        cmocka_unit_test_teardown(checkers_that_lose_a_zone_take_it_out_without_loss, end_world),
        cmocka_unit_test_teardown(checkers_that_lose_everything_change_nothing_D5, end_world),
        cmocka_unit_test_teardown(a_mass_restart_starts_slowly_C_100, end_world),
        cmocka_unit_test_teardown(a_restart_of_all_refuses_nobody_once_they_are_back_C_100, end_world),
        cmocka_unit_test_teardown(failures_that_all_share_eject_a_tenth_at_most_D4, end_world),
    };
    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
