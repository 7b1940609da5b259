/* SPDX-License-Identifier: Apache-2.0 */
#include "../http/heads.h"

static void a_request_is_taken_apart(void **state)
{
    static const char text[] =
        "GET /a/b?x=1&y HTTP/1.1\r\nHost: t.example:8080\r\nAccept:\t*/*  \r\nX-E:\r\n\r\nrest";
    struct http_message *m = accepted(request(text));
    assert_int_equal(last_head.used, sizeof(text) - 1 - 4);
    assert_int_equal(m->method, HTTP_GET);
    assert_int_equal(m->version_minor, 1);
    is(m->method_text, "GET");
    is(m->target, "/a/b?x=1&y");
    is(m->path, "/a/b");
    is(m->query, "x=1&y");
    is(m->authority, "t.example:8080");
    assert_int_equal(m->n_fields, 3);
    is(http_field_name(&m->fields[1]), "Accept");
    is(http_field_value(&m->fields[1]), "*/*");
    is(http_field_value(&m->fields[2]), "");
    assert_int_equal(m->fields[1].id, HTTP_FIELD_ACCEPT);
    assert_int_equal(m->fields[2].id, HTTP_FIELD_OTHER);
}

static void raw_lines_of_consecutive_fields_are_one_run(void **state)
{
    struct http_message *m = accepted(get("A: 1\r\nBb:  2 \r\n"));
    assert_int_equal(m->n_fields, 3);
    for (uint32_t i = 0; i + 1 < m->n_fields; i++)
        assert_ptr_equal(m->fields[i].name + m->fields[i].raw_len, m->fields[i + 1].name);
    assert_int_equal(m->fields[2].raw_len, strlen("Bb:  2 \r\n"));
}

static void a_response_is_taken_apart(void **state)
{
    struct http_message *m = accepted(response("HTTP/1.0 404 Not  here\r\nServer: x\r\n\r\n", HTTP_GET));
    assert_true(m->is_response);
    assert_int_equal(m->status, 404);
    assert_int_equal(m->version_minor, 0);
    is(m->reason, "Not  here");
    is(accepted(response("HTTP/1.1 200 \r\n\r\n", HTTP_GET))->reason, "");
    is(accepted(response("HTTP/1.1 200\r\n\r\n", HTTP_GET))->reason, "");
}

