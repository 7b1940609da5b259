/* SPDX-License-Identifier: Apache-2.0 */
#include "config/diff.h"

#include "faults.h"

/* The changes from one text to the other, one a line. */
static void expect_diff(const char *before, const char *after, const char *expected)
{
    struct config *from = load_good(before), *to = load_good(after);
    struct arena arena;
    struct text out;
    arena_init(&arena);
    text_init(&out);
    for (const struct config_change *change = config_diff(from, to, &arena); change; change = change->next)
        text_printf(&out, "%s: %s\n", change->object, change->what);
    assert_string_equal(out.len ? out.data : "", expected);
    text_fini(&out);
    arena_fini(&arena);
    config_free(from);
    config_free(to);
}

#define LISTEN             "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: web}]}]\n"
#define WEB(keys, targets) "target_groups: [{name: web, " keys "targets: [" targets "]}]\n"
#define A                  "{ip: 10.0.0.1, port: 80}"
#define B                  "{ip: 10.0.0.2, port: 80}"

static void equal_configurations_have_no_changes(void **state)
{
    expect_diff(LISTEN WEB("", A ", " B), LISTEN WEB("algorithm: p2c_least_request, ", B ", " A), "");
}

static void secrets_are_not_shown(void **state)
{
#define SIGNED(secret) "affinity: {type: cookie, id: signed, secret: " secret "}, "
    expect_diff(LISTEN WEB(SIGNED("0123456789abcdef"), A), LISTEN WEB(SIGNED("fedcba9876543210"), A),
                "target_groups/web: affinity.secret changed\n");
    expect_diff(LISTEN WEB("", A) "shared_state: {url: \"redis://:a@h\"}\n",
                LISTEN WEB("", A) "shared_state: {url: \"redis://:b@h\"}\n",
                "config: shared_state changed\n");
    expect_diff(LISTEN WEB("", A) "shared_state: {url: \"redis://:a@h\"}\n",
                LISTEN WEB("", A) "shared_state: {url: \"redis://:a@i\"}\n",
                "config: shared_state {url: \"redis://:<secret>@h\", timeout_ms: 5} -> {url: "
                "\"redis://:<secret>@i\", timeout_ms: 5}\n");
#define RULED(value)                                                                                         \
    "load_balancers: [{name: l, listeners: [{name: x, port: 80, rules: [{name: r, deny: {}, match: "         \
    "{headers: {x-token: " value "}}}]}]}]\n"
    expect_diff(RULED("a"), RULED("b"), "listeners/x: rules changed\n");
}

static void keys_of_a_group_show_old_and_new(void **state)
{
    expect_diff(
        LISTEN WEB("", A), LISTEN WEB("algorithm: round_robin, health_check: {type: http, path: /h}, ", A),
        "target_groups/web: algorithm p2c_least_request -> round_robin; health_check.type tcp -> http; "
        "health_check.path / -> /h\n");
    expect_diff(LISTEN WEB("retry: {on: reset}, ", A), LISTEN WEB("retry: {attempts: 3}, ", A),
                "target_groups/web: retry.attempts 2 -> 3; retry.on [reset] -> [connect_failure, reset, "
                "refused_stream]\n");
}

static void targets_come_go_and_change(void **state)
{
    expect_diff(
        LISTEN WEB("", A ", " B),
        LISTEN WEB("", "{ip: 10.0.0.1, port: 80, weight: 5, tags: {zone: a}}, {ip: \"::1\", port: 81}"),
        "target_groups/web: targets +[::1]:81 -10.0.0.2:80; targets/10.0.0.1:80 weight 100 -> 5; "
        "targets/10.0.0.1:80 tags unset -> {zone: a}\n");
}

static void objects_come_and_go_with_what_they_hold(void **state)
{
    expect_diff("load_balancers: [{name: l, listeners: [{port: 80, default_target_group: web}]}, "
                "{name: old, listeners: [{port: 82, default_target_group: web}]}]\n" WEB("", A),
                "load_balancers: [{name: new, listeners: [{port: 83, default_target_group: web}]}, "
                "{name: l, listeners: [{port: 80, default_target_group: web}, {port: 81, "
                "default_target_group: web}]}]\n"
                "target_groups: [{name: api, targets: [" A "]}, {name: web, targets: [" A "]}]\n",
                "load_balancers/old: removed\n"
                "listeners/old/82: removed\n"
                "load_balancers/new: added\n"
                "listeners/new/83: added\n"
                "listeners/l/81: added\n"
                "target_groups/api: added\n");
}

static void keys_at_the_top_and_of_listeners_are_told(void **state)
{
    expect_diff(LISTEN WEB("", A),
                "workers: 2\nadmin: {listen: \"off\"}\ntrusted_proxies: 10.0.0.0/8\nshutdown_s: 1.5\n"
                "load_balancers: [{name: l, vip: 10.9.9.9, listeners: [{port: 80, default_target_group: web, "
                "limits: {headers: 50}}]}]\n" WEB("", A),
                "config: admin.listen \"127.0.0.1:8443\" -> off; workers 0 -> 2; trusted_proxies unset -> "
                "[10.0.0.0/8]; "
                "shutdown_s 30 -> 1.5\n"
                "load_balancers/l: vip unset -> 10.9.9.9\n"
                "listeners/l/80: limits.headers 100 -> 50\n");
}

static void long_values_are_only_said_to_differ(void **state)
{
    expect_diff(
        "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: web}]}]\n" WEB("", A),
        "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: web, rules: [{match: {host: "
        "a.example, path_prefix: "
        "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}, "
        "respond: {body: x}}]}]}]\n" WEB("", A),
        "listeners/l/80: rules changed\n");
}

static void every_detail_of_a_rule_counts(void **state)
{
#define RULE(keys) "load_balancers: [{name: l, listeners: [{port: 80, rules: [{" keys "}]}]}]\n" WEB("", A)
    expect_diff(RULE("forward: [{target_group: web}]"), RULE("forward: [{target_group: web, weight: 2}]"),
                "listeners/l/80: rules [{forward: [{target_group: web, weight: 1}]}] -> [{forward: "
                "[{target_group: web, "
                "weight: 2}]}]\n");
    expect_diff(RULE("match: {path: /a}, deny: {}"), RULE("match: {path: /a}, deny: {status: 404}"),
                "listeners/l/80: rules [{match: {path: /a}, deny: {status: 403}}] -> [{match: {path: /a}, "
                "deny: {status: "
                "404}}]\n");
#undef RULE
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_configurations_have_no_changes),
        cmocka_unit_test(secrets_are_not_shown),
        cmocka_unit_test(keys_of_a_group_show_old_and_new),
        cmocka_unit_test(targets_come_go_and_change),
        cmocka_unit_test(objects_come_and_go_with_what_they_hold),
        cmocka_unit_test(keys_at_the_top_and_of_listeners_are_told),
        cmocka_unit_test(long_values_are_only_said_to_differ),
        cmocka_unit_test(every_detail_of_a_rule_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
