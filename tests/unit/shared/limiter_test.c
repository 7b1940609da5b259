/* SPDX-License-Identifier: Apache-2.0 */
/* In virtual time: `now` is whatever a test says it is. */
#include "shared/limiter.h"

#include "core/check.h"
#include "core/clock.h"
#include "core/hash.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define START_NS (1000 * NS_PER_S + 123456789)

static struct limiter *bucket_of(uint32_t requests, uint64_t period_ns, uint32_t burst)
{
    struct limiter_policy policy = {LIMITER_TOKEN_BUCKET, requests, period_ns, burst};
    return limiter_new(&policy, 1000);
}

static struct limiter *window_of(uint32_t requests, uint64_t period_ns)
{
    struct limiter_policy policy = {LIMITER_SLIDING_WINDOW, requests, period_ns, 0};
    return limiter_new(&policy, 1000);
}

static struct limiter_verdict take(struct limiter *limiter, uint64_t key, uint64_t now_ns)
{
    struct limiter_verdict verdict;
    limiter_take(limiter, key, now_ns, &verdict);
    return verdict;
}

static uint32_t passing(struct limiter *limiter, uint64_t key, uint64_t now_ns, uint32_t requests)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < requests; i++)
        n += take(limiter, key, now_ns).passes;
    return n;
}

static void a_bucket_passes_its_burst_at_once_C_131(void **state)
{
    struct limiter *limiter = bucket_of(10, NS_PER_S, 5);
    assert_int_equal(passing(limiter, 1, START_NS, 30), 5);
    assert_int_equal(passing(limiter, 1, START_NS + NS_PER_MS, 30), 0);
    assert_int_equal(passing(limiter, 1, START_NS + 100 * NS_PER_MS, 30), 1);
    assert_int_equal(passing(limiter, 1, START_NS + 100 * NS_PER_S, 30), 5);
    limiter_free(&limiter);
}

static void a_load_paced_at_the_rate_is_never_refused_C_131(void **state)
{
    struct limiter *limiters[] = {bucket_of(10, NS_PER_S, 5), bucket_of(10, NS_PER_S, 1),
                                  window_of(10, NS_PER_S)};
    for (size_t i = 0; i < iso_countof(limiters); i++) {
        for (uint64_t k = 0; k < 600; k++)
            assert_true(take(limiters[i], 1, START_NS + k * 100 * NS_PER_MS).passes);
        limiter_free(&limiters[i]);
    }
}

static void a_fast_load_below_the_rate_is_never_refused_C_131(void **state)
{
    struct limiter *limiters[] = {bucket_of(20000, NS_PER_S, 1), window_of(20000, NS_PER_S)};
    for (size_t i = 0; i < iso_countof(limiters); i++) {
        for (uint64_t k = 0; k < 19000 * 5; k++)
            assert_true(take(limiters[i], 1, START_NS + k * NS_PER_S / 19000).passes);
        limiter_free(&limiters[i]);
    }
}

static void a_bucket_passes_burst_and_rate_times_time_to_the_token(void **state)
{
    static const struct {
        uint32_t requests, burst;
        uint64_t period_s;
    } cases[] = {{3, 2, 1}, {7, 20, 1}, {1000, 50, 60}, {999983, 3, 1}, {1, 1, 3600}, {100, 100, 7}};
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct limiter *limiter = bucket_of(cases[i].requests, cases[i].period_s * NS_PER_S, cases[i].burst);
        uint64_t period_ns = cases[i].period_s * NS_PER_S, quarters = 4ull * cases[i].requests, n = 0;
        /* Four attempts in each token's time, for 2,000 tokens. */
        for (uint64_t k = 0; k < 8000; k++)
            n += take(limiter, 1, START_NS + (k * period_ns + quarters - 1) / quarters).passes;
        assert_int_equal(n, cases[i].burst + 7999 / 4);
        limiter_free(&limiter);
    }
}

static void refused_requests_take_nothing_C_131(void **state)
{
    struct limiter *limiters[] = {bucket_of(2, NS_PER_S, 2), window_of(2, NS_PER_S)};
    for (size_t i = 0; i < iso_countof(limiters); i++) {
        assert_int_equal(passing(limiters[i], 1, START_NS, 1000), 2);
        for (uint64_t ms = 1; ms < 490; ms++)
            assert_false(take(limiters[i], 1, START_NS + ms * NS_PER_MS).passes);
        assert_int_equal(passing(limiters[i], 1, START_NS + 2 * NS_PER_S, 10), 2);
        limiter_free(&limiters[i]);
    }
}

