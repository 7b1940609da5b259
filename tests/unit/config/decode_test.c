/* SPDX-License-Identifier: Apache-2.0 */
/* What single values may be, and the messages about those that may not. */
#include "faults.h"

#include <stdio.h>

/* Behind these a text is a whole configuration without faults of its own. */
#define GROUP "target_groups: [{name: g, targets: [{ip: 10.0.0.1, port: 80}]}]\n"
#define SERVE "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n" GROUP
/* A rule with `keys` on line 1. */
#define RULE(keys) "load_balancers: [{name: l, listeners: [{port: 80, rules: [{" keys "}]}]}]\n" GROUP
/* A match with `keys`. */
#define MATCH(keys) RULE("match: {" keys "}, forward: [{target_group: g}]")

static void misspelt_keys_get_a_suggestion_C125(void **state)
{
    expect_faults("worker: 1\n" SERVE,
                  "f:1:1: /worker: is not a key of a configuration, did you mean \"workers\"?\n");
    expect_faults("blance: least_conn\n" SERVE,
                  "f:1:1: /blance: is not a key of a configuration, did you mean "
                  "\"algorithm\", which belongs in target_groups[]?\n");
    expect_faults(
        "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"
        "target_groups:\n  - name: g\n    blance: random\n    targets: [{ip: 10.0.0.1, port: 80}]\n",
        "f:4:5: /target_groups/0/blance: is not a key of a target group, did you mean \"algorithm\"?\n");
}

static void keys_in_the_wrong_section_are_told_where_they_belong_C125(void **state)
{
    expect_faults(
        "algorithm: random\n" SERVE,
        "f:1:1: /algorithm: is not a key of a configuration, \"algorithm\" belongs in target_groups[]\n");
    expect_faults("connect_ms: 5\n" SERVE,
                  "f:1:1: /connect_ms: is not a key of a configuration, \"connect_ms\" belongs "
                  "in target_groups[].timeouts\n");
}

static void keys_like_nothing_get_the_list(void **state)
{
    expect_faults(
        "access_log: {zzzzzz: 1}\n" SERVE,
        "f:1:14: /access_log/zzzzzz: is not a key of an access log, expected one of file, format\n");
}

static void addresses_that_are_none_are_explained(void **state)
{
#define IP(text)                                                                                             \
    "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"                        \
    "target_groups: [{name: g, targets: [{ip: \"" text "\", port: 80}]}]\n"
    const char *where = "f:2:42: /target_groups/0/targets/0/ip: is the text ";
    static const struct {
        const char *yaml, *said;
    } cases[] = {
        {IP("10.0.0.1:80"),
         "\"10.0.0.1:80\", expected an IPv4 or IPv6 address; a port has a key of its own\n"},
        {IP("app.internal"),
         "\"app.internal\", expected an IPv4 or IPv6 address; a target's name belongs to \"host\"\n"},
        {IP("10.0.0.1/8"), "\"10.0.0.1/8\", expected an IPv4 or IPv6 address without a prefix length\n"},
        {IP("10.0.0"), "\"10.0.0\", expected an IPv4 or IPv6 address\n"},
    };
    for (size_t i = 0; i < iso_countof(cases); i++) {
        char expected[200];
        snprintf(expected, sizeof(expected), "%s%s", where, cases[i].said);
        expect_faults(cases[i].yaml, expected);
    }
#undef IP
}

static void units_in_values_are_explained_C125(void **state)
{
    expect_faults("shutdown_s: 5x\n" SERVE,
                  "f:1:13: /shutdown_s: is the text \"5x\", expected a number of seconds from 0 "
                  "to 3600; write the number alone, the unit is in the key's name\n");
    expect_faults("timeout: 5x\n" SERVE,
                  "f:1:1: /timeout: is not a key of a configuration, did you mean \"timeouts\", "
                  "which belongs in target_groups[]?\n");
    expect_faults("workers: \"4\"\n" SERVE,
                  "f:1:10: /workers: is the text \"4\", expected a whole number from 0 to 1024; "
                  "write it without quotes and without leading zeros\n");
}

