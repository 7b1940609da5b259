/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/head.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static const struct h1_limits limits = {.head_bytes = 8192, .uri_bytes = 4096, .fields = 100};
static struct buf_pool bufs;
static struct http2_head head;
static struct http_message msg;
static enum http_reject why;

static int set_up(void **state)
{
    buf_pool_init(&bufs);
    http2_head_init(&head, HTTP2_REQUEST, limits.head_bytes);
    why = HTTP_REJECT_NONE;
    return 0;
}

static int tear_down(void **state)
{
    http2_head_fini(&head, &bufs);
    assert_int_equal(bufs.n_lent, 0);
    buf_pool_fini(&bufs);
    return 0;
}

static void add(const char *name, const char *value)
{
    http2_head_add(&head, &bufs, slice_str(name), slice_str(value));
}

static void add_get(void)
{
    add(":method", "GET");
    add(":scheme", "https");
    add(":authority", "a.example");
    add(":path", "/x?y=1");
}

static enum http2_head_result finish(bool ends)
{
    return http2_head_finish(&head, &bufs, ends, &limits, HTTP_GET, &msg, &why);
}

static void begin(enum http2_kind kind)
{
    http2_head_fini(&head, &bufs);
    http2_head_init(&head, kind, limits.head_bytes);
}

#define assert_slice(s, str) assert_true(slice_eq(s, slice_str(str)))

static struct slice value_of(enum http_field_id id)
{
    struct http_field *f = http_message_find(&msg, id);
    return f ? http_field_value(f) : (struct slice){0};
}

static void a_request_becomes_its_message(void **state)
{
    add_get();
    add("user-agent", "t");
    add("x-a", "");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_int_equal(msg.method, HTTP_GET);
    assert_slice(msg.path, "/x");
    assert_slice(msg.query, "y=1");
    assert_slice(msg.authority, "a.example");
    assert_slice(value_of(HTTP_FIELD_USER_AGENT), "t");
    assert_int_equal(msg.framing, HTTP_BODY_NONE);
    assert_true(msg.keep_alive);
}

static void pseudo_fields_come_in_any_order(void **state)
{
    add(":path", "/");
    add(":authority", "a");
    add(":method", "DELETE");
    add(":scheme", "http");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_int_equal(msg.method, HTTP_DELETE);
    assert_slice(msg.target, "/");
}

static void a_body_of_unknown_length_is_chunked(void **state)
{
    add(":method", "POST");
    add(":scheme", "http");
    add(":authority", "a");
    add(":path", "/");
    add("expect", "100-continue");
    assert_int_equal(finish(false), HTTP2_HEAD_OK);
    assert_int_equal(msg.framing, HTTP_BODY_CHUNKED);
    assert_true(msg.expect_continue);
}

static void a_post_without_body_says_so(void **state)
{
    add(":method", "POST");
    add(":scheme", "http");
    add(":authority", "a");
    add(":path", "/");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_int_equal(msg.framing, HTTP_BODY_LENGTH);
    assert_int_equal(msg.content_length, 0);
}

static void cookie_crumbs_become_one_field_C_064(void **state)
{
    add_get();
    add("cookie", "a=1");
    add("cookie", "b=2");
    add("x-a", "between");
    add("cookie", "SRV=s3");
    add("x-b", "behind");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_slice(value_of(HTTP_FIELD_COOKIE), "a=1; b=2; SRV=s3");
    uint32_t cookies = 0;
    for (uint32_t i = 0; i < msg.n_fields; i++)
        cookies += msg.fields[i].id == HTTP_FIELD_COOKIE;
    assert_int_equal(cookies, 1);
    assert_slice(http_field_value(http_message_find_name(&msg, SLICE("x-a"))), "between");
    assert_slice(http_field_value(http_message_find_name(&msg, SLICE("x-b"))), "behind");
}

static void host_stands_for_authority_C_063(void **state)
{
    add(":method", "GET");
    add(":scheme", "http");
    add(":path", "/");
    add("host", "b.example");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_slice(msg.authority, "b.example");
}

static void an_equal_host_is_left_out_C_063(void **state)
{
    add_get();
    add("host", "A.example");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_slice(msg.authority, "a.example");
    uint32_t hosts = 0;
    for (uint32_t i = 0; i < msg.n_fields; i++)
        hosts += msg.fields[i].id == HTTP_FIELD_HOST;
    assert_int_equal(hosts, 1);
}

