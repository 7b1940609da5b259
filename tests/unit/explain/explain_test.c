/* SPDX-License-Identifier: Apache-2.0 */
/* A configuration is compiled without being served, targets are put into states and under loads, and
 * questions are asked. That answers agree with real requests is shown by tests/net/test_explain.py. */
#include "explain/explain.h"

#include "compile/build.h"
#include "config/load.h"
#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static struct registry *registry;
static struct snapshot *snapshot;
static struct explain *explain;
static struct iso_diag diag;

static int begin(void **state)
{
    registry = registry_new_detached(1);
    explain = calloc(1, sizeof(*explain));
    return 0;
}

static int end(void **state)
{
    explain_fini(explain);
    free(explain);
    snapshot_free(snapshot, registry);
    registry_free(registry);
    return 0;
}

/* Three targets behind one listener; `group` are further keys of the group. All are active and idle. */
static void serve(const char *group)
{
    struct config *config = NULL;
    struct text text;
    text_init(&text);
    text_printf(
        &text,
        "load_balancers: [{name: lb, listeners: [{port: 80, protocol: HTTP, default_target_group: web}]}]\n"
        "target_groups:\n  - {name: web, %s, targets: [{ip: 10.0.0.1, port: 1}, {ip: 10.0.0.2, port: 1}, "
        "{ip: 10.0.0.3, port: 1}]}\n",
        group);
    diag_init(&diag);
    assert_int_equal(config_load_text(text_slice(&text), "test", ".", &config, &diag), ISO_OK);
    const struct snapshot_parts parts = {.registry = registry, .n_workers = 1, .version = 1};
    assert_int_equal(snapshot_build(&config, &parts, &snapshot, &diag), ISO_OK);
    diag_fini(&diag);
    text_fini(&text);
    for (uint32_t i = 0; i < 3; i++)
        atomic_store(&snapshot->groups[0].targets[i]->health.state, TARGET_ACTIVE);
}

static struct backend *target(uint32_t i)
{
    return snapshot->groups[0].targets[i];
}

static const struct explain_group *ask(const char *url)
{
    static struct explain_query query;
    query = (struct explain_query){.url = slice_str(url), .from = {.family = 4, .bytes = {192, 0, 2, 1}}};
    explain_fini(explain);
    diag_init(&diag);
    assert_int_equal(explain_request(snapshot, &query, clock_mono_ns(), clock_wall_ns(), explain, &diag),
                     ISO_OK);
    diag_fini(&diag);
    assert_int_equal(explain->n_groups, 1);
    return &explain->groups[0];
}

static void the_least_loaded_is_chosen_and_scores_say_why_K3(void **state)
{
    serve("algorithm: least_connections");
    atomic_store(&target(0)->in_flight, 4);
    atomic_store(&target(1)->in_flight, 1);
    atomic_store(&target(2)->in_flight, 2);
    const struct explain_group *group = ask("http://shop.example/");
    assert_int_equal(group->chosen, 1);
    assert_true(group->targets[1].score < group->targets[2].score &&
                group->targets[2].score < group->targets[0].score);
    assert_true(group->targets[1].share_pct == 100);
}

static void of_equals_there_is_no_choice_but_shares(void **state)
{
    serve("algorithm: round_robin");
    const struct explain_group *group = ask("http://shop.example/");
    assert_int_equal(group->chosen, BALANCE_NONE);
    for (uint32_t i = 0; i < 3; i++)
        assert_true(group->targets[i].share_pct > 33 && group->targets[i].share_pct < 34);
}

static void the_same_question_gets_the_same_answer_and_moves_no_turn(void **state)
{
    struct text first, second;
    serve("algorithm: random");
    text_init(&first);
    text_init(&second);
    ask("http://shop.example/");
    explain_write_json(explain, &first);
    ask("http://shop.example/");
    explain_write_json(explain, &second);
    assert_string_equal(first.data, second.data);
    text_fini(&first);
    text_fini(&second);
}

