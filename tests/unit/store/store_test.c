/* SPDX-License-Identifier: Apache-2.0 */
/* Calls, answers and URLs; what a store does with its data is shown by tests/net/test_store_*.py. */
#include "store/store.h"

#include "core/clock.h"
#include "printed_of.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct loop loop;
static char folder[] = "/tmp/isobar-store-XXXXXX", url[64];
static enum store_outcome outcome;
static uint64_t version;
static int n_answers;

static void on_answer(void *owner, const struct store_answer *answer)
{
    outcome = answer->outcome;
    version = answer->version;
    n_answers++;
    loop_stop(&loop);
}

static struct store *open_store(const char *at, uint32_t timeout_ms)
{
    struct store *store;
    struct iso_diag diag;
    const struct config_store config = {.url = slice_str(at), .timeout_ms = timeout_ms, .keep_versions = 10};
    diag_init(&diag);
    assert_int_equal(store_open(&config, 0, &loop, &(struct store_events){0}, &store, &diag), ISO_OK);
    diag_fini(&diag);
    return store;
}

static void turn_until_answered(void)
{
    loop.stopping = false;
    loop_run(&loop);
}

static void commit(struct store *store, uint64_t expected)
{
    static const struct config empty;
    struct printed *printed = printed_of(SLICE("{}"));
    const struct store_change change = {
        .expected = expected, .who = SLICE("test"), .document = printed, .to = &empty};
    store_commit(store, &change, on_answer, NULL);
    printed_unref(&printed);
}

static void a_call_is_never_answered_inside_itself(void **state)
{
    struct store *store = open_store(url, 20000);
    n_answers = 0;
    store_load(store, on_answer, NULL);
    assert_int_equal(n_answers, 0);
    turn_until_answered();
    assert_int_equal(outcome, STORE_NOT_FOUND);
    store_close(&store);
}

static void calls_wait_for_a_store_that_opens_and_keep_their_order(void **state)
{
    struct store *store = open_store(url, 20000);
    assert_false(store_is_available(store));
    n_answers = 0;
    commit(store, 0);
    commit(store, 1);
    commit(store, 1);
    while (n_answers < 3)
        turn_until_answered();
    assert_int_equal(outcome, STORE_CONFLICT);
    assert_int_equal(version, 2);
    assert_int_equal(store_figures(store)->commits, 2);
    assert_int_equal(store_figures(store)->conflicts, 1);
    assert_int_equal(store_figures(store)->known, 2);
    store_close(&store);
}

static void closing_answers_what_is_waiting(void **state)
{
    struct store *store = open_store(url, 20000);
    n_answers = 0;
    store_load(store, on_answer, NULL);
    store_load(store, on_answer, NULL);
    store_close(&store);
    assert_int_equal(n_answers, 2);
    assert_int_equal(outcome, STORE_UNAVAILABLE);
}

static void a_store_that_cannot_be_opened_says_why_and_answers(void **state)
{
    struct store *store = open_store("sqlite:/no/such/folder/x.db", 20000);
    n_answers = 0;
    commit(store, 0);
    turn_until_answered();
    assert_int_equal(outcome, STORE_UNAVAILABLE);
    assert_non_null(strstr(store_reason(store), "/no/such/folder/x.db"));
    assert_int_equal(store_figures(store)->failures, 1);
    store_close(&store);
}

static void a_server_that_does_not_answer_costs_the_deadline(void **state)
{
    struct store *store = open_store("postgresql://x@192.0.2.1/x", 200); /* TEST-NET-1: nobody */
    uint64_t begun_ns = clock_mono_ns();
    store_load(store, on_answer, NULL);
    turn_until_answered();
    assert_int_equal(outcome, STORE_UNAVAILABLE);
    assert_true(clock_mono_ns() - begun_ns < 30 * NS_PER_S);
    store_close(&store); /* while the thread is still connecting */
}

static int begin(void **state)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -f %s/*", folder);
    return system(command) || loop_init(&loop);
}

static int end(void **state)
{
    loop_fini(&loop);
    return 0;
}

static int make_folder(void **state)
{
    if (!mkdtemp(folder))
        return 1;
    snprintf(url, sizeof(url), "sqlite:%s/x.db", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[64];
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_is_never_answered_inside_itself, begin, end),
        cmocka_unit_test_setup_teardown(calls_wait_for_a_store_that_opens_and_keep_their_order, begin, end),
        cmocka_unit_test_setup_teardown(closing_answers_what_is_waiting, begin, end),
        cmocka_unit_test_setup_teardown(a_store_that_cannot_be_opened_says_why_and_answers, begin, end),
        cmocka_unit_test_setup_teardown(a_server_that_does_not_answer_costs_the_deadline, begin, end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
