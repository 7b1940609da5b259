/* SPDX-License-Identifier: Apache-2.0 */
#include "health/answer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdlib.h>

static struct config_status_range good[] = {{200, 399}};
static const struct config_health_check plain = {.type = CONFIG_HEALTH_HTTP, .expect = good, .n_expect = 1};
static const struct config_health_check wants_body = {
    .type = CONFIG_HEALTH_HTTP, .expect = good, .n_expect = 1, .expect_body = SLICE("all good")};

enum { UNDECIDED = HEALTH_REASON_COUNT };

/* Feeds pieces of `step` bytes; the decision, that of the end when `is_closed`, or UNDECIDED. */
static unsigned judge(const struct config_health_check *check, const char *data, size_t len, size_t step,
                      bool is_closed, uint16_t *status)
{
    struct answer answer;
    enum health_reason reason = HEALTH_REASON_NONE;
    bool is_decided = false;
    struct body_pattern *pattern =
        check->expect_body_regex.ptr ? body_pattern_new(check->expect_body_regex) : NULL;
    answer_init(&answer, check, pattern, false);
    for (size_t at = 0; at < len && !is_decided; at += step) {
        size_t n = len - at < step ? len - at : step;
        char *piece = malloc(n); /* of its own size, so that a sanitizer sees a read behind it */
        memcpy(piece, data + at, n);
        is_decided = answer_feed(&answer, piece, n, &reason);
        free(piece);
    }
    if (!is_decided && is_closed) {
        reason = answer_end(&answer);
        is_decided = true;
    }
    *status = answer.http_status;
    answer_fini(&answer);
    body_pattern_free(pattern);
    return is_decided ? reason : UNDECIDED;
}

/* The same in one piece and byte by byte. */
static void expect(const struct config_health_check *check, const char *text, bool is_closed, unsigned reason,
                   unsigned status)
{
    static const size_t steps[] = {1, 7, 1 << 20};
    for (size_t i = 0; i < iso_countof(steps); i++) {
        uint16_t got;
        assert_int_equal(judge(check, text, strlen(text), steps[i], is_closed, &got), reason);
        assert_int_equal(got, status);
    }
}

