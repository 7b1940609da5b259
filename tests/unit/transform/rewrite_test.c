/* SPDX-License-Identifier: Apache-2.0 */
#include "transform/rewrite.h"

#include "http1/parse.h"
#include "http1/write.h"

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

static struct http_message msg;
static char room[1024], head[2048], out[4096];

static void parse(const char *text)
{
    static const struct h1_limits limits = {65536, 8192, 250};
    enum http_reject why;
    size_t used, len = strlen(text);
    memcpy(head, text, len);
    assert_int_equal(h1_parse_request(head, len, &limits, &msg, &used, &why), H1_COMPLETE);
}

static void assert_rewritten(const struct config_rule *rule, const char *text, const char *expected)
{
    struct scratch scratch = {room, room + sizeof(room)};
    parse(text);
    assert_true(rewrite_request(rule, &msg, &scratch));
    size_t n = h1_write_request(out, sizeof(out) - 1, &msg);
    out[n] = '\0';
    assert_string_equal(out, expected);
}

static void assert_path(const char *prefix, const char *replacement, const char *target, const char *expected)
{
    struct config_rule rule = {.match.path_prefix = slice_str(prefix),
                               .rewrite.path_prefix = slice_str(replacement)};
    char text[256], wanted[256];
    snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", target);
    snprintf(wanted, sizeof(wanted), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", expected);
    assert_rewritten(&rule, text, wanted);
}

static void the_matched_prefix_is_replaced_by_whole_segments(void **state)
{
    assert_path("/foo", "/xyz", "/foo/bar", "/xyz/bar");
    assert_path("/foo", "/xyz/", "/foo/bar", "/xyz/bar");
    assert_path("/foo/", "/xyz", "/foo/bar", "/xyz/bar");
    assert_path("/foo/", "/xyz/", "/foo/bar", "/xyz/bar");
    assert_path("/foo", "/xyz", "/foo", "/xyz");
    assert_path("/foo", "/xyz/", "/foo", "/xyz/");
    assert_path("/foo", "/xyz", "/foo/", "/xyz/");
    assert_path("/foo", "", "/foo/bar", "/bar");
    assert_path("/foo", "", "/foo/", "/");
    assert_path("/foo", "", "/foo", "/");
    assert_path("/foo", "/", "/foo/", "/");
    assert_path("/foo", "/", "/foo", "/");
    assert_path("/", "/app", "/x", "/app/x");
    assert_path("/", "/app/", "/", "/app/");
}

static void the_query_stays_when_the_path_changes(void **state)
{
    assert_path("/foo", "/xyz", "/foo/bar?a=/foo&b", "/xyz/bar?a=/foo&b");
    assert_path("/foo", "/xyz", "/foo?", "/xyz?");
    assert_true(slice_eq(msg.path, SLICE("/xyz")));
    assert_path("/foo", "/xyz", "/foo?q=1", "/xyz?q=1");
    assert_true(slice_eq(msg.path, SLICE("/xyz")));
    assert_true(slice_eq(msg.query, SLICE("q=1")));
}

static void without_a_prefix_to_replace_the_new_one_is_put_in_front(void **state)
{
    struct config_rule any = {.rewrite.path_prefix = S("/app")};
    assert_rewritten(&any, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n", "GET /app/a HTTP/1.1\r\nHost: h\r\n\r\n");
}

static void a_target_without_a_path_stays_as_it_is(void **state)
{
    struct config_rule any = {.rewrite.path_prefix = S("/app")};
    assert_rewritten(&any, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
}

static void absolute_form_is_rewritten_too(void **state)
{
    struct config_rule rule = {.match.path_prefix = S("/a"),
                               .rewrite = {.path_prefix = S("/b"), .host = S("in.example")}};
    assert_rewritten(&rule, "GET http://h/a/x?y HTTP/1.1\r\nHost: h\r\n\r\n",
                     "GET /b/x?y HTTP/1.1\r\nHost: in.example\r\n\r\n");
}

static void the_host_is_replaced_where_it_stands(void **state)
{
    struct config_rule rule = {.rewrite.host = S("in.example:8080")};
    assert_rewritten(&rule, "GET / HTTP/1.1\r\nA: 1\r\nHost: shop.example\r\nB: 2\r\n\r\n",
                     "GET / HTTP/1.1\r\nA: 1\r\nHost: in.example:8080\r\nB: 2\r\n\r\n");
    assert_rewritten(&rule, "GET / HTTP/1.0\r\n\r\n", "GET / HTTP/1.1\r\nHost: in.example:8080\r\n\r\n");
}

static void fields_are_removed_then_set_then_added(void **state)
{
    struct slice remove[] = {S("x-internal"), S("cookie")};
    struct config_pair set[] = {{S("X-Env"), S("prod")}, {S("user-agent"), S("isobar")}};
    struct config_pair add[] = {{S("x-env"), S("blue")}, {S("cookie"), S("a=b")}};
    struct config_rule rule = {
        .rewrite.request = {.remove = remove, .n_remove = 2, .set = set, .n_set = 2, .add = add, .n_add = 2}};
    assert_rewritten(
        &rule,
        "GET / HTTP/1.1\r\nHost: h\r\nX-Internal: 1\r\nx-env: dev\r\nCookie: x=y\r\nX-ENV: test\r\n"
        "x-internal: 2\r\nUser-Agent: curl\r\nB: 2\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nB: 2\r\nX-Env: prod\r\nuser-agent: isobar\r\nx-env: blue\r\n"
        "cookie: a=b\r\n\r\n");
}

static void setting_one_field_twice_keeps_both_values(void **state)
{
    struct config_pair set[] = {{S("X-A"), S("1")}, {S("X-A"), S("2")}};
    struct config_rule rule = {.rewrite.request = {.set = set, .n_set = 2}};
    assert_rewritten(&rule, "GET / HTTP/1.1\r\nHost: h\r\nX-A: 0\r\n\r\n",
                     "GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\n\r\n");
}

static void response_fields_are_changed_by_their_own_list(void **state)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nServer: x\r\nContent-Length: 0\r\n\r\n";
    static const struct h1_limits limits = {65536, 8192, 250};
    struct slice remove[] = {S("server")};
    struct config_pair set[] = {{S("Strict-Transport-Security"), S("max-age=1")}};
    struct config_rule rule = {.rewrite.response = {.remove = remove, .n_remove = 1, .set = set, .n_set = 1}};
    enum http_reject why;
    size_t used;
    struct scratch scratch = {room, room + sizeof(room)};
    assert_int_equal(h1_parse_response(text, sizeof(text) - 1, &limits, HTTP_GET, &msg, &used, &why),
                     H1_COMPLETE);
    assert_true(rewrite_response(&rule, &msg, &scratch));
    size_t n = h1_write_response(out, sizeof(out) - 1, &msg, 1, false);
    out[n] = '\0';
    assert_string_equal(
        out, "HTTP/1.1 200 OK\r\nStrict-Transport-Security: max-age=1\r\nContent-Length: 0\r\n\r\n");
}

static void what_does_not_fit_is_refused(void **state)
{
    struct config_pair add[] = {{S("x"), S("y")}};
    struct config_rule fields = {.rewrite.request = {.add = add, .n_add = 1}};
    struct config_rule path = {.match.path_prefix = S("/a"), .rewrite.path_prefix = S("/bcd")};
    for (size_t cap = 0; cap <= 8; cap++) {
        char *exact = malloc(cap + 1);
        struct scratch scratch = {exact, exact + cap};
        parse("GET /a/x?y HTTP/1.1\r\nHost: h\r\n\r\n");
        assert_int_equal(rewrite_request(&path, &msg, &scratch), cap == 8);
        free(exact);
    }
    struct scratch scratch = {room, room + sizeof(room)};
    while (http_message_add(&msg, SLICE("a"), SLICE("b")))
        continue;
    assert_false(rewrite_request(&fields, &msg, &scratch));
}

static void assert_location(const struct config_redirect *redirect, const char *host, const char *target,
                            bool tls, const char *expected)
{
    char text[512];
    struct slice location;
    struct scratch scratch = {room, room + sizeof(room)};
    if (host)
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, host);
    else
        snprintf(text, sizeof(text), "GET %s HTTP/1.0\r\n\r\n", target);
    parse(text);
    assert_true(rewrite_redirect(redirect, &msg, tls, &scratch, &location));
    if (!slice_eq(location, slice_str(expected)))
        fail_msg("%.*s is not %s", SLICE_ARG(location), expected);
}

static void a_redirect_to_https_keeps_host_path_and_query_but_not_the_port(void **state)
{
    const struct config_redirect https = {.scheme = S("https")};
    assert_location(&https, "shop.example", "/a?b=c", false, "https://shop.example/a?b=c");
    assert_location(&https, "shop.example:8080", "/", false, "https://shop.example/");
    assert_location(&https, "[::1]:8080", "/a?", false, "https://[::1]/a");
}

static void a_redirect_on_the_same_origin_keeps_the_port(void **state)
{
    const struct config_redirect path = {.path = S("/new")};
    const struct config_redirect same = {.scheme = S("https"), .path = S("/new")};
    assert_location(&path, "shop.example:8080", "/a?b", false, "http://shop.example:8080/new");
    assert_location(&same, "shop.example:8443", "/a?b", true, "https://shop.example:8443/new");
}

static void placeholders_are_filled_in_once(void **state)
{
    const struct config_redirect all = {
        .host = S("www.{host}"), .path = S("/x{path}?{query}"), .port = 8443, .scheme = S("https")};
    const struct config_redirect odd = {.path = S("/{x}{path}{")};
    assert_location(&all, "shop.example:80", "/a?b", false, "https://www.shop.example:8443/x/a?b");
    assert_location(&all, "shop.example", "/a", false, "https://www.shop.example:8443/x/a");
    assert_location(&odd, "h", "/{query}?q", false, "http://h/{x}/{query}{");
}

static void a_default_port_is_not_written(void **state)
{
    const struct config_redirect https = {.scheme = S("https"), .port = 443};
    const struct config_redirect http = {.port = 80, .host = S("h")};
    const struct config_redirect other = {.port = 443, .host = S("h")};
    assert_location(&https, "a", "/", false, "https://a/");
    assert_location(&http, "a", "/", false, "http://h/");
    assert_location(&other, "a", "/", false, "http://h:443/");
}

static void rejects_to_send_clients_to_a_host_that_a_path_names(void **state)
{
    const struct config_redirect keep = {.status = 301};
    const struct config_redirect query = {.path = S("{query}")};
    assert_location(&keep, "h", "//evil.example/x", false, "http://h//evil.example/x");
    assert_location(&keep, NULL, "//evil.example/x", false, "/evil.example/x");
    assert_location(&query, "h", "/?.evil.example", false, "http://h/.evil.example");
}

static void a_redirect_of_a_target_without_a_path_leads_to_the_root(void **state)
{
    const struct config_redirect https = {.scheme = S("https")};
    struct slice location;
    struct scratch scratch = {room, room + sizeof(room)};
    parse("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_true(rewrite_redirect(&https, &msg, false, &scratch, &location));
    assert_true(slice_eq(location, SLICE("https://h/")));
}

static void a_location_that_does_not_fit_is_refused(void **state)
{
    const struct config_redirect https = {.scheme = S("https"), .port = 8443};
    parse("GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n");
    size_t need = strlen("https://h:8443/a?b");
    for (size_t cap = 0; cap <= need; cap++) {
        char *exact = malloc(cap + 1);
        struct scratch scratch = {exact, exact + cap};
        struct slice location;
        assert_int_equal(rewrite_redirect(&https, &msg, false, &scratch, &location), cap == need);
        free(exact);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_matched_prefix_is_replaced_by_whole_segments),
        cmocka_unit_test(the_query_stays_when_the_path_changes),
        cmocka_unit_test(without_a_prefix_to_replace_the_new_one_is_put_in_front),
        cmocka_unit_test(a_target_without_a_path_stays_as_it_is),
        cmocka_unit_test(absolute_form_is_rewritten_too),
        cmocka_unit_test(the_host_is_replaced_where_it_stands),
        cmocka_unit_test(fields_are_removed_then_set_then_added),
        cmocka_unit_test(setting_one_field_twice_keeps_both_values),
        cmocka_unit_test(response_fields_are_changed_by_their_own_list),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_redirect_to_https_keeps_host_path_and_query_but_not_the_port),
        cmocka_unit_test(a_redirect_on_the_same_origin_keeps_the_port),
        cmocka_unit_test(placeholders_are_filled_in_once),
        cmocka_unit_test(a_default_port_is_not_written),
        cmocka_unit_test(rejects_to_send_clients_to_a_host_that_a_path_names),
        cmocka_unit_test(a_redirect_of_a_target_without_a_path_leads_to_the_root),
        cmocka_unit_test(a_location_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