/* Every beginning of a good head is incomplete, at whatever byte it ends. */
static void beginnings_are_incomplete(void **state)
{
    static const char req[] =
        "\r\nPOST http://t.example/x?y HTTP/1.1\r\nHost: t.example\r\nContent-Length: 3\r\n\r\n";
    static const char res[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nSet-Cookie: a=b\r\n\r\n";
    for (size_t len = 0; len < sizeof(req) - 1; len++)
        assert_int_equal(request_bytes(req, len)->result, H1_INCOMPLETE);
    accepted(request(req));
    for (size_t len = 0; len < sizeof(res) - 1; len++)
        assert_int_equal(response_bytes(res, len, HTTP_GET)->result, H1_INCOMPLETE);
    accepted(response(res, HTTP_GET));
}

static void empty_lines_before_a_request_are_skipped_C_011(void **state)
{
    struct http_message *m = accepted(request("\r\n\r\nGET / HTTP/1.0\r\n\r\n"));
    assert_int_equal(m->method, HTTP_GET);
    rejected(request("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.0\r\n\r\n"), HTTP_REJECT_BAD_START_LINE);
    rejected(response("\r\nHTTP/1.1 200 OK\r\n\r\n", HTTP_GET), HTTP_REJECT_BAD_VERSION);
}

static void unknown_methods_pass_as_they_are(void **state)
{
    struct http_message *m = accepted(request("get / HTTP/1.0\r\n\r\n"));
    assert_int_equal(m->method, HTTP_METHOD_OTHER);
    is(m->method_text, "get");
    is(accepted(request("M-SEARCH / HTTP/1.0\r\n\r\n"))->method_text, "M-SEARCH");
}

static void a_later_minor_version_is_read_as_1_1(void **state)
{
    assert_int_equal(accepted(request("GET / HTTP/1.2\r\nHost: a\r\n\r\n"))->version_minor, 1);
    assert_int_equal(accepted(response("HTTP/1.9 200 OK\r\n\r\n", HTTP_GET))->version_minor, 1);
}

static void bytes_above_ascii_may_stand_in_values(void **state)
{
    is(http_field_value(&accepted(get("X: \x80\xff\r\n"))->fields[1]), "\x80\xff");
}

static void rejects_bad_methods(void **state)
{
    rejected(request(" GET / HTTP/1.1\r\n"), HTTP_REJECT_BAD_METHOD);
    rejected(request("G(T / HTTP/1.1\r\n"), HTTP_REJECT_BAD_METHOD);
    rejected(request("GET\t/ HTTP/1.1\r\n"), HTTP_REJECT_BAD_METHOD);
    rejected(request("\x80GET / HTTP/1.1\r\n"), HTTP_REJECT_BAD_METHOD);
    rejected(request("GET\r\n"), HTTP_REJECT_BAD_METHOD);
    rejected(request("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), HTTP_REJECT_BAD_METHOD);
    rejected(request("CONNECT t.example:443 HTTP/1.1\r\n"), HTTP_REJECT_METHOD_UNSUPPORTED);
}

static void rejects_bad_versions(void **state)
{
    rejected(request("GET / http/1.1\r\n"), HTTP_REJECT_BAD_VERSION);
    rejected(request("GET / HTTP/1\r\n"), HTTP_REJECT_BAD_VERSION);
    rejected(request("GET / HTTP/01.1\r\n"), HTTP_REJECT_BAD_VERSION);
    rejected(request("GET / HTTP/ 1.1\r\n"), HTTP_REJECT_BAD_VERSION);
    rejected(request("GET / \r\n"), HTTP_REJECT_BAD_VERSION);
    rejected(request("GET / HTTP/1.10\r\n"), HTTP_REJECT_BAD_START_LINE);
    rejected(request("GET / HTTP/2.0\r\n"), HTTP_REJECT_VERSION);
    rejected(request("GET / HTTP/0.9\r\n"), HTTP_REJECT_VERSION);
    rejected(response("ICY 200 OK\r\n", HTTP_GET), HTTP_REJECT_BAD_VERSION);
}

static void rejects_start_lines_that_are_not_three_words(void **state)
{
    rejected(request("GET /\r\n"), HTTP_REJECT_BAD_START_LINE);
    rejected(request("GET / HTTP/1.1 \r\n"), HTTP_REJECT_BAD_START_LINE);
    rejected(request("GET / HTTP/1.1\rHost: a\r\n"), HTTP_REJECT_BAD_START_LINE);
    rejected(request("GET  / HTTP/1.1\r\n"), HTTP_REJECT_BAD_TARGET);
    rejected(request("GET /  HTTP/1.1\r\n"), HTTP_REJECT_BAD_VERSION);
    rejected(request("\rGET / HTTP/1.1\r\n"), HTTP_REJECT_BAD_START_LINE);
    rejected(response("HTTP/1.1  200 OK\r\n", HTTP_GET), HTTP_REJECT_BAD_START_LINE);
    rejected(response("HTTP/1.1 20 OK\r\n", HTTP_GET), HTTP_REJECT_BAD_START_LINE);
    rejected(response("HTTP/1.1 2000 OK\r\n", HTTP_GET), HTTP_REJECT_BAD_START_LINE);
    rejected(response("HTTP/1.1 099 OK\r\n", HTTP_GET), HTTP_REJECT_BAD_START_LINE);
    rejected(response("HTTP/1.1 600 OK\r\n", HTTP_GET), HTTP_REJECT_BAD_START_LINE);
    rejected(response("HTTP/1.1 200 O\x01K\r\n", HTTP_GET), HTTP_REJECT_BAD_START_LINE);
}

static void rejects_bare_line_feeds(void **state)
{
    rejected(request("GET / HTTP/1.1\n"), HTTP_REJECT_BARE_LF);
    rejected(request("\nGET / HTTP/1.1\r\n"), HTTP_REJECT_BARE_LF);
    rejected(request("GET /\n"), HTTP_REJECT_BARE_LF);
    rejected(response("HTTP/1.1 200 OK\n", HTTP_GET), HTTP_REJECT_BARE_LF);
    rejected(response("HTTP/1.1 200\n", HTTP_GET), HTTP_REJECT_BARE_LF);
}

static void rejects_missing_repeated_and_invalid_hosts_C_007(void **state)
{
    rejected(request("GET / HTTP/1.1\r\n\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(get("Host: t.example\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(request("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(request("GET / HTTP/1.1\r\nHost: t.example:99999\r\n\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(request("GET / HTTP/1.1\r\nHost: \r\n\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(request("GET / HTTP/1.1\r\nHost: user@t.example\r\n\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(request("GET / HTTP/1.1\r\nHost: t.example/path\r\n\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(request("GET / HTTP/1.0\r\nHost: a, b\r\n\r\n"), HTTP_REJECT_BAD_HOST);
    rejected(request("GET http://t.example/ HTTP/1.1\r\n\r\n"), HTTP_REJECT_BAD_HOST);
    is(accepted(request("GET / HTTP/1.0\r\n\r\n"))->authority, "");
}

static void rejects_heads_over_the_limits(void **state)
{
    static const char text[] = "GET /0123456789 HTTP/1.1\r\nHost: a\r\nX: 1\r\n\r\n";
    struct h1_limits exact = {.head_bytes = sizeof(text) - 1, .uri_bytes = 11, .fields = 2};
    struct http_message *m = &last_head.msg;
    size_t used;
    enum http_reject why;
    assert_int_equal(h1_parse_request(text, sizeof(text) - 1, &exact, m, &used, &why), H1_COMPLETE);

    struct h1_limits less = exact;
    less.head_bytes--;
    assert_int_equal(h1_parse_request(text, sizeof(text) - 1, &less, m, &used, &why), H1_REJECTED);
    assert_int_equal(why, HTTP_REJECT_HEAD_TOO_LARGE);
    assert_int_equal(h1_parse_request(text, sizeof(text) - 2, &less, m, &used, &why), H1_REJECTED);
    assert_int_equal(why, HTTP_REJECT_HEAD_TOO_LARGE);
    assert_int_equal(h1_parse_request(text, sizeof(text) - 3, &less, m, &used, &why), H1_INCOMPLETE);

    less = exact;
    less.uri_bytes--;
    assert_int_equal(h1_parse_request(text, sizeof(text) - 1, &less, m, &used, &why), H1_REJECTED);
    assert_int_equal(why, HTTP_REJECT_URI_TOO_LONG);
    assert_int_equal(h1_parse_request(text, 4 + 11, &less, m, &used, &why), H1_REJECTED);
    assert_int_equal(h1_parse_request(text, 4 + 10, &less, m, &used, &why), H1_INCOMPLETE);

    less = exact;
    less.fields--;
    assert_int_equal(h1_parse_request(text, sizeof(text) - 1, &less, m, &used, &why), H1_REJECTED);
    assert_int_equal(why, HTTP_REJECT_TOO_MANY_FIELDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_taken_apart),
        cmocka_unit_test(raw_lines_of_consecutive_fields_are_one_run),
        cmocka_unit_test(a_response_is_taken_apart),
        cmocka_unit_test(beginnings_are_incomplete),
        cmocka_unit_test(empty_lines_before_a_request_are_skipped_C_011),
        cmocka_unit_test(unknown_methods_pass_as_they_are),
        cmocka_unit_test(a_later_minor_version_is_read_as_1_1),
        cmocka_unit_test(bytes_above_ascii_may_stand_in_values),
        cmocka_unit_test(rejects_bad_methods),
        cmocka_unit_test(rejects_bad_versions),
        cmocka_unit_test(rejects_start_lines_that_are_not_three_words),
        cmocka_unit_test(rejects_bare_line_feeds),
        cmocka_unit_test(rejects_missing_repeated_and_invalid_hosts_C_007),
        cmocka_unit_test(rejects_heads_over_the_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