static void a_good_head_is_enough_without_an_expected_body(void **state)
{
    expect(&plain, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\nx", false, HEALTH_REASON_OK, 200);
    expect(&plain, "HTTP/1.0 204 \r\n\r\n", false, HEALTH_REASON_OK, 204);
}

static void a_redirect_is_an_answer_by_its_status_C_091(void **state)
{
    static struct config_status_range only_2xx[] = {{200, 299}};
    struct config_health_check strict = plain;
    static const char answer[] =
        "HTTP/1.1 301 Moved\r\nLocation: https://elsewhere.example/login\r\nContent-Length: 0\r\n\r\n";
    strict.expect = only_2xx;
    expect(&plain, answer, false, HEALTH_REASON_OK, 301);
    expect(&strict, answer, false, HEALTH_REASON_STATUS, 301);
}

static void several_ranges_may_be_expected(void **state)
{
    static struct config_status_range ranges[] = {{200, 200}, {401, 403}};
    struct config_health_check check = plain;
    check.expect = ranges;
    check.n_expect = 2;
    expect(&check, "HTTP/1.1 403 Forbidden\r\n\r\n", false, HEALTH_REASON_OK, 403);
    expect(&check, "HTTP/1.1 201 Created\r\n\r\n", false, HEALTH_REASON_STATUS, 201);
    expect(&check, "HTTP/1.1 503 No\r\n\r\n", false, HEALTH_REASON_STATUS, 503);
}

static void interim_answers_are_skipped(void **state)
{
    expect(
        &plain,
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\n\r\n",
        false, HEALTH_REASON_STATUS, 500);
}

static void the_expected_body_is_found_wherever_it_is_cut(void **state)
{
    expect(&wants_body, "HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\nxx all good xx", false,
           HEALTH_REASON_OK, 200);
    expect(&wants_body,
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nall\r\n2;x=y\r\n "
           "g\r\n4\r\nood!\r\n0\r\n\r\n",
           false, HEALTH_REASON_OK, 200);
    expect(&wants_body, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall good", true, HEALTH_REASON_OK, 200);
}

static void a_body_without_the_text_is_a_mismatch(void **state)
{
    expect(&wants_body, "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nall fine", false, HEALTH_REASON_BODY,
           200);
    expect(&wants_body, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nall\r\n0\r\n\r\n", false,
           HEALTH_REASON_BODY, 200);
    expect(&wants_body, "HTTP/1.1 200 OK\r\n\r\nall fine", true, HEALTH_REASON_BODY, 200);
    expect(&wants_body, "HTTP/1.1 204 No Content\r\n\r\n", false, HEALTH_REASON_BODY, 204);
    /* What stands behind the announced length is not the body. */
    expect(&wants_body, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nxxall good", false, HEALTH_REASON_BODY,
           200);
}

static void a_body_is_read_to_64_KiB_only_C_098(void **state)
{
    size_t len = 200 << 10;
    char *text = malloc(len);
    uint16_t status;
    memset(text, 'x', len);
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n";
    memcpy(text, head, sizeof(head) - 1);
    memcpy(text + (100 << 10), "all good", 8);
    assert_int_equal(judge(&wants_body, text, len, 4096, false, &status), HEALTH_REASON_BODY);
    memcpy(text + (63 << 10), "all good", 8);
    assert_int_equal(judge(&wants_body, text, len, 4096, false, &status), HEALTH_REASON_OK);
    free(text);
}

#define WANTS(regex)                                                                                         \
    {                                                                                                        \
        .type = CONFIG_HEALTH_HTTP, .expect = good, .n_expect = 1, .expect_body_regex = SLICE(regex)         \
    }

static void a_body_can_be_matched_by_a_pattern_D1(void **state)
{
    static const struct config_health_check version = WANTS("^v[0-9]+\\.[0-9]+$");
    expect(&version, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nv1.27", false, HEALTH_REASON_OK, 200);
    expect(&version, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nv1.27x", false, HEALTH_REASON_BODY, 200);
    expect(&version, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nv1\r\n3\r\n.27\r\n0\r\n\r\n",
           false, HEALTH_REASON_OK, 200);
    expect(&version, "HTTP/1.1 200 OK\r\n\r\nv1.27", true, HEALTH_REASON_OK, 200);
    expect(&version, "HTTP/1.1 200 OK\r\n\r\nv1.27", false, UNDECIDED, 200);
    expect(&version, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nv1.27", true, HEALTH_REASON_CLOSED, 200);
    expect(&version, "HTTP/1.1 204 No Content\r\n\r\n", false, HEALTH_REASON_BODY, 204);
    struct config_health_check both = version;
    both.expect_body = SLICE("v2");
    expect(&both, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nv1.27", false, HEALTH_REASON_BODY, 200);
    expect(&both, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nv2.27", false, HEALTH_REASON_OK, 200);
}

static void a_pattern_sees_64_KiB_and_works_within_a_limit(void **state)
{
    static const struct config_health_check hard = WANTS("(x+x+)+y"), plain_x = WANTS("^x+$");
    size_t len = 200 << 10;
    char *text = malloc(len);
    uint16_t status;
    memset(text, 'x', len);
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n";
    memcpy(text, head, sizeof(head) - 1);
    assert_int_equal(judge(&hard, text, len, 4096, false, &status), HEALTH_REASON_BODY);
    text[100 << 10] = 'z';
    assert_int_equal(judge(&plain_x, text, len, 4096, false, &status), HEALTH_REASON_OK);
    free(text);
}

static void a_close_before_the_answer_is_whole_is_told_apart_C_098(void **state)
{
    expect(&plain, "", true, HEALTH_REASON_CLOSED, 0);
    expect(&plain, "HTTP/1.1 200 OK\r\nConte", true, HEALTH_REASON_CLOSED, 0);
    expect(&wants_body, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nall", true, HEALTH_REASON_CLOSED, 200);
}

static void rejects_what_is_not_http(void **state)
{
    expect(&plain, "SSH-2.0-OpenSSH_9.2p1\r\n", false, HEALTH_REASON_INVALID, 0);
    expect(&plain, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", false,
           HEALTH_REASON_INVALID, 0);
    expect(&wants_body, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", false,
           HEALTH_REASON_INVALID, 200);
    expect(&plain, "garbage without a line end", true, HEALTH_REASON_INVALID, 0);
}

static void rejects_a_head_without_end(void **state)
{
    size_t len = 64 << 10;
    char *text = malloc(len);
    uint16_t status;
    memset(text, 'a', len);
    memcpy(text, "HTTP/1.1 200 OK\r\nX: ", 20);
    assert_int_equal(judge(&plain, text, len, 1000, false, &status), HEALTH_REASON_INVALID);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_head_is_enough_without_an_expected_body),
        cmocka_unit_test(a_redirect_is_an_answer_by_its_status_C_091),
        cmocka_unit_test(several_ranges_may_be_expected),
        cmocka_unit_test(interim_answers_are_skipped),
        cmocka_unit_test(the_expected_body_is_found_wherever_it_is_cut),
        cmocka_unit_test(a_body_without_the_text_is_a_mismatch),
        cmocka_unit_test(a_body_is_read_to_64_KiB_only_C_098),
        cmocka_unit_test(a_body_can_be_matched_by_a_pattern_D1),
        cmocka_unit_test(a_pattern_sees_64_KiB_and_works_within_a_limit),
        cmocka_unit_test(a_close_before_the_answer_is_whole_is_told_apart_C_098),
        cmocka_unit_test(rejects_what_is_not_http),
        cmocka_unit_test(rejects_a_head_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
