/* SPDX-License-Identifier: Apache-2.0 */
/* Several nodes and one bucket, in virtual time: the store is what the script of shared/fleet does, with a
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

static void end(struct fleet_of_nodes *fleet)
{
    for (uint32_t i = 0; i < fleet->n; i++)
        limiter_free(&fleet->nodes[i].limiter);
}

static void charge(struct fleet_of_nodes *fleet, struct node *node, uint64_t now_ns)
{
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
        cmocka_unit_test(two_nodes_that_begin_at_once_pass_what_the_bucket_holds),
        cmocka_unit_test(what_many_nodes_pass_at_once_is_made_up_for_afterwards),
        cmocka_unit_test(a_burst_slower_than_the_round_trips_passes_whole),
        cmocka_unit_test(a_node_that_gets_no_answers_goes_on_one_request_at_a_time),
        cmocka_unit_test(alone_a_node_knows_what_has_passed_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