static void wrong_kinds_say_what_was_found(void **state)
{
    expect_faults(
        "workers: [1]\nvia: yes\naccess_log: 3\n" SERVE,
        "f:1:10: /workers: is a list, expected a whole number from 0 to 1024\n"
        "f:2:6: /via: is the text \"yes\", expected true or false\n"
        "f:3:13: /access_log: is the number 3, expected an access log: a map (keys: file, format)\n");
    expect_faults("access_log: {file: , format: {a: b}}\n" SERVE,
                  "f:1:20: /access_log/file: is empty, expected \"off\", \"stdout\" or a file name\n"
                  "f:1:30: /access_log/format: is a map, expected json, common, combined or a text with "
                  "fields in braces "
                  "such as \"{client} {status}\"\n");
    expect_faults("load_balancers: {name: l}\n",
                  "f:1:17: /load_balancers: is a map, expected a list, each item a load "
                  "balancer: a map\n");
    struct text faults = faults_of("f", SLICE("[]"));
    assert_non_null(
        strstr(faults.data, "f:1:1: is an empty list, expected a configuration: a map (keys: admin, "));
    text_fini(&faults);
}

static void an_empty_document_is_a_fault(void **state)
{
    expect_faults("", "f:1:1: is empty, expected a configuration: a map\n");
    expect_faults("---\n", "f:1:1: is empty, expected a configuration: a map\n");
}

static void numbers_outside_their_bounds_are_refused(void **state)
{
    static const char *const bad[] = {"-1",    "1025", "1.5",  "9223372036854775808",
                                      "1e999", ".inf", ".nan", "0x10"};
    for (size_t i = 0; i < iso_countof(bad); i++) {
        struct text yaml;
        text_init(&yaml);
        text_printf(&yaml, "workers: %s\n" SERVE, bad[i]);
        struct text faults = faults_of("f", text_slice(&yaml));
        if (!faults.len || !strstr(faults.data, "f:1:10: /workers: is ") ||
            !strstr(faults.data, "expected a whole number from 0 to 1024"))
            fail_msg("%s: %s", bad[i], faults.len ? faults.data : "no fault");
        text_fini(&faults);
        text_fini(&yaml);
    }
}

static void seconds_have_fractions_and_become_milliseconds(void **state)
{
    struct config *config =
        load_good("shutdown_s: 0.25\n"
                  "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"
                  "target_groups: [{name: g, health_check: {interval_s: 0.2, timeout_ms: 100}, "
                  "targets: [{ip: 10.0.0.1, port: 80}]}]\n");
    assert_int_equal(config->shutdown_ms, 250);
    assert_int_equal(config->target_groups[0].health_check.interval_ms, 200);
    config_free(config);
    expect_faults("shutdown_s: 0.0001\n" SERVE,
                  "f:1:13: /shutdown_s: is the number 0.0001, expected a number of seconds from 0 to 3600\n");
    expect_faults("shutdown_s: -1\n" SERVE,
                  "f:1:13: /shutdown_s: is the number -1, expected a number of seconds from 0 to 3600\n");
    expect_faults("shutdown_s: 1e300\n" SERVE,
                  "f:1:13: /shutdown_s: is the number 1e300, expected a number of seconds from 0 to 3600\n");
}

static void choices_get_a_suggestion(void **state)
{
    expect_faults("load_balancers: [{name: l, listeners: [{port: 80, protocol: http, default_target_group: "
                  "g}]}]\n" GROUP,
                  "f:1:61: /load_balancers/0/listeners/0/protocol: is the text \"http\", did you mean "
                  "\"HTTP\"? Expected "
                  "one of HTTP, HTTPS, H2C, TCP, UDP, TLS\n");
    expect_faults(
        "load_balancers: [{name: l, listeners: [{port: 80, protocol: SMTP, default_target_group: "
        "g}]}]\n" GROUP,
        "f:1:61: /load_balancers/0/listeners/0/protocol: is the text \"SMTP\", expected one of HTTP, "
        "HTTPS, H2C, TCP, UDP, TLS\n");
}

static void a_list_may_be_one_value_alone(void **state)
{
    struct config *config = load_good("trusted_proxies: 10.0.0.0/8\n" MATCH("methods: GET, source: \"::1\""));
    const struct config_match *match = &config->load_balancers[0].listeners[0].rules[0].match;
    assert_int_equal(config->n_trusted_proxies, 1);
    assert_int_equal(match->n_methods, 1);
    assert_string_equal(match->methods[0].ptr, "GET");
    assert_int_equal(match->n_sources, 1);
    assert_int_equal(match->sources[0].bits, 128);
    config_free(config);
}