static void an_extended_connect_becomes_the_get_it_stands_for(void **state)
{
    add(":method", "CONNECT");
    add(":protocol", "websocket");
    add(":scheme", "https");
    add(":authority", "a.example");
    add(":path", "/chat");
    assert_int_equal(finish(false), HTTP2_HEAD_OK);
    assert_int_equal(msg.method, HTTP_GET);
    assert_int_equal(msg.framing, HTTP_BODY_NONE);
    assert_slice(http2_head_protocol(&head), "websocket");
}

static void a_plain_connect_is_not_taken(void **state)
{
    add(":method", "CONNECT");
    add(":authority", "a.example:443");
    assert_int_equal(finish(false), HTTP2_HEAD_REFUSED);
    assert_int_equal(why, HTTP_REJECT_METHOD_UNSUPPORTED);
}

static void a_list_over_the_limit_is_refused_and_not_kept(void **state)
{
    char big[2001];
    memset(big, 'x', 2000);
    big[2000] = 0;
    add_get();
    for (int i = 0; i < 100; i++)
        add("x-a", big);
    assert_true(head.text->cap <= 4 * limits.head_bytes);
    assert_true(head.seen_bytes > 200000);
    assert_int_equal(finish(true), HTTP2_HEAD_REFUSED);
    assert_int_equal(why, HTTP_REJECT_HEAD_TOO_LARGE);
}

static void rejects_fields_that_belong_to_a_connection_C_062(void **state)
{
    static const char *const fields[][2] = {
        {"connection", "keep-alive"},      {"keep-alive", "5"},
        {"proxy-connection", "close"},     {"upgrade", "websocket"},
        {"transfer-encoding", "chunked"},  {"te", "gzip"},
        {"te", "trailers, deflate;q=0.5"}, {"transfer-encoding", "identity"}};
    for (size_t i = 0; i < iso_countof(fields); i++) {
        begin(HTTP2_REQUEST);
        add_get();
        add(fields[i][0], fields[i][1]);
        assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
    }
    begin(HTTP2_REQUEST);
    add_get();
    add("te", "trailers");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_true(msg.te_trailers);
}

static void rejects_what_would_become_a_line_of_its_own(void **state)
{
    static const char *const fields[][2] = {
        {"x-a", "b\r\nx-b: c"}, {"x-a", "b\nx-b: c"}, {"x-a", "b\rc"},  {"x-a: b\r\nx", "c"},
        {"x a", "b"},           {"x:a", "b"},         {"", "b"},        {"X-Upper", "b"},
        {"x-a", " b"},          {"x-a", "b\t"},       {"x-a", "b\x7f"}, {"cookie", "a=b\r\nx: y"}};
    for (size_t i = 0; i < iso_countof(fields); i++) {
        begin(HTTP2_REQUEST);
        add_get();
        add(fields[i][0], fields[i][1]);
        assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
    }
    begin(HTTP2_REQUEST);
    add_get();
    http2_head_add(&head, &bufs, SLICE("x-a"), SLICE("b\0c"));
    assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
}

static void rejects_pseudo_fields_that_are_not_a_request(void **state)
{
    static const char *const wrong[][4] = {
        {"GET / HTTP/1.1", "http", "a", "/"},
        {"GET", "http", "a", "/ HTTP/1.1\r\nx: y"},
        {"GET", "http", "a", "/a b"},
        {"GET", "http", "a", "http://other/"},
        {"GET", "http", "a", "example.org/"},
        {"GET", "http", "a", ""},
        {"GET", "http", "a", "*"},
        {"GET", "ht tp", "a", "/"},
        {"GET", "http", "a\r\nb: c", "/"},
        {"", "http", "a", "/"},
    };
    for (size_t i = 0; i < iso_countof(wrong); i++) {
        begin(HTTP2_REQUEST);
        add(":method", wrong[i][0]);
        add(":scheme", wrong[i][1]);
        add(":authority", wrong[i][2]);
        add(":path", wrong[i][3]);
        assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
    }
}

