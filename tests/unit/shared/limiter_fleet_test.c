/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes and one limit, in virtual time: the store is what the scripts of shared/fleet do, with a
 * round trip between it and each node. */
#include "core/check.h"
#include "core/clock.h"
#include "core/hash.h"
#include "shared/limiter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#define START_NS (1000 * NS_PER_S)

enum { NODES_MAX = 8, KEY = 42 };

struct node {
    struct limiter *limiter;
    uint64_t arrives_ns, returns_ns; /* of the report under way; 0: none */
    struct limiter_left left;
    uint32_t passed;
};

struct fleet_of_nodes {
    struct limiter_policy policy;
    struct node nodes[NODES_MAX];
    uint32_t n;
    uint64_t rtt_ns, full_ns; /* the store's bucket is full then */
    struct {
        uint64_t number, n;
    } pieces[16]; /* of the store's window */
    bool is_away;
};

static void begin(struct fleet_of_nodes *fleet, uint32_t n, uint32_t requests, uint64_t period_ns,
                  uint32_t burst, uint64_t rtt_ns)
{
    *fleet = (struct fleet_of_nodes){
        .policy = {LIMITER_TOKEN_BUCKET, requests, period_ns, burst, true}, .n = n, .rtt_ns = rtt_ns};
    for (uint32_t i = 0; i < n; i++)
        fleet->nodes[i].limiter = limiter_new(&fleet->policy, 100);
}

static void begin_window(struct fleet_of_nodes *fleet, uint32_t n, uint32_t requests, uint64_t period_ns,
                         uint64_t rtt_ns)
{
    *fleet = (struct fleet_of_nodes){
        .policy = {LIMITER_SLIDING_WINDOW, requests, period_ns, requests, true}, .n = n, .rtt_ns = rtt_ns};
    for (uint32_t i = 0; i < n; i++)
        fleet->nodes[i].limiter = limiter_new(&fleet->policy, 100);
}

static void end(struct fleet_of_nodes *fleet)
{
    for (uint32_t i = 0; i < fleet->n; i++)
        limiter_free(&fleet->nodes[i].limiter);
}

static uint64_t piece_of(const struct fleet_of_nodes *fleet, uint64_t number)
{
    return fleet->pieces[number % 16].number == number ? fleet->pieces[number % 16].n : 0;
}

static void charge_window(struct fleet_of_nodes *fleet, struct node *node, uint64_t now_ns)
{
    uint64_t piece_ns = limiter_piece_ns(&fleet->policy), limit = fleet->policy.requests;
    uint64_t number = now_ns / piece_ns, into_ns = now_ns % piece_ns, wait_ns = 0;
    if (fleet->pieces[number % 16].number != number)
        fleet->pieces[number % 16].n = 0;
    fleet->pieces[number % 16].number = number;
    fleet->pieces[number % 16].n += limiter_report(node->limiter, KEY, now_ns);
    node->left = (struct limiter_left){0};
    for (uint64_t step = 0; step <= 8; step++) {
        uint64_t whole = 0, leaving = piece_of(fleet, number + step - 7);
        for (uint64_t i = 0; i < 7; i++)
            whole += piece_of(fleet, number + step - i);
        if (whole < limit) {
            uint64_t used = whole + leaving * (piece_ns - into_ns) / piece_ns;
            uint64_t free_ns = leaving ? piece_ns - ((limit - whole) * piece_ns - 1) / leaving : 0;
            if (used < limit && step == 0)
                node->left.tokens = (uint32_t)(limit - used);
            else
                node->left.retry_ns =
                    wait_ns + (leaving && free_ns < piece_ns && free_ns > into_ns ? free_ns - into_ns : 0);
            return;
        }
        wait_ns += piece_ns - into_ns;
        into_ns = 0;
    }
    node->left.retry_ns = wait_ns;
}