static void texts_take_numbers_as_they_were_written(void **state)
{
    struct config *config = load_good(MATCH("headers: {X-Version: 1.10, x-beta: true}, query: {n: 0}"));
    const struct config_match *match = &config->load_balancers[0].listeners[0].rules[0].match;
    assert_string_equal(match->headers[0].name.ptr, "x-version");
    assert_string_equal(match->headers[0].value.ptr, "1.10");
    assert_string_equal(match->headers[1].value.ptr, "true");
    assert_string_equal(match->query[0].value.ptr, "0");
    config_free(config);
}

static void hash_keys_have_a_name_or_none(void **state)
{
    static const struct {
        const char *key;
        enum config_hash_kind kind;
        const char *name;
    } cases[] = {{"client_ip", CONFIG_HASH_CLIENT_IP, NULL},
                 {"path", CONFIG_HASH_PATH, NULL},
                 {"{header: x-user}", CONFIG_HASH_HEADER, "x-user"},
                 {"{cookie: sid}", CONFIG_HASH_COOKIE, "sid"},
                 {"{query: id}", CONFIG_HASH_QUERY, "id"}};
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct text yaml;
        text_init(&yaml);
        text_printf(&yaml,
                    "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"
                    "target_groups: [{name: g, algorithm: maglev, hash_key: %s, targets: [{ip: 10.0.0.1, "
                    "port: 80}]}]\n",
                    cases[i].key);
        struct config *config = load_good(yaml.data);
        assert_int_equal(config->target_groups[0].hash_kind, cases[i].kind);
        if (cases[i].name)
            assert_string_equal(config->target_groups[0].hash_name.ptr, cases[i].name);
        else
            assert_null(config->target_groups[0].hash_name.ptr);
        config_free(config);
        text_fini(&yaml);
    }
    expect_faults("load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"
                  "target_groups: [{name: g, algorithm: maglev, hash_key: header, targets: [{ip: 10.0.0.1, "
                  "port: 80}]}]\n",
                  "f:2:56: /target_groups/0/hash_key: is the text \"header\", expected client_ip, path, "
                  "{header: NAME}, "
                  "{cookie: NAME} or {query: NAME}\n");
}

static void a_health_check_with_a_path_is_a_request(void **state)
{
#define CHECKED(check)                                                                                       \
    "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"                        \
    "target_groups: [{name: g, health_check: {" check "}, targets: [{ip: 10.0.0.1, port: 80}]}]\n"
    static const struct {
        const char *yaml;
        enum config_health_type type;
    } cases[] = {{CHECKED("path: /healthz"), CONFIG_HEALTH_HTTP},
                 {CHECKED("method: HEAD"), CONFIG_HEALTH_HTTP},
                 {CHECKED("expect: {status: 200}"), CONFIG_HEALTH_HTTP},
                 {CHECKED("interval_s: 5"), CONFIG_HEALTH_TCP},
                 {CHECKED("type: none, path: /healthz"), CONFIG_HEALTH_NONE},
                 {CHECKED("type: deep, path: /healthz"), CONFIG_HEALTH_DEEP}};
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct config *config = load_good(cases[i].yaml);
        assert_int_equal(config->target_groups[0].health_check.type, cases[i].type);
        config_free(config);
    }
#undef CHECKED
}

static void expected_statuses_are_ranges(void **state)
{
#define CHECK(status)                                                                                        \
    "load_balancers: [{name: l, listeners: [{port: 80, default_target_group: g}]}]\n"                        \
    "target_groups: [{name: g, health_check: {type: http, expect: {status: " status                          \
    "}}, targets: [{ip: 10.0.0.1, port: 80}]}]\n"
    struct config *config = load_good(CHECK("\"200-299, 404\""));
    const struct config_health_check *check = &config->target_groups[0].health_check;
    assert_int_equal(check->n_expect, 2);
    assert_int_equal(check->expect[0].from, 200);
    assert_int_equal(check->expect[0].to, 299);
    assert_int_equal(check->expect[1].to, 404);
    config_free(config);
    config = load_good(CHECK("204"));
    assert_int_equal(config->target_groups[0].health_check.expect[0].from, 204);
    config_free(config);
    static const char *const bad[] = {CHECK("600"),      CHECK("20"),   CHECK("\"399-200\""),
                                      CHECK("\"200-\""), CHECK("\"\""), CHECK("\"200,\""),
                                      CHECK("[200]"),    CHECK("2xx")};
    for (size_t i = 0; i < iso_countof(bad); i++) {
        struct text faults = faults_of("f", slice_str(bad[i]));
        assert_non_null(strstr(faults.data, "expected statuses from 100 to 599"));
        text_fini(&faults);
    }
#undef CHECK
}

