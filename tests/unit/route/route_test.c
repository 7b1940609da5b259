/* SPDX-License-Identifier: Apache-2.0 */
/* Each test lists rules as an operator would, in the file's order, and asks which one a request gets. */
#include "route/route.h"

#include "http1/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define S(lit)                                                                                               \
    {                                                                                                        \
        ("" lit), sizeof(lit) - 1                                                                            \
    }

static struct arena arena;
static struct route_table *table;
static struct route_scratch *scratch;
static struct config_listener listener;
static struct http_message msg;
static counter gave_up;

static int begin(void **state)
{
    arena_init(&arena);
    scratch = route_scratch_new();
    route_scratch_count(scratch, &gave_up);
    gave_up = 0;
    table = NULL;
    return 0;
}

static int end(void **state)
{
    route_table_fini(table);
    route_scratch_free(scratch);
    arena_fini(&arena);
    return 0;
}

static void compile(struct config_rule *rules, uint32_t n)
{
    struct iso_diag diag;
    diag_init(&diag);
    listener = (struct config_listener){.name = S("lb/80"), .rules = rules, .n_rules = n};
    route_table_fini(table);
    assert_int_equal(route_compile(&listener, &arena, &table, &diag), ISO_OK);
    assert_int_equal(diag.errors, 0);
    diag_fini(&diag);
}

/* The rules live in the test's own block. */
#define compile_rules(...)                                                                                   \
    struct config_rule rules[] = {__VA_ARGS__};                                                              \
    compile(rules, iso_countof(rules))

/* The matched rule's index in the file, or -1. */
static int match_head(const char *head, const char *client)
{
    static const struct h1_limits limits = {65536, 65536, 100};
    enum http_reject why;
    size_t used;
    struct ip_addr addr;
    assert_true(ip_parse(slice_str(client), &addr));
    assert_int_equal(h1_parse_request(head, strlen(head), &limits, &msg, &used, &why), H1_COMPLETE);
    const struct config_rule *rule = route_match(table, &msg, &addr, scratch);
    return rule ? (int)(rule - listener.rules) : -1;
}

static int get_with(const char *host, const char *target, const char *fields)
{
    char head[8192];
    snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", target, host, fields);
    return match_head(head, "192.0.2.1");
}

static int get(const char *host, const char *target)
{
    return get_with(host, target, "");
}

static void no_rules_match_nothing(void **state)
{
    compile(NULL, 0);
    assert_int_equal(get("a", "/"), -1);
}

