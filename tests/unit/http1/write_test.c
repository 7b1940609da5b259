/* SPDX-License-Identifier: Apache-2.0 */
/* Messages are put together by hand here, not parsed, so that a fault in the parser does not show up as one
 * of the writer. `raw` fields lie in one text like in a receive buffer. */
#include "http1/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct http_message msg;
static char out[4096];

static void request(const char *method, const char *target)
{
    memset(&msg, 0, offsetof(struct http_message, fields));
    msg.version_minor = 1;
    msg.method_text = slice_str(method);
    msg.target = msg.path = slice_str(target);
    msg.authority = SLICE("shop.example");
}

static void response(unsigned status)
{
    memset(&msg, 0, offsetof(struct http_message, fields));
    msg.is_response = true;
    msg.version_minor = 1;
    msg.status = (uint16_t)status;
    msg.reason = SLICE("Fine");
}

static struct http_field *field(uint8_t id, const char *name, const char *value)
{
    struct http_field *f = &msg.fields[msg.n_fields++];
    *f = (struct http_field){.name = name,
                             .name_len = (uint32_t)strlen(name),
                             .value = value,
                             .value_len = (uint32_t)strlen(value),
                             .id = id};
    return f;
}

/* One field for each line of `lines`, which must end in CRLF. */
static void raw_fields(const char *lines)
{
    while (*lines) {
        const char *end = strstr(lines, "\r\n");
        const char *colon = strchr(lines, ':');
        struct slice value = slice_trim(slice_of(colon + 1, (size_t)(end - colon - 1)));
        msg.fields[msg.n_fields++] = (struct http_field){.name = lines,
                                                         .name_len = (uint32_t)(colon - lines),
                                                         .value = value.ptr,
                                                         .value_len = (uint32_t)value.len,
                                                         .raw_len = (uint32_t)(end + 2 - lines)};
        lines = end + 2;
    }
}

static void assert_written(size_t n, const char *expected)
{
    if (n != strlen(expected) || memcmp(out, expected, n) != 0)
        fail_msg("wrote <%.*s>, expected <%s>", (int)n, out, expected);
}

static void assert_request(const char *expected)
{
    assert_written(h1_write_request(out, sizeof(out), &msg), expected);
}

static void assert_response(unsigned minor, bool close, const char *expected)
{
    assert_written(h1_write_response(out, sizeof(out), &msg, minor, close), expected);
}

static void a_get_keeps_its_fields_as_received(void **state)
{
    request("GET", "/a?b=1");
    raw_fields("Host:  shop.example \r\nX-Odd:\tyes\r\nAccept: */*\r\n");
    msg.fields[0].id = HTTP_FIELD_HOST;
    assert_request("GET /a?b=1 HTTP/1.1\r\nHost:  shop.example \r\nX-Odd:\tyes\r\nAccept: */*\r\n\r\n");
}

static void dropped_fields_are_left_out_and_the_rest_keeps_its_order(void **state)
{
    request("GET", "/");
    raw_fields("Keep-Alive: 5\r\nHost: h\r\nTE: gzip\r\nA: 1\r\nB: 2\r\nConnection: close\r\n");
    msg.fields[1].id = HTTP_FIELD_HOST;
    msg.fields[0].flags = msg.fields[2].flags = msg.fields[5].flags = HTTP_FIELD_DROP;
    field(HTTP_FIELD_X_REAL_IP, "X-Real-IP", "10.0.0.1");
    assert_request("GET / HTTP/1.1\r\nHost: h\r\nA: 1\r\nB: 2\r\nX-Real-IP: 10.0.0.1\r\n\r\n");
}

static void made_fields_stand_between_runs_of_received_ones(void **state)
{
    request("GET", "/");
    raw_fields("Host: h\r\nA: 1\r\nB: 2\r\n");
    msg.fields[0].id = HTTP_FIELD_HOST;
    msg.fields[1].raw_len = 0;
    msg.fields[1].value = "new", msg.fields[1].value_len = 3;
    assert_request("GET / HTTP/1.1\r\nHost: h\r\nA: new\r\nB: 2\r\n\r\n");
}

