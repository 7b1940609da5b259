/* SPDX-License-Identifier: Apache-2.0 */
#include "../http/heads.h"

static struct head *trailers_bytes(const char *text, size_t len, const struct h1_limits *limits)
{
    struct head *h = begin_head(text, len);
    h->result = h1_parse_trailers(h->data, len, limits, &h->msg, &h->used, &h->why);
    return h;
}
#define trailers(text) trailers_bytes(text, sizeof(text) - 1, &test_limits)

static void an_empty_section_is_two_bytes(void **state)
{
    struct http_message *m = accepted(trailers("\r\nGET / HTTP/1.1\r\n"));
    assert_int_equal(m->n_fields, 0);
    assert_int_equal(last_head.used, 2);
    assert_int_equal(trailers("\r")->result, H1_INCOMPLETE);
    assert_int_equal(trailers("")->result, H1_INCOMPLETE);
}

static void ordinary_trailers_pass_C_016(void **state)
{
    struct http_message *m = accepted(trailers("x-sum: 77\r\nGrpc-Status: 0\r\n\r\n"));
    assert_true(kept(m, "X-Sum"));
    assert_true(kept(m, "grpc-status"));
    assert_int_equal(last_head.used, strlen("x-sum: 77\r\nGrpc-Status: 0\r\n\r\n"));
}

static void fields_that_decide_something_are_dropped(void **state)
{
    static const char *const names[] = {
        "Content-Length",
        "Transfer-Encoding",
        "Host",
        "Authorization",
        "Content-Type",
        "Set-Cookie",
        "Cookie",
        "Connection",
        "Trailer",
        "Content-Encoding",
        "Cache-Control",
        "Expect",
        "Range",
        "If-None-Match",
        "WWW-Authenticate",
        "Location",
        "Age",
        "Date",
        "TE",
        "X-Forwarded-For",
        "Upgrade",
        "X_Request_Id",
        "Max-Forwards",
        "content_length",
        "Proxy-Authorization",
    };
    for (size_t i = 0; i < iso_countof(names); i++) {
        char text[100];
        snprintf(text, sizeof(text), "%s: 1\r\nx-kept: 1\r\n\r\n", names[i]);
        struct http_message *m = accepted(trailers_bytes(text, strlen(text), &test_limits));
        if (kept(m, names[i]) || !kept(m, "x-kept"))
            fail_msg("%s is kept", names[i]);
    }
}

static void rejects_malformed_trailers(void **state)
{
    rejected(trailers("x-sum : 77\r\n\r\n"), HTTP_REJECT_BAD_TRAILER);
    rejected(trailers("x-sum: 77\r\n 8\r\n\r\n"), HTTP_REJECT_BAD_TRAILER);
    rejected(trailers("x-sum\r\n\r\n"), HTTP_REJECT_BAD_TRAILER);
    rejected(trailers("x-sum: 7\0\r\n\r\n"), HTTP_REJECT_BAD_TRAILER);
    rejected(trailers("GET / HTTP/1.1\r\n"), HTTP_REJECT_BAD_TRAILER);
    rejected(trailers("\n"), HTTP_REJECT_BARE_LF);
    rejected(trailers("x: 1\n\r\n"), HTTP_REJECT_BARE_LF);
}

static void rejects_sections_over_the_limits_C_018(void **state)
{
    static const char text[] = "a: 1\r\nb: 2\r\n\r\n";
    const size_t len = sizeof(text) - 1;
    struct h1_limits limits = {.head_bytes = (uint32_t)len, .uri_bytes = 10, .fields = 2};
    accepted(trailers_bytes(text, len, &limits));
    limits.head_bytes--;
    rejected(trailers_bytes(text, len, &limits), HTTP_REJECT_TRAILERS_TOO_LARGE);
    assert_int_equal(trailers_bytes(text, len - 2, &limits)->result, H1_INCOMPLETE);
    limits = (struct h1_limits){.head_bytes = (uint32_t)len, .uri_bytes = 10, .fields = 1};
    rejected(trailers_bytes(text, len, &limits), HTTP_REJECT_TOO_MANY_FIELDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_section_is_two_bytes),
        cmocka_unit_test(ordinary_trailers_pass_C_016),
        cmocka_unit_test(fields_that_decide_something_are_dropped),
        cmocka_unit_test(rejects_malformed_trailers),
        cmocka_unit_test(rejects_sections_over_the_limits_C_018),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