static void a_rule_without_conditions_matches_everything(void **state)
{
    compile_rules({.name = S("all")});
    assert_int_equal(get("a", "/"), 0);
    assert_int_equal(match_head("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "::1"), 0);
    assert_int_equal(match_head("GET / HTTP/1.0\r\n\r\n", "::1"), 0);
}

static void hosts_are_compared_without_case_port_and_trailing_dot(void **state)
{
    compile_rules({.match.host = S("shop.example")}, {.match.host = S("[2001:db8::1]")},
                  {.match.host = S("2001:db8::2")});
    assert_int_equal(get("shop.example", "/"), 0);
    assert_int_equal(get("SHOP.Example", "/"), 0);
    assert_int_equal(get("shop.example:8080", "/"), 0);
    assert_int_equal(get("shop.example.", "/"), 0);
    assert_int_equal(get("shop.example.:80", "/"), 0);
    assert_int_equal(get("[2001:db8::1]", "/"), 1);
    assert_int_equal(get("[2001:DB8::1]:8080", "/"), 1);
    assert_int_equal(get("[2001:db8::2]:8080", "/"), 2);
    assert_int_equal(get("shop.example.org", "/"), -1);
    assert_int_equal(get("xshop.example", "/"), -1);
    assert_int_equal(match_head("GET / HTTP/1.0\r\n\r\n", "::1"), -1);
}

static void the_host_of_an_absolute_form_target_counts(void **state)
{
    compile_rules({.match.host = S("a.example")}, {.match.host = S("b.example")});
    assert_int_equal(match_head("GET http://b.example/x HTTP/1.1\r\nHost: b.example\r\n\r\n", "::1"), 1);
}

static void a_wildcard_matches_one_label_or_more_in_front(void **state)
{
    compile_rules({.match.host = S("*.example.org")});
    assert_int_equal(get("a.example.org", "/"), 0);
    assert_int_equal(get("a.b.example.org", "/"), 0);
    assert_int_equal(get("A.EXAMPLE.org:81", "/"), 0);
    assert_int_equal(get("example.org", "/"), -1);
    assert_int_equal(get(".example.org", "/"), -1);
    assert_int_equal(get("aexample.org", "/"), -1);
    assert_int_equal(get("a.example.org.evil", "/"), -1);
}

static void exact_host_beats_longer_wildcard_beats_shorter_beats_any(void **state)
{
    compile_rules({.name = S("any")}, {.match.host = S("*.org")}, {.match.host = S("*.example.org")},
                  {.match.host = S("a.example.org")}, {.match.host = S("*.b.example.org")});
    assert_int_equal(get("a.example.org", "/"), 3);
    assert_int_equal(get("c.example.org", "/"), 2);
    assert_int_equal(get("c.b.example.org", "/"), 4);
    assert_int_equal(get("x.org", "/"), 1);
    assert_int_equal(get("x.net", "/"), 0);
}

static void a_host_whose_rules_do_not_hold_leaves_it_to_the_next_host(void **state)
{
    compile_rules({.match = {.host = S("a.org"), .path_prefix = S("/api")}},
                  {.match = {.host = S("*.org"), .path_prefix = S("/img")}}, {.match.path_prefix = S("/")});
    assert_int_equal(get("a.org", "/api/x"), 0);
    assert_int_equal(get("a.org", "/img/x"), 1);
    assert_int_equal(get("a.org", "/x"), 2);
    assert_int_equal(get("b.a.org", "/img/x"), 1);
    assert_int_equal(get("b.a.org", "/x"), 2);
}

static void a_host_longer_than_any_name_still_meets_wildcards(void **state)
{
    char host[700];
    memset(host, 'a', 600);
    strcpy(host + 600, ".internal");
    compile_rules({.match.host = S("*.internal"), .deny_status = 403}, {.name = S("any")});
    assert_int_equal(get(host, "/"), 0);
    assert_int_equal(get(host + 1, "/"), 0);
    host[600] = 'a';
    assert_int_equal(get(host, "/"), 1);
}

static void exact_paths_match_the_path_without_its_query(void **state)
{
    compile_rules({.match.path = S("/a")}, {.match.path = S("/a/b")}, {.match.path = S("/")});
    assert_int_equal(get("h", "/a"), 0);
    assert_int_equal(get("h", "/a?x=/a/b"), 0);
    assert_int_equal(get("h", "/a/b"), 1);
    assert_int_equal(get("h", "/"), 2);
    assert_int_equal(get("h", "/a/"), -1);
    assert_int_equal(get("h", "/a/bc"), -1);
    assert_int_equal(get("h", "/A"), -1);
}

static void prefixes_match_whole_segments_with_or_without_their_slash(void **state)
{
    compile_rules({.match.path_prefix = S("/v2/")}, {.match.path_prefix = S("/w")});
    assert_int_equal(get("h", "/v2"), 0);
    assert_int_equal(get("h", "/v2/"), 0);
    assert_int_equal(get("h", "/v2/x"), 0);
    assert_int_equal(get("h", "/v2?x"), 0);
    assert_int_equal(get("h", "/v20"), -1);
    assert_int_equal(get("h", "/v"), -1);
    assert_int_equal(get("h", "/w"), 1);
    assert_int_equal(get("h", "/w/x"), 1);
    assert_int_equal(get("h", "/wx"), -1);
}

static void longer_prefixes_go_first_and_shorter_ones_catch_what_they_leave(void **state)
{
    compile_rules(
        {.match.path_prefix = S("/")}, {.match.path_prefix = S("/a")},
        {.match = {.path_prefix = S("/a/b"), .methods = (struct slice[]){S("POST")}, .n_methods = 1}},
        {.match.path_prefix = S("/a/bc")});
    assert_int_equal(get("h", "/x"), 0);
    assert_int_equal(get("h", "/a"), 1);
    assert_int_equal(get("h", "/a/b/c"), 1);
    assert_int_equal(get("h", "/a/bc"), 3);
    assert_int_equal(get("h", "/a/bcd"), 1);
    assert_int_equal(match_head("POST /a/b/c HTTP/1.1\r\nHost: h\r\n\r\n", "::1"), 2);
}

static void a_prefix_that_ends_inside_a_segment_is_not_fallen_back_to(void **state)
{
    compile_rules(
        {.match.path_prefix = S("/v")},
        {.match = {.path_prefix = S("/v2"), .methods = (struct slice[]){S("POST")}, .n_methods = 1}});
    assert_int_equal(get("h", "/v2/x"), -1);
    assert_int_equal(get("h", "/v/2"), 0);
}

static void exact_beats_prefix_beats_pattern_beats_any_path(void **state)
{
    compile_rules({.name = S("any")}, {.match.path_regex = S("^/a")}, {.match.path_prefix = S("/a")},
                  {.match.path = S("/a/b")});
    assert_int_equal(get("h", "/a/b"), 3);
    assert_int_equal(get("h", "/a/c"), 2);
    assert_int_equal(get("h", "/ab"), 1);
    assert_int_equal(get("h", "/b"), 0);
}

static void patterns_go_in_the_files_order_and_see_the_path_only(void **state)
{
    compile_rules({.match.path_regex = S("[.](png|jpg)$")}, {.match.path_regex = S("^/users/[0-9]+$")},
                  {.match.path_regex = S("^/users/")});
    assert_int_equal(get("h", "/x/y.png?v=1"), 0);
    assert_int_equal(get("h", "/users/12"), 1);
    assert_int_equal(get("h", "/users/12.jpg"), 0);
    assert_int_equal(get("h", "/users/me"), 2);
    assert_int_equal(get("h", "/x?y.png"), -1);
}

static void a_rule_may_ask_for_a_prefix_and_a_pattern(void **state)
{
    compile_rules({.match.path_prefix = S("/a")},
                  {.match = {.path_prefix = S("/a"), .path_regex = S("[0-9]$")}});
    assert_int_equal(get("h", "/a/1"), 1);
    assert_int_equal(get("h", "/a/x"), 0);
    assert_int_equal(get("h", "/b/1"), -1);
}

static void more_conditions_go_before_fewer_then_the_files_order(void **state)
{
    static struct config_pair one[] = {{S("x-a"), S("1")}};
    static struct config_pair two[] = {{S("x-a"), S("1")}, {S("x-b"), S("*")}};
    compile_rules({.match.path_prefix = S("/a")},
                  {.match = {.path_prefix = S("/a/"), .headers = one, .n_headers = 1}},
                  {.match = {.path_prefix = S("/a"), .headers = two, .n_headers = 2}},
                  {.match = {.path_prefix = S("/a"), .headers = one, .n_headers = 1}});
    assert_int_equal(get("h", "/a"), 0);
    assert_int_equal(get_with("h", "/a", "X-A: 1\r\n"), 1);
    assert_int_equal(get_with("h", "/a", "X-A: 1\r\nX-B: 9\r\n"), 2);
}

static void methods_are_any_of_the_list_and_know_case(void **state)
{
    compile_rules(
        {.match = {.methods = (struct slice[]){S("POST"), S("PURGE"), S("delete")}, .n_methods = 3}});
    assert_int_equal(match_head("POST / HTTP/1.1\r\nHost: h\r\n\r\n", "::1"), 0);
    assert_int_equal(match_head("PURGE / HTTP/1.1\r\nHost: h\r\n\r\n", "::1"), 0);
    assert_int_equal(match_head("purge / HTTP/1.1\r\nHost: h\r\n\r\n", "::1"), -1);
    assert_int_equal(match_head("DELETE / HTTP/1.1\r\nHost: h\r\n\r\n", "::1"), -1);
    assert_int_equal(match_head("delete / HTTP/1.1\r\nHost: h\r\n\r\n", "::1"), 0);
    assert_int_equal(get("h", "/"), -1);
}

static void headers_match_exactly_or_by_presence_in_any_of_their_lines(void **state)
{
    static struct config_pair headers[] = {{S("x-beta"), S("1")}, {S("user-agent"), S("*")}};
    compile_rules({.match = {.headers = headers, .n_headers = 2}});
    assert_int_equal(get_with("h", "/", "X-Beta: 1\r\nUser-Agent: x\r\n"), 0);
    assert_int_equal(get_with("h", "/", "X-BETA: 2\r\nx-beta:  1 \r\nUser-Agent:\r\n"), 0);
    assert_int_equal(get_with("h", "/", "X-Beta: 11\r\nUser-Agent: x\r\n"), -1);
    assert_int_equal(get_with("h", "/", "X-Beta: 1\r\n"), -1);
    assert_int_equal(get_with("h", "/", "X-Betb: 1\r\nUser-Agent: x\r\n"), -1);
}

static void a_header_that_connection_removes_does_not_match(void **state)
{
    static struct config_pair headers[] = {{S("x-beta"), S("1")}};
    compile_rules({.match = {.headers = headers, .n_headers = 1}});
    assert_int_equal(get_with("h", "/", "X-Beta: 1\r\nConnection: x-beta\r\n"), -1);
}

static void cookies_and_query_parameters_match_by_value_or_presence(void **state)
{
    static struct config_pair cookies[] = {{S("ab"), S("b")}, {S("id"), S("*")}};
    static struct config_pair query[] = {{S("v"), S("2")}, {S("debug"), S("*")}};
    compile_rules({.match = {.cookies = cookies, .n_cookies = 2}}, {.match = {.query = query, .n_query = 2}});
    assert_int_equal(get_with("h", "/", "Cookie: id=7; ab=b\r\n"), 0);
    assert_int_equal(get_with("h", "/", "Cookie: id=7\r\nCookie: ab=b\r\n"), 0);
    assert_int_equal(get_with("h", "/", "Cookie: id=7; ab=c\r\n"), -1);
    assert_int_equal(get_with("h", "/", "Cookie: ab=b\r\n"), -1);
    assert_int_equal(get("h", "/?debug&v=2"), 1);
    assert_int_equal(get("h", "/?v=2&debug=0"), 1);
    assert_int_equal(get("h", "/?v=22&debug"), -1);
    assert_int_equal(get("h", "/?v=2"), -1);
    assert_int_equal(get("h", "/"), -1);
}

static void sources_are_any_of_the_prefixes(void **state)
{
    static struct ip_prefix sources[2];
    assert_true(ip_prefix_parse(SLICE("10.0.0.0/8"), &sources[0]));
    assert_true(ip_prefix_parse(SLICE("2001:db8::/32"), &sources[1]));
    compile_rules({.match = {.sources = sources, .n_sources = 2}});
    assert_int_equal(match_head("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "10.9.9.9"), 0);
    assert_int_equal(match_head("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "2001:db8:1::1"), 0);
    assert_int_equal(match_head("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "11.0.0.1"), -1);
    assert_int_equal(match_head("GET / HTTP/1.1\r\nHost: h\r\n\r\n", "::1"), -1);
}

static void a_pattern_that_would_take_for_ever_gives_up_and_is_no_match(void **state)
{
    compile_rules({.match.path_regex = S("^/(a+)+$")}, {.name = S("any")});
    assert_int_equal(get("h", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"), 1);
    assert_int_equal(gave_up, 1);
    assert_int_equal(get("h", "/aaaa"), 0);
    assert_int_equal(gave_up, 1);
}

static void a_pattern_that_gives_up_does_not_open_the_door_of_a_deny_rule(void **state)
{
    compile_rules({.match.path_regex = S("^/(a+)+$"), .deny_status = 403}, {.name = S("any")});
    assert_int_equal(get("h", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"), 0);
    assert_int_equal(get("h", "/b"), 1);
}

static void only_anchored_patterns_are_tried_on_long_paths(void **state)
{
    char path[5000] = "/";
    memset(path + 1, 'a', sizeof(path) - 2);
    compile_rules({.match.path_regex = S("a$")}, {.match.path_regex = S("^/aa")});
    assert_int_equal(get("h", path), 1);
    path[2048] = '\0';
    assert_int_equal(get("h", path), 0);
}

static void a_thousand_paths_and_hosts_find_their_rule(void **state)
{
    enum { N = 1000 };
    struct config_rule *rules = arena_array(&arena, struct config_rule, 2 * N);
    char host[64], path[64];
    for (int i = 0; i < N; i++) {
        rules[i].match.path_prefix = slice_str(arena_printf(&arena, "/svc-%d/", i));
        rules[N + i].match.host = slice_str(arena_printf(&arena, i & 1 ? "*.h%d.example" : "h%d.example", i));
    }
    compile(rules, 2 * N);
    for (int i = 0; i < N; i++) {
        snprintf(path, sizeof(path), "/svc-%d/x", i);
        assert_int_equal(get("other", path), i);
        snprintf(path, sizeof(path), "/svc-%dx", i);
        assert_int_equal(get("other", path), -1);
        snprintf(host, sizeof(host), i & 1 ? "a.h%d.example" : "h%d.example", i);
        assert_int_equal(get(host, "/"), N + i);
    }
}

/* What the header's precedence says, without table or tree. */
static bool naive_holds(const struct config_match *match, struct slice host, struct slice path)
{
    if (match->host.ptr && match->host.ptr[0] == '*' &&
        !(host.len >= match->host.len &&
          slice_ends(host, slice_of(match->host.ptr + 1, match->host.len - 1))))
        return false;
    if (match->host.ptr && match->host.ptr[0] != '*' && !slice_eq(match->host, host))
        return false;
    if (match->path.ptr && !slice_eq(match->path, path))
        return false;
    return !match->path_prefix.ptr || route_prefix_has(route_prefix_trim(match->path_prefix), path);
}

static long naive_rank(const struct config_match *match, uint32_t order)
{
    long host = !match->host.ptr ? 0 : match->host.ptr[0] == '*' ? (long)match->host.len : 1000;
    long path = match->path.ptr          ? 1000
                : match->path_prefix.ptr ? 1 + (long)route_prefix_trim(match->path_prefix).len
                                         : 0;
    return (host * 10000 + path) * 1000 + (999 - (long)order);
}

/* What explaining says of every rule: each once, the tried ones end with the one taken, and of those not
 * tried none that fits goes before it. */
static void assert_explained(const struct config_rule *expected, const struct ip_addr *client)
{
    struct route_verdict verdicts[12];
    uint32_t seen = 0;
    assert_int_equal(listener.n_rules, iso_countof(verdicts));
    assert_ptr_equal(route_explain(table, &msg, client, scratch, verdicts), expected);
    for (uint32_t i = 0; i < iso_countof(verdicts); i++) {
        const struct config_rule *rule = verdicts[i].rule;
        bool fits = naive_holds(&rule->match, msg.authority, msg.path);
        seen |= 1u << (rule - listener.rules);
        assert_int_equal(verdicts[i].miss == ROUTE_HOLDS, fits);
        if (fits && expected)
            assert_true(naive_rank(&rule->match, (uint32_t)(rule - listener.rules)) <=
                        naive_rank(&expected->match, (uint32_t)(expected - listener.rules)));
        if (verdicts[i].was_tried && fits)
            assert_ptr_equal(rule, expected);
    }
    assert_int_equal(seen, (1u << iso_countof(verdicts)) - 1);
}

static void random_tables_agree_with_the_stated_precedence(void **state)
{
    static const struct slice hosts[] = {{0},        S("a.b"), S("*.b"),    S("*.a.b"),
                                         S("b.a.b"), S("b"),   S("*.b.a.b")};
    static const struct slice asked[] = {S("a.b"), S("b"), S("b.a.b"), S("c.b.a.b"), S("a.a.b"), S("x")};
    struct config_rule rules[12];
    struct rng rng;
    rng_init(&rng, 1);
    for (int round = 0; round < 3000; round++) {
        char paths[iso_countof(rules)][8];
        memset(rules, 0, sizeof(rules));
        for (uint32_t i = 0; i < iso_countof(rules); i++) {
            uint32_t len = 1 + rng_below(&rng, 6), kind = rng_below(&rng, 3);
            for (uint32_t at = 0; at < len; at++)
                paths[i][at] = at == 0 ? '/' : "ab/"[rng_below(&rng, 3)];
            struct slice path = slice_of(paths[i], len);
            rules[i].match.host = hosts[rng_below(&rng, iso_countof(hosts))];
            if (kind == 1)
                rules[i].match.path = path;
            else if (kind == 2)
                rules[i].match.path_prefix = path;
        }
        compile(rules, iso_countof(rules));
        for (int question = 0; question < 20; question++) {
            char text[8] = "/";
            uint32_t len = 1 + rng_below(&rng, 6);
            for (uint32_t at = 1; at < len; at++)
                text[at] = "ab/"[rng_below(&rng, 3)];
            http_message_init(&msg, false);
            msg.authority = asked[rng_below(&rng, iso_countof(asked))];
            msg.path = slice_of(text, len);
            const struct config_rule *expected = NULL;
            for (uint32_t i = 0; i < iso_countof(rules); i++)
                if (naive_holds(&rules[i].match, msg.authority, msg.path) &&
                    (!expected || naive_rank(&rules[i].match, i) >
                                      naive_rank(&expected->match, (uint32_t)(expected - rules))))
                    expected = &rules[i];
            struct ip_addr client = {.family = 4};
            assert_ptr_equal(route_match(table, &msg, &client, scratch), expected);
            assert_explained(expected, &client);
        }
    }
}

static void explaining_names_the_condition_that_failed_and_rules_not_reached_K3(void **state)
{
    struct config_pair headers[] = {{S("x-a"), S("1")}, {S("x-b"), S("*")}};
    struct slice post[] = {S("POST")};
    struct route_verdict verdicts[5];
    struct ip_addr client = {.family = 4};
    compile_rules({.match = {.host = S("a.example"), .headers = headers, .n_headers = 2}},
                  {.match.path_prefix = S("/v2/")}, {.match.host = S("b.example")},
                  {.match = {.path_prefix = S("/v2/"), .methods = post, .n_methods = 1}}, {.name = S("all")});
    assert_int_equal(match_head("GET /v2/x HTTP/1.1\r\nHost: a.example\r\nX-A: 1\r\n\r\n", "192.0.2.1"), 1);
    assert_ptr_equal(route_explain(table, &msg, &client, scratch, verdicts), &rules[1]);
    assert_ptr_equal(verdicts[0].rule, &rules[0]);
    assert_int_equal(verdicts[0].miss, ROUTE_MISS_HEADER);
    assert_int_equal(verdicts[0].which, 1);
    assert_ptr_equal(verdicts[1].rule, &rules[3]);
    assert_int_equal(verdicts[1].miss, ROUTE_MISS_METHOD);
    assert_ptr_equal(verdicts[2].rule, &rules[1]);
    assert_int_equal(verdicts[2].miss, ROUTE_HOLDS);
    assert_true(verdicts[2].was_tried);
    assert_ptr_equal(verdicts[3].rule, &rules[2]);
    assert_int_equal(verdicts[3].miss, ROUTE_MISS_HOST);
    assert_ptr_equal(verdicts[4].rule, &rules[4]);
    assert_int_equal(verdicts[4].miss, ROUTE_HOLDS);
    assert_false(verdicts[4].was_tried);
}

static void a_pattern_that_does_not_compile_is_reported(void **state)
{
    static struct config_rule rules[] = {
        {.match.path_regex = S("^/ok")}, {.match.path_regex = S("^/(broken")}, {.match.path_regex = S("*")}};
    struct iso_diag diag;
    diag_init(&diag);
    listener = (struct config_listener){.name = S("lb/80"), .rules = rules, .n_rules = iso_countof(rules)};
    assert_int_equal(route_compile(&listener, &arena, &table, &diag), ISO_ERR_INVALID);
    assert_null(table);
    assert_int_equal(diag.errors, 2);
    assert_string_equal(diag.first->path, "rules/1/match/path_regex");
    assert_non_null(strstr(diag.first->message, "^/(broken"));
    assert_non_null(strstr(diag.first->message, "offset 9"));
    diag_fini(&diag);
}

static void groups_are_drawn_by_weight_A10(void **state)
{
    enum { DRAWS = 100000 };
    struct config_forward forward[] = {{.target_group = 7, .weight = 95},
                                       {.target_group = 3, .weight = 0},
                                       {.target_group = 5, .weight = 5}};
    struct config_rule rule = {.forward = forward, .n_forward = 3};
    struct rng rng;
    uint32_t drawn[8] = {0};
    rng_init(&rng, 42);
    for (int i = 0; i < DRAWS; i++)
        drawn[route_forward(&rule, &rng)]++;
    assert_int_equal(drawn[7] + drawn[5], DRAWS);
    assert_in_range(drawn[5], DRAWS * 5 / 100 - 300, DRAWS * 5 / 100 + 300);
}

static void weights_of_0_draw_nothing(void **state)
{
    struct config_forward forward[] = {{.target_group = 7, .weight = 0}, {.target_group = 3, .weight = 0}};
    struct config_rule rule = {.forward = forward, .n_forward = 2};
    struct rng rng;
    rng_init(&rng, 42);
    assert_int_equal(route_forward(&rule, &rng), -1);
    rule.n_forward = 1;
    assert_int_equal(route_forward(&rule, &rng), -1);
    forward[0].weight = 1;
    assert_int_equal(route_forward(&rule, &rng), 7);
}

#define test(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(no_rules_match_nothing),
        test(a_rule_without_conditions_matches_everything),
        test(hosts_are_compared_without_case_port_and_trailing_dot),
        test(the_host_of_an_absolute_form_target_counts),
        test(a_wildcard_matches_one_label_or_more_in_front),
        test(exact_host_beats_longer_wildcard_beats_shorter_beats_any),
        test(a_host_whose_rules_do_not_hold_leaves_it_to_the_next_host),
        test(a_host_longer_than_any_name_still_meets_wildcards),
        test(exact_paths_match_the_path_without_its_query),
        test(prefixes_match_whole_segments_with_or_without_their_slash),
        test(longer_prefixes_go_first_and_shorter_ones_catch_what_they_leave),
        test(a_prefix_that_ends_inside_a_segment_is_not_fallen_back_to),
        test(exact_beats_prefix_beats_pattern_beats_any_path),
        test(patterns_go_in_the_files_order_and_see_the_path_only),
        test(a_rule_may_ask_for_a_prefix_and_a_pattern),
        test(more_conditions_go_before_fewer_then_the_files_order),
        test(methods_are_any_of_the_list_and_know_case),
        test(headers_match_exactly_or_by_presence_in_any_of_their_lines),
        test(a_header_that_connection_removes_does_not_match),
        test(cookies_and_query_parameters_match_by_value_or_presence),
        test(sources_are_any_of_the_prefixes),
        test(a_pattern_that_would_take_for_ever_gives_up_and_is_no_match),
        test(a_pattern_that_gives_up_does_not_open_the_door_of_a_deny_rule),
        test(only_anchored_patterns_are_tried_on_long_paths),
        test(a_thousand_paths_and_hosts_find_their_rule),
        test(random_tables_agree_with_the_stated_precedence),
        test(explaining_names_the_condition_that_failed_and_rules_not_reached_K3),
        test(a_pattern_that_does_not_compile_is_reported),
        test(groups_are_drawn_by_weight_A10),
        test(weights_of_0_draw_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