static void rejects_prefixes_with_bits_behind_their_length(void **state)
{
    expect_faults(
        "trusted_proxies: [10.0.0.1/8, 10.0.0.0/33, x]\n" SERVE,
        "f:1:19: /trusted_proxies/0: is the text \"10.0.0.1/8\", expected an address or a prefix such as "
        "10.0.0.0/8 or 2001:db8::/32; bits behind the prefix length must be 0\n"
        "f:1:31: /trusted_proxies/1: is the text \"10.0.0.0/33\", expected an address or a prefix such as "
        "10.0.0.0/8 or 2001:db8::/32; bits behind the prefix length must be 0\n"
        "f:1:44: /trusted_proxies/2: is the text \"x\", expected an address or a prefix such as 10.0.0.0/8 "
        "or "
        "2001:db8::/32\n");
}

static void rejects_match_values_that_can_match_nothing(void **state)
{
    expect_faults(MATCH("host: \"a b\""), "f:1:74: /load_balancers/0/listeners/0/rules/0/match/host: is the "
                                          "text \"a b\", expected a host name such "
                                          "as example.com or *.example.com, or an address\n");
    expect_faults(MATCH("host: \"a:80\""),
                  "f:1:74: /load_balancers/0/listeners/0/rules/0/match/host: is the text \"a:80\", expected "
                  "a host name "
                  "such as example.com or *.example.com, or an address; a port is not matched\n");
    expect_faults(MATCH("path: x"),
                  "f:1:74: /load_balancers/0/listeners/0/rules/0/match/path: is the text \"x\", expected "
                  "a path that begins with /\n");
    expect_faults(MATCH("path: \"/a?b\""),
                  "f:1:74: /load_balancers/0/listeners/0/rules/0/match/path: is the text "
                  "\"/a?b\", expected a path without ? and #\n");
    expect_faults(MATCH("methods: [get]"),
                  "f:1:78: /load_balancers/0/listeners/0/rules/0/match/methods/0: is the text "
                  "\"get\", did you mean \"GET\"? Methods are written in capitals\n");
    expect_faults(MATCH("path_regex: \"a(b\""),
                  "f:1:80: /load_balancers/0/listeners/0/rules/0/match/path_regex: is the text \"a(b\", "
                  "expected a regular "
                  "expression (PCRE2): missing closing parenthesis at offset 3\n");
    expect_faults(MATCH("headers: {\"a b\": c}"),
                  "f:1:78: /load_balancers/0/listeners/0/rules/0/match/headers/a b: is no "
                  "valid name, expected a name of letters, digits and signs such as - _ . "
                  "without blanks\n");
}

static void rejects_header_changes_that_would_break_the_framing(void **state)
{
    expect_faults(
        RULE("forward: [{target_group: g}], rewrite: {set_headers: {Transfer-Encoding: x}}"),
        "f:1:114: /load_balancers/0/listeners/0/rules/0/rewrite/set_headers/Transfer-Encoding: the field "
        "\"transfer-encoding\" is set by the balancer alone\n");
    expect_faults(RULE("forward: [{target_group: g}], rewrite: {add_headers: {Host: x}}"),
                  "f:1:114: /load_balancers/0/listeners/0/rules/0/rewrite/add_headers/Host: the field "
                  "\"host\" is set by "
                  "the balancer alone; see rewrite.host\n");
    expect_faults(RULE("forward: [{target_group: g}], rewrite: {remove_headers: [content-length]}"),
                  "f:1:117: /load_balancers/0/listeners/0/rules/0/rewrite/remove_headers/0: the field "
                  "\"content-length\" is "
                  "set by the balancer alone\n");
    expect_faults(RULE("forward: [{target_group: g}], rewrite: {set_headers: {x: \"a\\r\\nb: c\"}}"),
                  "f:1:117: /load_balancers/0/listeners/0/rules/0/rewrite/set_headers/x: is the text "
                  "\"a\\u000d\\u000ab: c\", "
                  "expected a text without control characters or blanks at its ends\n");
}