/* What retry_ns promises is kept to the nanosecond, and a nanosecond earlier is too early. */
static void a_client_that_waits_as_told_passes_C_131(void **state)
{
    struct limiter *limiters[] = {bucket_of(7, NS_PER_S, 3), window_of(7, NS_PER_S), window_of(1, NS_PER_S),
                                  window_of(100, 60 * NS_PER_S)};
    for (size_t i = 0; i < iso_countof(limiters); i++) {
        uint64_t now_ns = START_NS;
        for (int round = 0; round < 200; round++) {
            struct limiter_verdict verdict = take(limiters[i], 1, now_ns);
            if (verdict.passes) {
                now_ns += (uint64_t)(round % 5) * 37 * NS_PER_MS;
                continue;
            }
            assert_true(verdict.retry_ns > 0);
            assert_false(take(limiters[i], 1, now_ns + verdict.retry_ns - 1).passes);
            now_ns += verdict.retry_ns;
            assert_true(take(limiters[i], 1, now_ns).passes);
        }
        limiter_free(&limiters[i]);
    }
}

static void what_remains_is_what_passes(void **state)
{
    struct limiter *limiters[] = {bucket_of(50, NS_PER_S, 20), window_of(20, NS_PER_S)};
    for (size_t i = 0; i < iso_countof(limiters); i++) {
        for (uint32_t used = 1; used <= 20; used++) {
            struct limiter_verdict verdict = take(limiters[i], 1, START_NS);
            assert_true(verdict.passes);
            assert_int_equal(verdict.limit, 20);
            assert_int_equal(verdict.remaining, 20 - used);
        }
        struct limiter_verdict verdict = take(limiters[i], 1, START_NS);
        assert_false(verdict.passes);
        assert_int_equal(verdict.remaining, 0);
        assert_int_equal(take(limiters[i], 1, START_NS + verdict.reset_ns).remaining, 19);
        limiter_free(&limiters[i]);
    }
}

/* Against a list of every request that passed, with random loads: no window ever holds more than the limit
 * and what the piece that it is leaving may hide, and nothing is refused that a window of eight sevenths of
 * the period has room for. */
static void a_window_is_exact_but_for_the_piece_that_it_leaves(void **state)
{
    enum { LIMIT = 40, N = 20000 };
    uint64_t *passed = calloc(N, sizeof(*passed)), now_ns = START_NS, n = 0, first = 0, wide = 0, most = 0;
    struct limiter *limiter = window_of(LIMIT, NS_PER_S);
    uint64_t random = 1, burst = 0;
    for (int k = 0; k < N; k++) {
        random = hash_mix64(random + 0x9e3779b97f4a7c15ull);
        if (burst-- == 0) { /* bursts and pauses */
            burst = random % 60;
            now_ns += random % (400 * NS_PER_MS);
        }
        now_ns += random % (10 * NS_PER_MS);
        while (first < n && passed[first] + NS_PER_S <= now_ns)
            first++;
        while (wide < n && passed[wide] + NS_PER_S * 8 / 7 + 8 <= now_ns)
            wide++;
        bool passes = take(limiter, 1, now_ns).passes;
        if (n - wide < LIMIT)
            assert_true(passes);
        if (passes)
            passed[n++] = now_ns;
        most = n - first > most ? n - first : most;
    }
    assert_in_range(most, LIMIT, LIMIT + LIMIT * 2 / 5);
    assert_true(n > N / 10);
    free(passed);
    limiter_free(&limiter);
}

static void an_even_load_above_the_limit_gets_the_limit_in_every_window(void **state)
{
    enum { LIMIT = 100 };
    struct limiter *limiter = window_of(LIMIT, NS_PER_S);
    uint32_t n = 0;
    for (uint64_t ms = 0; ms < 60000; ms++) /* ten times the limit */
        n += take(limiter, 1, START_NS + ms * NS_PER_MS).passes;
    assert_in_range(n, 58 * LIMIT, 61 * LIMIT);
    limiter_free(&limiter);
}

static void clients_have_limits_of_their_own(void **state)
{
    struct limiter *limiter = bucket_of(10, NS_PER_S, 5);
    for (uint64_t key = 0; key < 100; key++)
        assert_int_equal(passing(limiter, hash_mix64(key), START_NS, 10), 5);
    assert_int_equal(limiter_evicted(limiter), 0);
    limiter_free(&limiter);
}

