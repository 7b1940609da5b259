/* SPDX-License-Identifier: Apache-2.0 */
#include "health/health.h"

#include "core/clock.h"
#include "core/log.h"
#include "health/states.h"
#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/stat.h>

static struct config_status_range good[] = {{200, 399}};
static const struct config_health_check quick = {.type = CONFIG_HEALTH_HTTP,
                                                 .path = SLICE("/"),
                                                 .method = SLICE("GET"),
                                                 .expect = good,
                                                 .n_expect = 1,
                                                 .interval_ms = 40,
                                                 .timeout_ms = 10000,
                                                 .healthy_threshold = 2,
                                                 .unhealthy_threshold = 3};
static const struct config_health_check none = {.type = CONFIG_HEALTH_NONE, .interval_ms = 1000};

struct target {
    struct health_status status;
    _Atomic uint32_t epoch;
};

static struct health_spec spec_of(struct target *target, const char *name, const struct net_addr *addr,
                                  const struct config_health_check *check)
{
    target->status.epoch = &target->epoch;
    return (struct health_spec){.group = SLICE("web"),
                                .name = slice_str(name),
                                .addr = *addr,
                                .check = check,
                                .status = &target->status,
                                .enabled = true};
}

static struct net_addr nowhere(void)
{
    struct net_addr addr;
    struct ip_addr ip;
    ip_parse(SLICE("127.0.0.1"), &ip);
    net_addr_ip(&addr, &ip, 1);
    return addr;
}

static enum target_state state_of(const struct target *target)
{
    return atomic_load(&((struct target *)target)->status.state);
}

/* Waits for what the health thread will do; a test that fails waits ten seconds. */
#define await(condition)                                                                                     \
    do {                                                                                                     \
        uint64_t until_ns = clock_mono_ns() + 10 * NS_PER_S;                                                 \
        while (!(condition) && clock_mono_ns() < until_ns)                                                   \
            usleep(1000);                                                                                    \
        assert_true(condition);                                                                              \
    } while (0)

static struct health *start(void)
{
    struct health *health;
    assert_int_equal(health_start(&health), ISO_OK);
    return health;
}

static void a_good_new_target_is_active_after_its_quick_start(void **state)
{
    struct health *health = start();
    struct target target = {0};
    struct peer peer;
    struct config_health_check slow = quick;
    slow.interval_ms = 60000; /* the quick start does not wait for it */
    peer_start(&peer, peer_by_mood, NULL);
    struct health_spec spec = spec_of(&target, "a", &peer.addr, &slow);
    health_apply(health, &spec, 1);
    assert_true(health_settle(health, 10000));
    assert_int_equal(state_of(&target), TARGET_ACTIVE);
    assert_int_equal(atomic_load(&target.epoch), 1);
    assert_int_equal(atomic_load(&target.status.transitions), 1);
    assert_int_equal(atomic_load(&target.status.reason), HEALTH_REASON_OK);
    assert_int_equal(atomic_load(&target.status.checks), 2);
    assert_int_equal(atomic_load(&target.status.http_status), 200);
    health_stop(&health);
    peer_stop(&peer);
}

static void a_target_that_fails_and_recovers_follows_with_one_line_each_C_095(void **state)
{
    struct health *health = start();
    struct target target = {0};
    struct peer peer;
    FILE *lines = tmpfile();
    int saved = dup(STDERR_FILENO);
    dup2(fileno(lines), STDERR_FILENO);
    peer_start(&peer, peer_by_mood, NULL);
    struct health_spec spec = spec_of(&target, "a", &peer.addr, &quick);
    health_apply(health, &spec, 1);
    await(state_of(&target) == TARGET_ACTIVE);
    atomic_store(&peer.is_bad, true);
    await(state_of(&target) == TARGET_UNHEALTHY);
    atomic_store(&peer.is_bad, false);
    await(state_of(&target) == TARGET_ACTIVE);
    health_stop(&health);
    dup2(saved, STDERR_FILENO);
    close(saved);
    peer_stop(&peer);

    char line[256];
    static const char *const want[] = {
        "notice: target web a is active (was pending): ok, answered 200\n",
        "warning: target web a is unhealthy (was active): status, answered 503\n",
        "notice: target web a is active (was unhealthy): ok, answered 200\n"};
    rewind(lines);
    for (size_t i = 0; i < iso_countof(want); i++) {
        assert_non_null(fgets(line, sizeof(line), lines));
        assert_string_equal(strstr(line, " ") + 1, want[i]);
    }
    assert_null(fgets(line, sizeof(line), lines));
    fclose(lines);
    assert_int_equal(atomic_load(&target.status.transitions), 3);
    assert_int_equal(atomic_load(&target.epoch), 3);
}