static void rejects_pseudo_fields_twice_unknown_or_behind_others(void **state)
{
    static const char *const extra[] = {":path", ":status", ":other", ":protocol"};
    for (size_t i = 0; i < iso_countof(extra); i++) {
        begin(HTTP2_REQUEST);
        add_get();
        add(extra[i], "200");
        assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
    }
    begin(HTTP2_REQUEST);
    add(":method", "GET");
    add(":scheme", "http");
    add(":path", "/");
    add("x-a", "b");
    add(":authority", "a");
    assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
    begin(HTTP2_REQUEST);
    assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
}

static void rejects_hosts_that_differ_C_063(void **state)
{
    add_get();
    add("host", "b.example");
    assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
}

static void refuses_hosts_that_are_none(void **state)
{
    static const char *const hosts[] = {"u@localhost", "localhost/x", "a,b", ""};
    for (size_t i = 0; i < iso_countof(hosts); i++) {
        begin(HTTP2_REQUEST);
        add(":method", "GET");
        add(":scheme", "http");
        add(":path", "/");
        add(":authority", hosts[i]);
        assert_int_equal(finish(true), HTTP2_HEAD_REFUSED);
        assert_int_equal(why, HTTP_REJECT_BAD_HOST);
    }
}

static void rejects_a_length_without_body(void **state)
{
    add_get();
    add("content-length", "5");
    assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
}

static void an_answer_becomes_its_message(void **state)
{
    begin(HTTP2_RESPONSE);
    add(":status", "200");
    add("content-length", "5");
    add("date", "now");
    assert_int_equal(finish(false), HTTP2_HEAD_OK);
    assert_int_equal(msg.status, 200);
    assert_int_equal(msg.framing, HTTP_BODY_LENGTH);
    assert_int_equal(msg.content_length, 5);
}

static void an_answer_of_unknown_length_leaves_the_connection_usable(void **state)
{
    begin(HTTP2_RESPONSE);
    add(":status", "200");
    assert_int_equal(finish(false), HTTP2_HEAD_OK);
    assert_int_equal(msg.framing, HTTP_BODY_CHUNKED);
    assert_true(msg.keep_alive);
    begin(HTTP2_RESPONSE);
    add(":status", "200");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_int_equal(msg.framing, HTTP_BODY_LENGTH);
    assert_int_equal(msg.content_length, 0);
    assert_true(msg.keep_alive);
}

static void rejects_answers_that_are_none(void **state)
{
    static const char *const statuses[] = {"101", "20", "2000", "abc", "600", "+20"};
    for (size_t i = 0; i < iso_countof(statuses); i++) {
        begin(HTTP2_RESPONSE);
        add(":status", statuses[i]);
        assert_int_not_equal(finish(true), HTTP2_HEAD_OK);
    }
}

static void trailers_lose_what_may_not_be_one(void **state)
{
    begin(HTTP2_TRAILERS);
    add("x-sum", "77");
    add("content-length", "3");
    assert_int_equal(finish(true), HTTP2_HEAD_OK);
    assert_int_equal(msg.n_fields, 2);
    assert_slice(http_field_value(&msg.fields[0]), "77");
    assert_true(msg.fields[1].flags & HTTP_FIELD_DROP);
    begin(HTTP2_TRAILERS);
    add(":path", "/");
    assert_int_equal(finish(true), HTTP2_HEAD_MALFORMED);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(a_request_becomes_its_message),
        T(pseudo_fields_come_in_any_order),
        T(a_body_of_unknown_length_is_chunked),
        T(a_post_without_body_says_so),
        T(cookie_crumbs_become_one_field_C_064),
        T(host_stands_for_authority_C_063),
        T(an_equal_host_is_left_out_C_063),
        T(an_extended_connect_becomes_the_get_it_stands_for),
        T(a_plain_connect_is_not_taken),
        T(a_list_over_the_limit_is_refused_and_not_kept),
        T(rejects_fields_that_belong_to_a_connection_C_062),
        T(rejects_what_would_become_a_line_of_its_own),
        T(rejects_pseudo_fields_that_are_not_a_request),
        T(rejects_pseudo_fields_twice_unknown_or_behind_others),
        T(rejects_hosts_that_differ_C_063),
        T(refuses_hosts_that_are_none),
        T(rejects_a_length_without_body),
        T(an_answer_becomes_its_message),
        T(an_answer_of_unknown_length_leaves_the_connection_usable),
        T(rejects_answers_that_are_none),
        T(trailers_lose_what_may_not_be_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