static void an_unhealthy_target_says_so_and_gets_nothing(void **state)
{
    serve("algorithm: ip_hash");
    uint32_t chosen = ask("http://shop.example/")->chosen;
    uint32_t next = explain->groups[0].next[0];
    atomic_store(&target(chosen)->health.state, TARGET_UNHEALTHY);
    atomic_store(&target(chosen)->health.reason, HEALTH_REASON_REFUSED);
    atomic_fetch_add(&snapshot->groups[0].runtime->epoch, 1);
    const struct explain_group *group = ask("http://shop.example/");
    assert_string_equal(group->targets[chosen].why, "unhealthy: connect-refused");
    assert_false(group->targets[chosen].is_eligible);
    assert_int_equal(group->chosen, next); /* where a retry would have gone */
}

static void in_panic_health_is_ignored_and_the_answer_says_so_D5(void **state)
{
    serve("algorithm: round_robin");
    for (uint32_t i = 0; i < 3; i++)
        atomic_store(&target(i)->health.state, TARGET_UNHEALTHY);
    assert_int_equal(ask("http://shop.example/")->fails, END_NO_TARGET);
    atomic_store(&snapshot->groups[0].runtime->health.is_panicking, 1);
    const struct explain_group *group = ask("http://shop.example/");
    assert_true(group->is_panicking);
    assert_int_equal(group->fails, END_NORMAL);
    assert_true(group->targets[0].is_eligible);
}

static void a_target_at_its_limit_of_requests_is_passed_over(void **state)
{
    serve("algorithm: ip_hash, limits: {requests: 2}");
    uint32_t chosen = ask("http://shop.example/")->chosen;
    uint32_t next = explain->groups[0].next[0];
    atomic_store(&target(chosen)->in_flight, 2);
    const struct explain_group *group = ask("http://shop.example/");
    assert_int_equal(group->chosen, next);
    assert_string_equal(group->targets[chosen].why, "limits.requests is reached: only when all are");
}

static void a_cookie_binds_as_long_as_its_target_may_serve_C1(void **state)
{
    static struct config_pair cookie = {{"cookie", 6}, {"lb_server=10.0.0.3:1", 20}};
    struct explain_query query = {.url = SLICE("http://shop.example/"), .headers = &cookie, .n_headers = 1};
    serve("algorithm: round_robin, affinity: {type: cookie, id: plain}");
    diag_init(&diag);
    assert_int_equal(explain_request(snapshot, &query, clock_mono_ns(), clock_wall_ns(), explain, &diag),
                     ISO_OK);
    assert_int_equal(explain->groups[0].chosen, 2);
    explain_fini(explain);
    atomic_store(&target(2)->health.state, TARGET_UNHEALTHY);
    atomic_fetch_add(&snapshot->groups[0].runtime->epoch, 1);
    assert_int_equal(explain_request(snapshot, &query, clock_mono_ns(), clock_wall_ns(), explain, &diag),
                     ISO_OK);
    assert_int_equal(explain->groups[0].chosen, BALANCE_NONE);
    assert_int_equal(explain->groups[0].affinity.target, 2);
    assert_false(explain->groups[0].affinity.may_serve);
    diag_fini(&diag);
}

static void questions_that_make_no_sense_are_refused(void **state)
{
    static const char *const urls[] = {"",
                                       "shop.example",
                                       "ftp://shop.example/",
                                       "http://",
                                       "http://a b/",
                                       "http://shop.example:99999/",
                                       "tcp://10.0.0.1",
                                       "http://shop.example:81/",
                                       "http://shop.example/\r\nX: y",
                                       "https://shop.example:80/",
                                       "http://u@h/"};
    serve("algorithm: round_robin");
    for (size_t i = 0; i < iso_countof(urls); i++) {
        struct explain_query query = {.url = slice_str(urls[i])};
        explain_fini(explain);
        diag_init(&diag);
        assert_int_equal(explain_request(snapshot, &query, 0, 0, explain, &diag), ISO_ERR_INVALID);
        assert_int_equal(diag.errors, 1);
        diag_fini(&diag);
    }
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(the_least_loaded_is_chosen_and_scores_say_why_K3),
        test(of_equals_there_is_no_choice_but_shares),
        test(the_same_question_gets_the_same_answer_and_moves_no_turn),
        test(an_unhealthy_target_says_so_and_gets_nothing),
        test(in_panic_health_is_ignored_and_the_answer_says_so_D5),
        test(a_target_at_its_limit_of_requests_is_passed_over),
        test(a_cookie_binds_as_long_as_its_target_may_serve_C1),
        test(questions_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