static void access_log_formats_are_compiled(void **state)
{
    expect_faults(
        "access_log: {format: \"{client} {stauts}\"}\n" SERVE,
        "f:1:22: /access_log/format: is the text \"{client} {stauts}\", {stauts} is no field, did you mean "
        "{status}?\n");
    expect_faults("access_log: {format: combnied}\n" SERVE,
                  "f:1:22: /access_log/format: is the text \"combnied\", expected json, common, combined or "
                  "a text with "
                  "fields in braces such as \"{client} {status}\"\n");
    struct config *config = load_good("access_log: {file: log/a.log, format: combined}\n" SERVE);
    assert_string_equal(config->access_log.file.ptr, "/etc/isobar/log/a.log");
    config_free(config);
}

static void relative_socket_paths_begin_at_the_file(void **state)
{
    struct config *config =
        load_good("admin: {listen: \"unix:admin.sock\"}\n"
                  "load_balancers: [{name: l, listeners: [{unix: in.sock, default_target_group: g}]}]\n"
                  "target_groups: [{name: g, targets: [{unix: /run/a.sock}, {unix: b.sock}]}]\n");
    assert_string_equal(config->load_balancers[0].listeners[0].endpoint.text.ptr, "unix:/etc/isobar/in.sock");
    assert_string_equal(config->admin.listen.text.ptr, "unix:/etc/isobar/admin.sock");
    assert_string_equal(config->target_groups[0].targets[0].endpoint.unix_path.ptr, "/run/a.sock");
    assert_string_equal(config->target_groups[0].targets[1].endpoint.text.ptr, "unix:/etc/isobar/b.sock");
    config_free(config);
}

/* They would otherwise write lines of their own into logs. */
static void rejects_control_characters_in_file_names(void **state)
{
    expect_faults("access_log: {file: \"a\\nb\"}\n" SERVE,
                  "f:1:20: /access_log/file: is the text \"a\\u000ab\", expected "
                  "\"off\", \"stdout\" or a file name\n");
    expect_faults(
        "load_balancers: [{name: l, listeners: [{unix: \"a\\nb\", default_target_group: g}]}]\n" GROUP,
        "f:1:47: /load_balancers/0/listeners/0/unix: is the text \"a\\u000ab\", expected the path of a unix "
        "socket, at most 107 bytes\n");
}

static void the_number_of_faults_that_are_told_is_bounded(void **state)
{
    struct text yaml;
    text_init(&yaml);
    for (int i = 0; i < 5000; i++)
        text_printf(&yaml, "k%d: 1\n", i);
    struct text faults = faults_of("f", text_slice(&yaml));
    size_t lines = 0;
    for (size_t i = 0; i < faults.len; i++)
        lines += faults.data[i] == '\n';
    assert_int_equal(lines, DOC_FAULTS_MAX + 1);
    assert_non_null(strstr(faults.data, "has more faults than these"));
    text_fini(&faults);
    text_fini(&yaml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misspelt_keys_get_a_suggestion_C125),
        cmocka_unit_test(keys_in_the_wrong_section_are_told_where_they_belong_C125),
        cmocka_unit_test(keys_like_nothing_get_the_list),
        cmocka_unit_test(addresses_that_are_none_are_explained),
        cmocka_unit_test(units_in_values_are_explained_C125),
        cmocka_unit_test(wrong_kinds_say_what_was_found),
        cmocka_unit_test(an_empty_document_is_a_fault),
        cmocka_unit_test(numbers_outside_their_bounds_are_refused),
        cmocka_unit_test(seconds_have_fractions_and_become_milliseconds),
        cmocka_unit_test(choices_get_a_suggestion),
        cmocka_unit_test(a_list_may_be_one_value_alone),
        cmocka_unit_test(texts_take_numbers_as_they_were_written),
        cmocka_unit_test(hash_keys_have_a_name_or_none),
        cmocka_unit_test(a_health_check_with_a_path_is_a_request),
        cmocka_unit_test(expected_statuses_are_ranges),
        cmocka_unit_test(rejects_prefixes_with_bits_behind_their_length),
        cmocka_unit_test(rejects_match_values_that_can_match_nothing),
        cmocka_unit_test(rejects_header_changes_that_would_break_the_framing),
        cmocka_unit_test(access_log_formats_are_compiled),
        cmocka_unit_test(relative_socket_paths_begin_at_the_file),
        cmocka_unit_test(rejects_control_characters_in_file_names),
        cmocka_unit_test(the_number_of_faults_that_are_told_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
