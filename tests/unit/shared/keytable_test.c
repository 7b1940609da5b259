/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/keytable.h"

#include "core/hash.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/* The first word says what forgetting costs. */
static uint64_t weigh_first_word(const void *context, const _Atomic uint64_t *words, uint64_t now)
{
    return atomic_load_explicit((_Atomic uint64_t *)words, memory_order_relaxed);
}

static struct keytable *table_of(uint32_t keys, uint32_t words)
{
    return keytable_new(keys, words, weigh_first_word, NULL);
}

static void set_weight(struct keytable *table, uint64_t key, uint64_t weight)
{
    atomic_store(keytable_get(table, key, 0), weight);
}

static void a_key_has_the_same_words_each_time_and_they_begin_with_zero(void **state)
{
    struct keytable *table = table_of(1000, 8);
    assert_null(keytable_find(table, hash_mix64(1)));
    _Atomic uint64_t *words = keytable_get(table, hash_mix64(1), 0);
    for (int i = 0; i < 8; i++)
        assert_int_equal(atomic_load(&words[i]), 0);
    assert_ptr_equal(keytable_get(table, hash_mix64(1), 0), words);
    assert_ptr_equal(keytable_find(table, hash_mix64(1)), words);
    assert_ptr_not_equal(keytable_get(table, hash_mix64(2), 0), words);
    keytable_free(&table);
}

static void there_is_room_for_as_many_keys_as_asked_for(void **state)
{
    struct keytable *table = table_of(1, 1);
    assert_int_equal(keytable_capacity(table), KEYTABLE_WAYS);
    for (uint64_t key = 1; key <= KEYTABLE_WAYS; key++)
        set_weight(table, key << 32, key);
    for (uint64_t key = 1; key <= KEYTABLE_WAYS; key++)
        assert_int_equal(atomic_load(keytable_find(table, key << 32)), key);
    assert_int_equal(keytable_evicted(table), 0);
    keytable_free(&table);
}

static void a_full_set_gives_up_the_lightest_key_and_counts_what_was_lost(void **state)
{
    struct keytable *table = table_of(1, 1);
    for (uint64_t key = 1; key <= KEYTABLE_WAYS; key++)
        set_weight(table, key << 32, key == 3 ? 10 : 100 + key);
    assert_int_equal(atomic_load(keytable_get(table, 99ull << 32, 0)), 0);
    assert_null(keytable_find(table, 3ull << 32));
    assert_int_equal(keytable_evicted(table), 1);
    for (uint64_t key = 100; key < 200; key++)
        keytable_get(table, key << 32, 0); /* each weighs nothing and gives way to the next */
    assert_int_equal(keytable_evicted(table), 1);
    assert_non_null(keytable_find(table, 1ull << 32));
    keytable_free(&table);
}

static void a_key_that_comes_back_begins_with_zero_again(void **state)
{
    struct keytable *table = table_of(1, 2);
    set_weight(table, 1ull << 32, 1);
    atomic_store(keytable_find(table, 1ull << 32) + 1, 77);
    for (uint64_t key = 2; key < 10; key++)
        set_weight(table, key << 32, 1000);
    assert_null(keytable_find(table, 1ull << 32));
    _Atomic uint64_t *words = keytable_get(table, 1ull << 32, 0);
    assert_int_equal(atomic_load(&words[0]), 0);
    assert_int_equal(atomic_load(&words[1]), 0);
    keytable_free(&table);
}

enum { THREADS = 4, ROUNDS = 20000, KEYS = 5000 };

struct crowd {
    struct keytable *table;
    pthread_barrier_t *start;
    uint64_t seed;
};

/* All threads meet before each key, so that they add it at the same time. */
static void *count_each_key_once(void *arg)
{
    struct crowd *crowd = arg;
    for (uint64_t key = 0; key < KEYS; key++) {
        if (key % 64 == 0)
            pthread_barrier_wait(crowd->start);
        atomic_fetch_add(keytable_get(crowd->table, hash_mix64(key), 0), 1);
    }
    return NULL;
}

static void run_crowd(struct keytable *table, void *(*work)(void *))
{
    pthread_t threads[THREADS];
    struct crowd crowd[THREADS];
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){table, &start, (uint64_t)i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &crowd[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&start);
}

static void workers_that_add_a_key_at_once_get_the_same_words(void **state)
{
    struct keytable *table = table_of(KEYS * 8, 1);
    run_crowd(table, count_each_key_once);
    for (uint64_t key = 0; key < KEYS; key++)
        assert_int_equal(atomic_load(keytable_find(table, hash_mix64(key))), THREADS);
    keytable_free(&table);
}

/* Many more keys than fit: sets change hands all the time, while one heavy key in each stays. */
static void *flood(void *arg)
{
    struct crowd *crowd = arg;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        keytable_get(crowd->table, hash_mix64(crowd->seed << 40 | i), 0);
        atomic_fetch_add(keytable_get(crowd->table, hash_mix64(i % 4 + (1ull << 60)), 0), 1ull << 20);
    }
    return NULL;
}

static void heavy_keys_survive_a_flood_of_light_ones_and_lose_nothing(void **state)
{
    struct keytable *table = table_of(64, 1);
    for (uint64_t i = 0; i < 4; i++)
        set_weight(table, hash_mix64(i + (1ull << 60)), 1);
    run_crowd(table, flood);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 4; i++)
        sum += atomic_load(keytable_find(table, hash_mix64(i + (1ull << 60)))) >> 20;
    assert_int_equal(sum, THREADS * ROUNDS);
    keytable_free(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_has_the_same_words_each_time_and_they_begin_with_zero),
        cmocka_unit_test(there_is_room_for_as_many_keys_as_asked_for),
        cmocka_unit_test(a_full_set_gives_up_the_lightest_key_and_counts_what_was_lost),
        cmocka_unit_test(a_key_that_comes_back_begins_with_zero_again),
        cmocka_unit_test(workers_that_add_a_key_at_once_get_the_same_words),
        cmocka_unit_test(heavy_keys_survive_a_flood_of_light_ones_and_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