static void charge(struct fleet_of_nodes *fleet, struct node *node, uint64_t now_ns)
{
    if (fleet->policy.algorithm == LIMITER_SLIDING_WINDOW) {
        charge_window(fleet, node, now_ns);
        return;
    }
    uint64_t token_ns = fleet->policy.period_ns / fleet->policy.requests,
             depth_ns = token_ns * fleet->policy.burst;
    uint64_t full_ns = fleet->full_ns > now_ns ? fleet->full_ns : now_ns;
    full_ns += limiter_report(node->limiter, KEY, now_ns) * token_ns;
    if (full_ns > now_ns + 2 * depth_ns)
        full_ns = now_ns + 2 * depth_ns;
    fleet->full_ns = full_ns;
    node->left = (struct limiter_left){0};
    if (full_ns + token_ns <= now_ns + depth_ns)
        node->left.tokens = (uint32_t)((now_ns + depth_ns - full_ns) / token_ns);
    else
        node->left.retry_ns = full_ns + token_ns - depth_ns - now_ns;
}

static void advance(struct fleet_of_nodes *fleet, uint64_t now_ns)
{
    for (uint32_t i = 0; i < fleet->n; i++) {
        struct node *node = &fleet->nodes[i];
        if (node->arrives_ns && node->arrives_ns <= now_ns) {
            charge(fleet, node, node->arrives_ns);
            node->returns_ns = node->arrives_ns + fleet->rtt_ns / 2;
            node->arrives_ns = 0;
        }
        if (node->returns_ns && node->returns_ns <= now_ns) {
            node->returns_ns = 0;
            if (limiter_answer(node->limiter, KEY, now_ns, fleet->is_away ? NULL : &node->left))
                node->arrives_ns = now_ns + fleet->rtt_ns / 2;
        }
    }
}

static bool ask(struct fleet_of_nodes *fleet, uint32_t index, uint64_t now_ns,
                struct limiter_verdict *verdict)
{
    struct node *node = &fleet->nodes[index];
    bool wants_report;
    advance(fleet, now_ns);
    limiter_take_fleet(node->limiter, KEY, now_ns, verdict, &wants_report);
    if (wants_report)
        node->arrives_ns = now_ns + fleet->rtt_ns / 2;
    node->passed += verdict->passes;
    return verdict->passes;
}

/* `step_ns` apart, on a node by chance. */
static uint32_t load(struct fleet_of_nodes *fleet, uint64_t from_ns, uint64_t for_ns, uint64_t step_ns)
{
    struct limiter_verdict verdict;
    uint32_t passed = 0;
    for (uint64_t at = 0; at < for_ns; at += step_ns)
        passed += ask(fleet, (uint32_t)(hash_mix64(from_ns + at) % fleet->n), from_ns + at, &verdict);
    return passed;
}

static void a_load_above_the_limit_gets_the_limit_whatever_the_nodes(void **state)
{
    for (uint32_t n = 1; n <= NODES_MAX; n++) {
        struct fleet_of_nodes fleet;
        begin(&fleet, n, 100, NS_PER_S, 50, NS_PER_MS);
        uint32_t passed = load(&fleet, START_NS, 60 * NS_PER_S, NS_PER_MS); /* ten times the limit */
        assert_in_range(passed, 5700, 6000 + 50 + n);
        end(&fleet);
    }
}

static void a_load_below_the_limit_is_not_refused(void **state)
{
    for (uint32_t n = 1; n <= NODES_MAX; n++) {
        struct fleet_of_nodes fleet;
        begin(&fleet, n, 100, NS_PER_S, 50, NS_PER_MS);
        assert_int_equal(load(&fleet, START_NS, 60 * NS_PER_S, 11 * NS_PER_MS), 5455);
        end(&fleet);
    }
}

/* The most that passes within any period, of a load on nodes by chance. */
static uint32_t most_within_a_period(struct fleet_of_nodes *fleet, uint64_t from_ns, uint64_t for_ns,
                                     uint64_t step_ns, uint32_t *passed)
{
    enum { PASSED_MAX = 100000 };
    static uint64_t times[PASSED_MAX];
    struct limiter_verdict verdict;
    uint32_t n = 0, first = 0, most = 0;
    for (uint64_t at = from_ns; at < from_ns + for_ns; at += step_ns) {
        if (!ask(fleet, (uint32_t)(hash_mix64(at) % fleet->n), at, &verdict))
            continue;
        assert_true(n < PASSED_MAX);
        times[n++] = at;
        while (times[first] + fleet->policy.period_ns <= at)
            first++;
        most = n - first > most ? n - first : most;
    }
    *passed = n;
    return most;
}