static void a_bad_new_target_stays_pending_and_comes_up_later(void **state)
{
    struct health *health = start();
    struct target target = {0};
    struct peer peer;
    peer_start(&peer, peer_by_mood, NULL);
    atomic_store(&peer.is_bad, true);
    struct health_spec spec = spec_of(&target, "a", &peer.addr, &quick);
    health_apply(health, &spec, 1);
    await(atomic_load(&target.status.failures) >= 5);
    assert_int_equal(state_of(&target), TARGET_PENDING);
    assert_int_equal(atomic_load(&target.status.transitions), 0);
    atomic_store(&peer.is_bad, false);
    await(state_of(&target) == TARGET_ACTIVE);
    health_stop(&health);
    peer_stop(&peer);
}

static void without_checks_a_target_is_active_when_applied(void **state)
{
    struct health *health = start();
    struct target target = {0};
    struct net_addr addr = nowhere();
    struct health_spec spec = spec_of(&target, "a", &addr, &none);
    health_apply(health, &spec, 1);
    assert_int_equal(state_of(&target), TARGET_ACTIVE);
    assert_int_equal(atomic_load(&target.status.reason), HEALTH_REASON_UNCHECKED);
    assert_true(health_settle(health, 0));
    health_stop(&health);
}

static void a_disabled_target_drains_and_returns_through_pending(void **state)
{
    struct health *health = start();
    struct target target = {0};
    struct peer peer;
    peer_start(&peer, peer_by_mood, NULL);
    struct health_spec spec = spec_of(&target, "a", &peer.addr, &quick);
    health_apply(health, &spec, 1);
    await(state_of(&target) == TARGET_ACTIVE);
    spec.enabled = false;
    health_apply(health, &spec, 1);
    assert_int_equal(state_of(&target), TARGET_DRAINING);
    uint64_t checks = atomic_load(&target.status.checks);
    spec.enabled = true;
    health_apply(health, &spec, 1);
    assert_int_equal(state_of(&target), TARGET_PENDING);
    assert_int_equal(atomic_load(&target.status.checks), checks);
    await(state_of(&target) == TARGET_ACTIVE);
    health_stop(&health);
    peer_stop(&peer);
}

static void a_target_that_left_is_draining_and_no_longer_touched(void **state)
{
    struct health *health = start();
    struct target *target = calloc(1, sizeof(*target)), stays = {0};
    struct peer peer;
    peer_start(&peer, peer_is_silent, NULL); /* a check is always in flight */
    struct health_spec specs[] = {spec_of(&stays, "b", &peer.addr, &none),
                                  spec_of(target, "a", &peer.addr, &quick)};
    health_apply(health, specs, 2);
    await(atomic_load(&peer.accepted) >= 1);
    health_apply(health, specs, 1);
    assert_int_equal(state_of(target), TARGET_DRAINING);
    assert_int_equal(state_of(&stays), TARGET_ACTIVE);
    free(target); /* a sanitizer would see a late write */
    health_apply(health, NULL, 0);
    health_stop(&health);
    peer_stop(&peer);
}