/* Rotating addresses does not free the one that is being refused: it has used more than any of them. */
static void a_flood_of_clients_does_not_reset_one_that_is_limited(void **state)
{
    struct limiter_policy policies[] = {{LIMITER_TOKEN_BUCKET, 10, 10 * NS_PER_S, 10},
                                        {LIMITER_SLIDING_WINDOW, 10, 10 * NS_PER_S, 0}};
    for (size_t p = 0; p < iso_countof(policies); p++) {
        struct limiter *limiter = limiter_new(&policies[p], 1000);
        uint64_t now_ns = START_NS;
        assert_int_equal(passing(limiter, hash_mix64(7), now_ns, 10), 10);
        for (uint64_t i = 0; i < 100000; i++) {
            assert_true(take(limiter, hash_mix64(i + 1000), now_ns).passes);
            assert_false(take(limiter, hash_mix64(7), now_ns).passes);
        }
        assert_true(limiter_evicted(limiter) > 90000);
        limiter_free(&limiter);
    }
}

static void clients_whose_limit_is_whole_again_are_forgotten_first_and_at_no_cost(void **state)
{
    struct limiter *limiter = bucket_of(10, NS_PER_S, 10);
    for (uint64_t round = 0; round < 50; round++)
        for (uint64_t i = 0; i < 100; i++)
            take(limiter, hash_mix64(round * 100 + i), START_NS + round * NS_PER_S);
    assert_int_equal(limiter_evicted(limiter), 0);
    limiter_free(&limiter);
}

enum { THREADS = 4, ATTEMPTS = 60000 };

struct crowd {
    struct limiter *limiter;
    pthread_barrier_t *start;
    uint64_t skew_ns; /* each worker's clock is that of its turn */
    uint32_t passed;
};

/* The same client on all workers, ten times as fast as it may. */
static void *attack(void *arg)
{
    struct crowd *crowd = arg;
    pthread_barrier_wait(crowd->start);
    for (uint64_t i = 0; i < ATTEMPTS; i++)
        crowd->passed += take(crowd->limiter, 42, START_NS + i * 25 * NS_PER_US + crowd->skew_ns).passes;
    return NULL;
}

static uint32_t attack_with_skew(struct limiter *limiter, uint64_t skew_ns)
{
    pthread_t threads[THREADS];
    struct crowd crowd[THREADS];
    pthread_barrier_t start;
    uint32_t passed = 0;
    assert_int_equal(pthread_barrier_init(&start, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        crowd[i] = (struct crowd){limiter, &start, (uint64_t)i * skew_ns, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, attack, &crowd[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        passed += crowd[i].passed;
    }
    pthread_barrier_destroy(&start);
    return passed;
}

/* 60,000 attempts each over 1.5 s of virtual time. How far the threads are apart is up to the scheduler; none
 * of it gains a token. */
static void all_workers_together_pass_a_bucket_once(void **state)
{
    struct limiter *limiter = bucket_of(1000, NS_PER_S, 100);
    uint32_t passed = attack_with_skew(limiter, 0);
    assert_in_range(passed, 1500, 1600); /* 100 and 1,500 less at most what a late thread found taken */
    limiter_free(&limiter);
}

static void all_workers_together_pass_a_window_once(void **state)
{
    struct limiter *limiter = window_of(1000, 100 * NS_PER_S);
    assert_int_equal(attack_with_skew(limiter, NS_PER_MS), 1000);
    limiter_free(&limiter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_passes_its_burst_at_once_C_131),
        cmocka_unit_test(a_load_paced_at_the_rate_is_never_refused_C_131),
        cmocka_unit_test(a_fast_load_below_the_rate_is_never_refused_C_131),
        cmocka_unit_test(a_bucket_passes_burst_and_rate_times_time_to_the_token),
        cmocka_unit_test(refused_requests_take_nothing_C_131),
        cmocka_unit_test(a_client_that_waits_as_told_passes_C_131),
        cmocka_unit_test(what_remains_is_what_passes),
        cmocka_unit_test(a_window_is_exact_but_for_the_piece_that_it_leaves),
        cmocka_unit_test(an_even_load_above_the_limit_gets_the_limit_in_every_window),
        cmocka_unit_test(clients_have_limits_of_their_own),
        cmocka_unit_test(a_flood_of_clients_does_not_reset_one_that_is_limited),
        cmocka_unit_test(clients_whose_limit_is_whole_again_are_forgotten_first_and_at_no_cost),
        cmocka_unit_test(all_workers_together_pass_a_bucket_once),
        cmocka_unit_test(all_workers_together_pass_a_window_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