/* Of ten times the limit, beginning anywhere within a piece of the window. */
static uint32_t most_of_a_flood(uint32_t n_nodes, uint32_t *passed)
{
    uint32_t most = 0;
    *passed = 0;
    for (uint64_t phase = 0; phase < 10; phase++) {
        struct fleet_of_nodes fleet;
        uint32_t now, within;
        begin_window(&fleet, n_nodes, 100, NS_PER_S, NS_PER_MS);
        within =
            most_within_a_period(&fleet, START_NS + phase * NS_PER_S / 70, 60 * NS_PER_S, NS_PER_MS, &now);
        most = within > most ? within : most;
        *passed = now > *passed ? now : *passed;
        end(&fleet);
    }
    return most;
}

static void a_window_is_kept_by_all_nodes_together(void **state)
{
    uint32_t alone, passed, most = most_of_a_flood(1, &alone);
    assert_in_range(most, 100, 136); /* what one piece of the window hides, see shared/limiter.h */
    assert_in_range(alone, 6000, 6050);
    for (uint32_t n = 2; n <= NODES_MAX; n++) {
        uint32_t together = most_of_a_flood(n, &passed);
        assert_in_range(together, 100, most + n);
        assert_in_range(passed, 6000,
                        alone + 60 * (n - 1)); /* one a period that each of the others had not heard of */
    }
}

static void a_load_below_the_window_is_not_refused(void **state)
{
    for (uint32_t n = 1; n <= NODES_MAX; n++) {
        struct fleet_of_nodes fleet;
        uint32_t passed;
        begin_window(&fleet, n, 100, NS_PER_S, NS_PER_MS);
        most_within_a_period(&fleet, START_NS, 60 * NS_PER_S, 11 * NS_PER_MS, &passed);
        assert_int_equal(passed, 5455);
        end(&fleet);
    }
}

static void a_window_that_is_full_says_when_one_passes(void **state)
{
    struct fleet_of_nodes fleet;
    struct limiter_verdict verdict;
    begin_window(&fleet, 2, 50, 7 * NS_PER_S, NS_PER_MS);
    uint64_t at = START_NS;
    while (ask(&fleet, at / NS_PER_MS % 2, at, &verdict) || verdict.retry_ns <= NS_PER_MS)
        at += NS_PER_MS;
    assert_true(verdict.retry_ns > NS_PER_S && verdict.retry_ns < 8 * NS_PER_S && verdict.limit == 50);
    uint64_t then = at + verdict.retry_ns;
    uint32_t same = at / NS_PER_MS % 2;
    assert_false(ask(&fleet, same, then - NS_PER_MS, &verdict));
    assert_true(ask(&fleet, same, then, &verdict));
    end(&fleet);
}

static void alone_a_node_knows_its_window(void **state)
{
    struct fleet_of_nodes fleet;
    struct limiter_verdict verdict;
    begin_window(&fleet, 1, 50, 7 * NS_PER_S, NS_PER_MS);
    uint32_t passed = load(&fleet, START_NS, 100 * NS_PER_MS, 5 * NS_PER_MS), alone = 0;
    assert_int_equal(passed, 20);
    for (int i = 0; i < 100; i++) { /* the store is away */
        limiter_take(fleet.nodes[0].limiter, KEY, START_NS + NS_PER_S, &verdict);
        alone += verdict.passes;
    }
    assert_int_equal(alone, 30);
    end(&fleet);
}

static void a_peek_takes_nothing(void **state)
{
    for (int is_window = 0; is_window < 2; is_window++) {
        struct fleet_of_nodes fleet;
        struct limiter_verdict peeked, verdict;
        if (is_window)
            begin_window(&fleet, 1, 10, 7 * NS_PER_S, NS_PER_MS);
        else
            begin(&fleet, 1, 10, 7 * NS_PER_S, 10, NS_PER_MS);
        for (uint64_t at = START_NS; at < START_NS + NS_PER_S; at += 10 * NS_PER_MS) {
            advance(&fleet, at);
            for (int i = 0; i < 3; i++)
                limiter_peek_fleet(fleet.nodes[0].limiter, KEY, at, &peeked);
            ask(&fleet, 0, at, &verdict);
            assert_true(peeked.passes == verdict.passes && peeked.remaining == verdict.remaining &&
                        peeked.retry_ns == verdict.retry_ns && peeked.reset_ns == verdict.reset_ns);
        }
        end(&fleet);
    }
}