static void a_target_that_did_not_change_keeps_state_and_schedule(void **state)
{
    struct health *health = start();
    struct target target = {0}, other = {0};
    struct peer peer;
    struct net_addr bad = nowhere();
    struct config_health_check slow = quick;
    slow.interval_ms = 3600 * 1000;
    peer_start(&peer, peer_by_mood, NULL);
    struct health_spec specs[] = {spec_of(&target, "m", &peer.addr, &slow),
                                  spec_of(&other, "z", &bad, &slow)};
    health_apply(health, specs, 1);
    await(state_of(&target) == TARGET_ACTIVE);
    for (int i = 0; i < 5; i++) {
        specs[1].name = i % 2 ? SLICE("a") : SLICE("z"); /* before and behind it in the order */
        health_apply(health, specs, 2);
    }
    assert_int_equal(state_of(&target), TARGET_ACTIVE);
    assert_int_equal(atomic_load(&target.status.transitions), 1);
    assert_in_range(atomic_load(&target.status.checks), 2, 3); /* the next one is due within the hour */
    health_stop(&health);
    peer_stop(&peer);
}

static void new_settings_keep_the_state_and_are_in_force_at_once(void **state)
{
    static struct config_status_range teapot[] = {{418, 418}};
    struct health *health = start();
    struct target target = {0};
    struct peer peer;
    struct config_health_check slow = quick, strict = quick;
    slow.interval_ms = 3600 * 1000;
    strict.expect = teapot;
    peer_start(&peer, peer_by_mood, NULL);
    struct health_spec spec = spec_of(&target, "a", &peer.addr, &slow);
    health_apply(health, &spec, 1);
    await(state_of(&target) == TARGET_ACTIVE);
    spec.check = &strict;
    health_apply(health, &spec, 1);
    assert_int_equal(state_of(&target), TARGET_ACTIVE);
    await(state_of(&target) == TARGET_UNHEALTHY);
    spec.check = &none;
    health_apply(health, &spec, 1);
    assert_int_equal(state_of(&target), TARGET_ACTIVE);
    health_stop(&health);
    peer_stop(&peer);
}

static void hanging_targets_delay_nobody_D7(void **state)
{
    enum { HANGING = 60 };
    static struct target hanging[HANGING];
    static char names[HANGING][16];
    struct health_spec specs[HANGING + 1];
    struct health *health = start();
    struct target target = {0};
    struct peer peer, silent;
    struct config_health_check patient = quick;
    patient.timeout_ms = 60000;
    peer_start(&peer, peer_by_mood, NULL);
    peer_start(&silent, peer_is_silent, NULL);
    for (int i = 0; i < HANGING; i++) {
        snprintf(names[i], sizeof(names[i]), "h%d", i);
        specs[i] = spec_of(&hanging[i], names[i], &silent.addr, &patient);
    }
    specs[HANGING] = spec_of(&target, "z", &peer.addr, &quick);
    health_apply(health, specs, HANGING + 1);
    await(state_of(&target) == TARGET_ACTIVE);
    assert_int_equal(state_of(&hanging[0]), TARGET_PENDING);
    assert_false(health_settle(health, 1));
    health_stop(&health);
    peer_stop(&peer);
    peer_stop(&silent);
}

static void a_target_that_refuses_fails_with_its_reason(void **state)
{
    struct health *health = start();
    struct target target = {0};
    struct net_addr addr = nowhere();
    struct health_spec spec = spec_of(&target, "a", &addr, &quick);
    health_apply(health, &spec, 1);
    await(atomic_load(&target.status.failures) >= 1);
    assert_true(health_settle(health, 10000));
    assert_int_equal(atomic_load(&target.status.last_reason), HEALTH_REASON_REFUSED);
    health_stop(&health);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_new_target_is_active_after_its_quick_start),
        cmocka_unit_test(a_target_that_fails_and_recovers_follows_with_one_line_each_C_095),
        cmocka_unit_test(a_bad_new_target_stays_pending_and_comes_up_later),
        cmocka_unit_test(without_checks_a_target_is_active_when_applied),
        cmocka_unit_test(a_disabled_target_drains_and_returns_through_pending),
        cmocka_unit_test(a_target_that_left_is_draining_and_no_longer_touched),
        cmocka_unit_test(a_target_that_did_not_change_keeps_state_and_schedule),
        cmocka_unit_test(new_settings_keep_the_state_and_are_in_force_at_once),
        cmocka_unit_test(hanging_targets_delay_nobody_D7),
        cmocka_unit_test(a_target_that_refuses_fails_with_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
