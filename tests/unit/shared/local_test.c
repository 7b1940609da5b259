/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/local.h"

#include "core/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <cmocka.h>

static void a_session_keeps_its_target_until_its_time_is_over(void **state)
{
    struct local_sessions *s = local_sessions_new(64);
    uint32_t target = 0;
    assert_false(local_sessions_find(s, 7, 100, 30, &target, NULL));
    local_sessions_put(s, 7, 100, 30, 42);
    assert_true(local_sessions_find(s, 7, 101, 30, &target, NULL));
    assert_int_equal(target, 42);
    assert_false(local_sessions_find(s, 7, 131, 30, &target, NULL));
    local_sessions_free(&s);
}

static void each_use_renews_the_time_C2(void **state)
{
    struct local_sessions *s = local_sessions_new(64);
    uint32_t target;
    local_sessions_put(s, 7, 100, 30, 42);
    for (uint32_t now_s = 100; now_s < 500; now_s += 20)
        assert_true(local_sessions_find(s, 7, now_s, 30, &target, NULL));
    local_sessions_free(&s);
}

static void looking_renews_nothing(void **state)
{
    struct local_sessions *s = local_sessions_new(64);
    struct local_session session;
    local_sessions_put(s, 5, 100, 60, 9);
    for (uint32_t now_s = 100; now_s < 160; now_s += 20) {
        assert_true(local_sessions_peek(s, 5, now_s, &session));
        assert_int_equal(session.target, 9);
        assert_int_equal(session.bound_s, 100);
        assert_int_equal(session.expires_s, 160);
    }
    assert_false(local_sessions_peek(s, 5, 160, &session));
    assert_false(local_sessions_peek(s, 6, 100, &session));
    assert_true(local_sessions_drop(s, 5));
    assert_false(local_sessions_drop(s, 5));
    local_sessions_free(&s);
}

static void a_dropped_session_is_gone_and_can_be_bound_anew_C3(void **state)
{
    struct local_sessions *s = local_sessions_new(64);
    uint32_t target;
    local_sessions_put(s, 7, 100, 30, 42);
    local_sessions_drop(s, 7);
    assert_false(local_sessions_find(s, 7, 100, 30, &target, NULL));
    local_sessions_put(s, 7, 100, 30, 43);
    assert_true(local_sessions_find(s, 7, 100, 30, &target, NULL));
    assert_int_equal(target, 43);
    assert_int_equal(local_sessions_count(s, 100), 1);
    local_sessions_free(&s);
}

static void a_full_table_forgets_what_expires_first_and_stays_full(void **state)
{
    struct local_sessions *s = local_sessions_new(1024);
    uint32_t target, found = 0;
    for (uint32_t i = 0; i < 100000; i++)
        local_sessions_put(s, hash_mix64(i), 1000 + i / 100, 3000, i);
    assert_in_range(local_sessions_count(s, 2000), 900, 1024);
    for (uint32_t i = 99900; i < 100000; i++)
        found += local_sessions_find(s, hash_mix64(i), 2000, 3000, &target, NULL) && target == i;
    assert_true(found > 95);
    local_sessions_free(&s);
}

static void the_keys_that_mark_free_entries_are_keys_like_others(void **state)
{
    struct local_sessions *s = local_sessions_new(64);
    uint32_t target;
    local_sessions_put(s, 0, 100, 30, 5);
    local_sessions_put(s, 1, 100, 30, 6);
    assert_true(local_sessions_find(s, 0, 100, 30, &target, NULL));
    assert_int_equal(target, 5);
    assert_true(local_sessions_find(s, 1, 100, 30, &target, NULL));
    assert_int_equal(target, 6);
    local_sessions_free(&s);
}

struct crowd {
    struct local_sessions *sessions;
    uint32_t first;
    uint32_t wrong;
};

/* Everybody binds key k to target k: any other answer is a torn pair. */
static void *work(void *arg)
{
    struct crowd *crowd = arg;
    uint32_t target;
    for (uint32_t i = 0; i < 200000; i++) {
        uint32_t k = (i * 7 + crowd->first) % 256;
        if (local_sessions_find(crowd->sessions, hash_mix64(k), 100, 30, &target, NULL))
            crowd->wrong += target != k;
        else
            local_sessions_put(crowd->sessions, hash_mix64(k), 100, 30, k);
        if (i % 5 == 0)
            local_sessions_drop(crowd->sessions, hash_mix64((k + 3) % 256));
    }
    return NULL;
}

static void workers_never_see_the_target_of_another_session(void **state)
{
    struct local_sessions *s = local_sessions_new(64);
    struct crowd crowd[3] = {{s, 0, 0}, {s, 1, 0}, {s, 2, 0}};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd[i]), 0);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(crowd[i].wrong, 0);
    }
    local_sessions_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_keeps_its_target_until_its_time_is_over),
        cmocka_unit_test(each_use_renews_the_time_C2),
        cmocka_unit_test(looking_renews_nothing),
        cmocka_unit_test(a_dropped_session_is_gone_and_can_be_bound_anew_C3),
        cmocka_unit_test(a_full_table_forgets_what_expires_first_and_stays_full),
        cmocka_unit_test(the_keys_that_mark_free_entries_are_keys_like_others),
        cmocka_unit_test(workers_never_see_the_target_of_another_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
