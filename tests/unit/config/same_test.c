/* SPDX-License-Identifier: Apache-2.0 */
#include "config/same.h"

#include "config/diff.h"
#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct config *load(const char *group)
{
    struct config *config = NULL;
    struct iso_diag diag;
    struct text yaml;
    diag_init(&diag);
    text_init(&yaml);
    text_printf(&yaml,
                "load_balancers: [{name: lb, listeners: [{port: 80, default_target_group: g}]}]\n"
                "target_groups: [{name: g, %s}]\n",
                group);
    if (config_load_text(text_slice(&yaml), "t", "/", &config, &diag))
        fail_msg("%s: %s", diag.first->path, diag.first->message);
    text_fini(&yaml);
    diag_fini(&diag);
    return config;
}

/* What differs by config_same() is what config_diff() has words for. */
static void expect(const char *a, const char *b, bool is_same)
{
    struct config *x = load(a), *y = load(b);
    struct arena arena;
    arena_init(&arena);
    if (config_same(&schema_config, x, y) != is_same)
        fail_msg("{%s} and {%s} %s", a, b, is_same ? "differ" : "are the same");
    if (is_same)
        assert_null(config_diff(x, y, &arena));
    arena_fini(&arena);
    config_free(x);
    config_free(y);
}

static void what_is_written_otherwise_and_means_the_same_is_the_same(void **state)
{
    expect("targets: []", "targets: []", true);
    expect("slow_start_s: 1, targets: [{ip: 10.0.0.1, port: 1}]",
           "targets: [{port: 1, ip: 10.0.0.1, weight: 100}], slow_start_s: 1.0", true);
    expect("retry: {on: [reset]}, targets: []", "targets: [], retry: {on: reset}", true);
}

static void every_kind_of_value_that_differs_is_found(void **state)
{
    static const char *const groups[] = {
        "targets: []",
        "algorithm: random, targets: []",
        "slow_start_s: 2, targets: []",
        "panic_threshold_pct: 1, targets: []",
        "retry: {on: [reset]}, targets: []",
        "health_check: {type: http, expect: {status: '200'}}, targets: []",
        "health_check: {type: http, expect: {body: x}}, targets: []",
        "hash_key: path, algorithm: maglev, targets: []",
        "hash_key: {header: x-a}, algorithm: maglev, targets: []",
        "affinity: {type: cookie}, targets: []",
        "affinity: {type: cookie, http_only: false}, targets: []",
        "port: 7, targets: []",
        "targets: [{ip: 10.0.0.1, port: 1}]",
        "targets: [{ip: 10.0.0.2, port: 1}]",
        "targets: [{ip: 10.0.0.1, port: 2}]",
        "targets: [{ip: 10.0.0.1, port: 1, weight: 1}]",
        "targets: [{ip: 10.0.0.1, port: 1, enabled: false}]",
        "targets: [{ip: 10.0.0.1, port: 1, tags: {a: b}}]",
        "targets: [{ip: 10.0.0.1, port: 1, tags: {a: c}}]",
        "targets: [{unix: /run/x}]",
        "targets: [{ip: 10.0.0.1, port: 1}, {ip: 10.0.0.2, port: 1}]",
        "targets: [{ip: 10.0.0.2, port: 1}, {ip: 10.0.0.1, port: 1}]",
    };
    for (size_t i = 0; i < iso_countof(groups); i++)
        for (size_t j = 0; j < iso_countof(groups); j++)
            expect(groups[i], groups[j], i == j);
}

static void the_settings_of_a_group_are_told_from_its_targets(void **state)
{
    struct config *a = load("targets: [{ip: 10.0.0.1, port: 1}]"),
                  *b = load("targets: [{ip: 10.0.0.2, port: 1}]"), *c = load("slow_start_s: 5, targets: []");
    assert_true(config_same_group(a->target_groups, b->target_groups));
    assert_false(config_same_group(a->target_groups, c->target_groups));
    config_free(a);
    config_free(b);
    config_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_otherwise_and_means_the_same_is_the_same),
        cmocka_unit_test(every_kind_of_value_that_differs_is_found),
        cmocka_unit_test(the_settings_of_a_group_are_told_from_its_targets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