static void two_nodes_that_begin_at_once_pass_what_the_bucket_holds(void **state)
{
    struct fleet_of_nodes fleet;
    begin(&fleet, 2, 1, 10 * NS_PER_S, 20, NS_PER_MS);
    uint32_t passed = load(&fleet, START_NS, 200 * NS_PER_US, NS_PER_US); /* within a fifth of a round trip */
    assert_int_equal(passed, 20);
    end(&fleet);
}

static void what_many_nodes_pass_at_once_is_made_up_for_afterwards(void **state)
{
    struct fleet_of_nodes fleet;
    begin(&fleet, 8, 10, NS_PER_S, 20, 2 * NS_PER_MS);
    uint32_t at_once = load(&fleet, START_NS, 500 * NS_PER_US, NS_PER_US);
    assert_in_range(at_once, 20, 8 * 10); /* half of the burst a node at most */
    uint32_t later = load(&fleet, START_NS + 500 * NS_PER_US, 20 * NS_PER_S, NS_PER_MS);
    /* All but what is beyond two bursts comes out of the time after it. */
    assert_in_range(at_once + later, 180, 20 + 20 * 10 + 8 * 10 - 40 + 8);
    end(&fleet);
}

static void a_burst_slower_than_the_round_trips_passes_whole(void **state)
{
    struct fleet_of_nodes fleet;
    struct limiter_verdict verdict;
    uint32_t passed = 0;
    begin(&fleet, 1, 1, 3600 * NS_PER_S, 100, NS_PER_MS);
    for (uint64_t i = 0; i < 200; i++)
        passed += ask(&fleet, 0, START_NS + i * 2 * NS_PER_MS, &verdict);
    assert_in_range(passed, 99, 101);
    assert_false(verdict.passes);
    assert_true(verdict.retry_ns > 3000 * NS_PER_S);
    end(&fleet);
}

static void a_node_that_gets_no_answers_goes_on_one_request_at_a_time(void **state)
{
    struct fleet_of_nodes fleet;
    begin(&fleet, 1, 100, NS_PER_S, 10, 10 * NS_PER_MS);
    fleet.is_away = true;
    uint32_t passed = load(&fleet, START_NS, 100 * NS_PER_MS, NS_PER_MS);
    assert_in_range(passed, 5, 25);
    end(&fleet);
}

static void alone_a_node_knows_what_has_passed_before(void **state)
{
    struct fleet_of_nodes fleet;
    struct limiter_verdict verdict;
    uint32_t passed = 0;
    begin(&fleet, 1, 1, 3600 * NS_PER_S, 10, NS_PER_MS);
    assert_int_equal(load(&fleet, START_NS, 8 * 2 * NS_PER_MS, 2 * NS_PER_MS), 8);
    for (int i = 0; i < 10; i++) {
        limiter_take(fleet.nodes[0].limiter, KEY, START_NS + NS_PER_S, &verdict);
        passed += verdict.passes;
    }
    assert_int_equal(passed, 2);
    end(&fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_above_the_limit_gets_the_limit_whatever_the_nodes),
        cmocka_unit_test(a_load_below_the_limit_is_not_refused),
        cmocka_unit_test(a_window_is_kept_by_all_nodes_together),
        cmocka_unit_test(a_load_below_the_window_is_not_refused),
        cmocka_unit_test(a_window_that_is_full_says_when_one_passes),
        cmocka_unit_test(alone_a_node_knows_its_window),
        cmocka_unit_test(a_peek_takes_nothing),
        cmocka_unit_test(two_nodes_that_begin_at_once_pass_what_the_bucket_holds),
        cmocka_unit_test(what_many_nodes_pass_at_once_is_made_up_for_afterwards),
        cmocka_unit_test(a_burst_slower_than_the_round_trips_passes_whole),
        cmocka_unit_test(a_node_that_gets_no_answers_goes_on_one_request_at_a_time),
        cmocka_unit_test(alone_a_node_knows_what_has_passed_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