static void a_host_is_made_when_none_is_kept(void **state)
{
    request("GET", "/");
    assert_request("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    msg.authority = (struct slice){0};
    assert_request("GET / HTTP/1.1\r\nHost: \r\n\r\n");
}

static void absolute_form_becomes_origin_form_with_the_targets_host(void **state)
{
    request("GET", "http://shop.example/a?b");
    msg.scheme = SLICE("http");
    msg.path = SLICE("/a");
    msg.query = SLICE("b");
    field(HTTP_FIELD_HOST, "Host", "other.example");
    assert_request("GET /a?b HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    msg.query = SLICE("");
    assert_request("GET /a? HTTP/1.1\r\nHost: shop.example\r\n\r\n");
}

static void request_framing_comes_from_the_decision_only(void **state)
{
    request("POST", "/");
    msg.framing = HTTP_BODY_LENGTH;
    msg.content_length = 18446744073709551615ull;
    field(HTTP_FIELD_CONTENT_LENGTH, "Content-Length", "+3")->flags = HTTP_FIELD_DROP;
    assert_request("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 18446744073709551615\r\n\r\n");
    msg.content_length = 0;
    assert_request("POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\n\r\n");
    msg.framing = HTTP_BODY_CHUNKED;
    assert_request("POST / HTTP/1.1\r\nHost: shop.example\r\nTransfer-Encoding: chunked\r\n\r\n");
    msg.framing = HTTP_BODY_NONE;
    assert_request("POST / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
}

static void upgrade_and_te_trailers_are_announced_in_one_connection_field(void **state)
{
    request("GET", "/");
    msg.upgrade = true;
    field(HTTP_FIELD_UPGRADE, "Upgrade", "websocket");
    assert_request(
        "GET / HTTP/1.1\r\nUpgrade: websocket\r\nHost: shop.example\r\nConnection: upgrade\r\n\r\n");
    msg.te_trailers = true;
    assert_request("GET / HTTP/1.1\r\nUpgrade: websocket\r\nHost: shop.example\r\nTE: trailers\r\n"
                   "Connection: upgrade, TE\r\n\r\n");
    msg.upgrade = false;
    msg.n_fields = 0;
    assert_request("GET / HTTP/1.1\r\nHost: shop.example\r\nTE: trailers\r\nConnection: TE\r\n\r\n");
}

static void expect_is_passed_on_only_when_it_was_understood(void **state)
{
    request("POST", "/");
    field(HTTP_FIELD_HOST, "Host", "h");
    field(HTTP_FIELD_EXPECT, "Expect", "100-continue");
    assert_request("POST / HTTP/1.1\r\nHost: h\r\n\r\n");
    msg.expect_continue = true;
    assert_request("POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n\r\n");
}

static void a_head_that_does_not_fit_is_0_at_every_size(void **state)
{
    request("POST", "/some/path");
    raw_fields("A: 1\r\nB: 2\r\n");
    field(HTTP_FIELD_OTHER, "X-Made", "here");
    msg.framing = HTTP_BODY_LENGTH;
    msg.content_length = 12345;
    size_t need = h1_write_request(out, sizeof(out), &msg);
    for (size_t cap = 0; cap < need; cap++) {
        char *exact = malloc(cap + 1);
        assert_int_equal(h1_write_request(exact, cap, &msg), 0);
        free(exact);
    }
    assert_int_equal(h1_write_request(out, need, &msg), need);
}

static void a_response_keeps_status_reason_and_fields(void **state)
{
    response(299);
    raw_fields("Server: x\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n");
    msg.framing = HTTP_BODY_LENGTH;
    msg.content_length = 5;
    assert_response(1, false,
                    "HTTP/1.1 299 Fine\r\nServer: x\r\nSet-Cookie: a=b\r\nSet-Cookie: c=d\r\n"
                    "Content-Length: 5\r\n\r\n");
}

static void an_empty_reason_stays_empty_and_a_missing_one_is_filled_in(void **state)
{
    response(200);
    msg.reason = SLICE("");
    assert_response(1, false, "HTTP/1.1 200 \r\n\r\n");
    msg.reason = (struct slice){0};
    assert_response(1, false, "HTTP/1.1 200 OK\r\n\r\n");
}

static void the_connection_field_follows_version_and_close(void **state)
{
    response(200);
    assert_response(1, false, "HTTP/1.1 200 Fine\r\n\r\n");
    assert_response(1, true, "HTTP/1.1 200 Fine\r\nConnection: close\r\n\r\n");
    assert_response(0, false, "HTTP/1.1 200 Fine\r\nConnection: keep-alive\r\n\r\n");
    assert_response(0, true, "HTTP/1.1 200 Fine\r\nConnection: close\r\n\r\n");
}

static void a_body_until_close_has_no_framing_field(void **state)
{
    response(200);
    msg.framing = HTTP_BODY_UNTIL_CLOSE;
    assert_response(0, true, "HTTP/1.1 200 Fine\r\nConnection: close\r\n\r\n");
}

static void length_without_a_body_is_kept_for_head_and_304_but_not_204_or_1xx(void **state)
{
    response(304);
    msg.has_length = true;
    msg.content_length = 77;
    assert_response(1, false, "HTTP/1.1 304 Fine\r\nContent-Length: 77\r\n\r\n");
    msg.status = 204;
    assert_response(1, false, "HTTP/1.1 204 Fine\r\n\r\n");
    msg.status = 103;
    assert_response(1, false, "HTTP/1.1 103 Fine\r\n\r\n");
}

static void interim_responses_say_nothing_about_the_connection(void **state)
{
    response(103);
    raw_fields("Link: </a.css>\r\n");
    assert_response(1, true, "HTTP/1.1 103 Fine\r\nLink: </a.css>\r\n\r\n");
}

static void switching_protocols_announces_the_upgrade(void **state)
{
    response(101);
    msg.upgrade = true;
    field(HTTP_FIELD_UPGRADE, "Upgrade", "websocket");
    assert_response(1, true, "HTTP/1.1 101 Fine\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n");
    response(426);
    field(HTTP_FIELD_UPGRADE, "Upgrade", "h2c");
    assert_response(1, true, "HTTP/1.1 426 Fine\r\nUpgrade: h2c\r\nConnection: upgrade, close\r\n\r\n");
}

static void chunk_sizes_are_hexadecimal_without_leading_zeros(void **state)
{
    static const uint64_t sizes[] = {1, 15, 16, 255, 256, 0x1a2b, 65536, 1ull << 40, ~0ull};
    for (size_t i = 0; i < iso_countof(sizes); i++) {
        char line[H1_CHUNK_SIZE_MAX + 1] = {0};
        size_t n = h1_write_chunk_size(line, sizes[i]);
        char expected[32];
        int len = snprintf(expected, sizeof(expected), "%llx\r\n", (unsigned long long)sizes[i]);
        assert_int_equal(n, len);
        assert_string_equal(line, expected);
    }
}

static void the_last_chunk_carries_the_kept_trailers(void **state)
{
    assert_written(h1_write_last_chunk(out, sizeof(out), NULL), "0\r\n\r\n");
    response(0);
    raw_fields("Grpc-Status: 0\r\nHost: x\r\nDigest: d\r\n");
    msg.fields[1].flags = HTTP_FIELD_DROP;
    assert_written(h1_write_last_chunk(out, sizeof(out), &msg), "0\r\nGrpc-Status: 0\r\nDigest: d\r\n\r\n");
    assert_int_equal(h1_write_last_chunk(out, 4, NULL), 0);
}

static void assert_answer(const struct h1_answer *answer, const char *expected)
{
    assert_written(h1_write_answer(out, sizeof(out), answer), expected);
}

static void a_plain_error_is_head_and_text(void **state)
{
    struct h1_answer answer = {.status = 503,
                               .reason_word = SLICE("no-target"),
                               .body = SLICE("no usable target\n"),
                               .date = SLICE("Sun, 06 Nov 1994 08:49:37 GMT"),
                               .retry_after_s = 5,
                               .close = true,
                               .client_minor = 1};
    assert_answer(&answer,
                  "HTTP/1.1 503 Service Unavailable\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
                  "Content-Type: text/plain; charset=utf-8\r\nContent-Length: 17\r\nRetry-After: 5\r\n"
                  "Connection: close\r\n\r\nno usable target\n");
}

static void a_json_error_escapes_code_and_message(void **state)
{
    struct h1_answer answer = {.status = 404,
                               .reason_word = SLICE("no-route"),
                               .body = SLICE("no rule for \"x\""),
                               .json = true,
                               .client_minor = 1};
    assert_answer(&answer,
                  "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 60\r\n"
                  "\r\n{\"error\":{\"code\":\"no-route\",\"message\":\"no rule for \\\"x\\\"\"}}\n");
}

static void a_json_message_too_long_for_an_error_is_cut_and_stays_well_formed(void **state)
{
    char *quotes = malloc(3000);
    memset(quotes, '"', 3000);
    struct h1_answer answer = {.status = 404,
                               .reason_word = slice_of(quotes, 3000),
                               .body = slice_of(quotes, 3000),
                               .json = true,
                               .client_minor = 1};
    size_t n = h1_write_answer(out, sizeof(out), &answer);
    assert_in_range(n, 800, 1400);
    assert_memory_equal(out + n - 6, "\\\"\"}}\n", 6);
    free(quotes);
}

static void an_answer_to_head_has_the_length_but_no_body(void **state)
{
    struct h1_answer answer = {.status = 404, .body = SLICE("gone\n"), .head = true, .client_minor = 0};
    assert_answer(&answer, "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\n"
                           "Content-Length: 5\r\nConnection: keep-alive\r\n\r\n");
}

static void an_answer_that_cannot_have_a_body_has_none(void **state)
{
    struct h1_answer answer = {.status = 204, .body = SLICE("x"), .client_minor = 1};
    assert_answer(&answer, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void a_redirect_has_a_location_and_the_rules_fields_are_added(void **state)
{
    static const struct h1_pair fields[] = {{SLICE("X-A"), SLICE("1")}, {SLICE("X-B"), SLICE("")}};
    struct h1_answer answer = {.status = 301,
                               .location = SLICE("https://shop.example/"),
                               .fields = fields,
                               .n_fields = 2,
                               .client_minor = 1};
    assert_answer(&answer, "HTTP/1.1 301 Moved Permanently\r\nContent-Length: 0\r\n"
                           "Location: https://shop.example/\r\nX-A: 1\r\nX-B: \r\n\r\n");
}

static void a_rules_own_content_type_replaces_the_default(void **state)
{
    static const struct h1_pair fields[] = {{SLICE("content-type"), SLICE("text/html")}};
    struct h1_answer answer = {
        .status = 200, .body = SLICE("<p>"), .fields = fields, .n_fields = 1, .client_minor = 1};
    assert_answer(&answer, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\ncontent-type: text/html\r\n\r\n<p>");
    answer.n_fields = 0;
    answer.content_type = SLICE("text/css");
    assert_answer(&answer, "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Length: 3\r\n\r\n<p>");
}

static void an_answer_that_does_not_fit_is_0(void **state)
{
    struct h1_answer answer = {.status = 404, .body = SLICE("gone\n"), .client_minor = 1};
    size_t need = h1_write_answer(out, sizeof(out), &answer);
    for (size_t cap = 0; cap < need; cap++)
        assert_int_equal(h1_write_answer(out, cap, &answer), 0);
    assert_int_equal(h1_write_answer(out, need, &answer), need);
}

static void json_is_preferred_when_accept_says_so(void **state)
{
    static const char *const yes[] = {
        "application/json", "Application/JSON;q=0.1", "application/json, text/plain, */*",
        "text/html;q=0.9, application/json", "text/html;q=0.5,application/json;charset=utf-8;q=0.501"};
    static const char *const no[] = {"",
                                     "*/*",
                                     "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                                     "text/html, application/json",
                                     "application/json;q=0.9, text/html",
                                     "application/json;q=0",
                                     "application/json;q=",
                                     "application/json;q=1x",
                                     "application/json;q=0.0001",
                                     "application/jsonp",
                                     ";;,,;q=1"};
    for (size_t i = 0; i < iso_countof(yes); i++)
        if (!h1_prefers_json(slice_str(yes[i])))
            fail_msg("not JSON: %s", yes[i]);
    for (size_t i = 0; i < iso_countof(no); i++)
        if (h1_prefers_json(slice_str(no[i])))
            fail_msg("JSON: %s", no[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_get_keeps_its_fields_as_received),
        cmocka_unit_test(dropped_fields_are_left_out_and_the_rest_keeps_its_order),
        cmocka_unit_test(made_fields_stand_between_runs_of_received_ones),
        cmocka_unit_test(a_host_is_made_when_none_is_kept),
        cmocka_unit_test(absolute_form_becomes_origin_form_with_the_targets_host),
        cmocka_unit_test(request_framing_comes_from_the_decision_only),
        cmocka_unit_test(upgrade_and_te_trailers_are_announced_in_one_connection_field),
        cmocka_unit_test(expect_is_passed_on_only_when_it_was_understood),
        cmocka_unit_test(a_head_that_does_not_fit_is_0_at_every_size),
        cmocka_unit_test(a_response_keeps_status_reason_and_fields),
        cmocka_unit_test(an_empty_reason_stays_empty_and_a_missing_one_is_filled_in),
        cmocka_unit_test(the_connection_field_follows_version_and_close),
        cmocka_unit_test(a_body_until_close_has_no_framing_field),
        cmocka_unit_test(length_without_a_body_is_kept_for_head_and_304_but_not_204_or_1xx),
        cmocka_unit_test(interim_responses_say_nothing_about_the_connection),
        cmocka_unit_test(switching_protocols_announces_the_upgrade),
        cmocka_unit_test(chunk_sizes_are_hexadecimal_without_leading_zeros),
        cmocka_unit_test(the_last_chunk_carries_the_kept_trailers),
        cmocka_unit_test(a_plain_error_is_head_and_text),
        cmocka_unit_test(a_json_error_escapes_code_and_message),
        cmocka_unit_test(a_json_message_too_long_for_an_error_is_cut_and_stays_well_formed),
        cmocka_unit_test(an_answer_to_head_has_the_length_but_no_body),
        cmocka_unit_test(an_answer_that_cannot_have_a_body_has_none),
        cmocka_unit_test(a_redirect_has_a_location_and_the_rules_fields_are_added),
        cmocka_unit_test(a_rules_own_content_type_replaces_the_default),
        cmocka_unit_test(an_answer_that_does_not_fit_is_0),
        cmocka_unit_test(json_is_preferred_when_accept_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
