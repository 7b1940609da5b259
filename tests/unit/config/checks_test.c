/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* The faults of a file whose one rule has this match and rewrite. */
static unsigned faults_of_paths(const char *match, const char *rewrite)
{
    char text[512];
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    snprintf(text, sizeof(text),
             "load_balancers: [ { name: a, listeners: [ { port: 80, protocol: HTTP, rules: [\n"
             "  { match: { path_prefix: \"%s\" }, rewrite: { path_prefix: \"%s\" },\n"
             "    forward: [ { target_group: b } ] } ] } ] } ]\n"
             "target_groups: [ { name: b, protocol: HTTP, targets: [ { ip: \"127.0.0.1\", port: 1 } ] } ]\n",
             match, rewrite);
    if (config_load_text(slice_str(text), "test", "/", &config, &diag) == ISO_OK)
        config_free(config);
    unsigned errors = diag.errors;
    diag_fini(&diag);
    return errors;
}

static void paths_are_what_a_request_line_can_carry(void **state)
{
    assert_int_equal(faults_of_paths("/a/", "/"), 0);
    assert_int_equal(faults_of_paths("/a%20b", "/~x;y=1@:$"), 0);
}

/* A blank in a rewritten target would end it early for whoever reads it (request smuggling). */
static void rejects_paths_that_would_break_a_request_line(void **state)
{
    static const char *const bad[] = {"/a b", "/a HTTP/1.1", "/\\xc3\\xa9", "/a\\\\b", "/a\\tb", "/a?b", "a"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(faults_of_paths(bad[i], "/"), 1);
        assert_int_equal(faults_of_paths("/", bad[i]), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_are_what_a_request_line_can_carry),
        cmocka_unit_test(rejects_paths_that_would_break_a_request_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
