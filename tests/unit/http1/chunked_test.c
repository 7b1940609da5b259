/* SPDX-License-Identifier: Apache-2.0 */
#include "../http/heads.h"

static char decoded[4096];
static size_t decoded_len, decoded_used;

/* Decodes `text` in pieces of `step` bytes. */
static enum h1_chunked_result decode(const char *text, size_t len, size_t step)
{
    struct h1_chunked chunk = {0};
    enum h1_chunked_result result = H1_CHUNKED_MORE;
    decoded_len = decoded_used = 0;
    while (decoded_used < len && result == H1_CHUNKED_MORE) {
        size_t piece = len - decoded_used < step ? len - decoded_used : step, used, body;
        char *copy = malloc(piece);
        enum http_reject why = HTTP_REJECT_NONE;
        memcpy(copy, text + decoded_used, piece);
        result = h1_chunked_decode(&chunk, copy, piece, &used, &body, &why);
        assert_true(used <= piece && body <= used);
        assert_true(result != H1_CHUNKED_MORE || used == piece);
        assert_int_equal(why, result == H1_CHUNKED_REJECTED ? HTTP_REJECT_BAD_CHUNK : HTTP_REJECT_NONE);
        memcpy(decoded + decoded_len, copy, body);
        decoded_len += body;
        decoded_used += used;
        free(copy);
    }
    return result;
}

static void decodes_to(const char *text, const char *body, const char *rest)
{
    for (size_t step = 1; step <= strlen(text); step++) {
        assert_int_equal(decode(text, strlen(text), step), H1_CHUNKED_DATA_END);
        is(slice_of(decoded, decoded_len), body);
        is(slice_str(text + decoded_used), rest);
    }
}

static void rejects(const char *text, size_t len)
{
    for (size_t step = 1; step <= len; step++)
        if (decode(text, len, step) != H1_CHUNKED_REJECTED)
            fail_msg("\"%s\" is not rejected in pieces of %zu", text, step);
}
#define REJECTS(text) rejects(text, sizeof(text) - 1)

static void data_is_moved_together(void **state)
{
    decodes_to("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world", "\r\n");
    decodes_to("0\r\n\r\n", "", "\r\n");
    decodes_to("00\r\nX: y\r\n\r\n", "", "X: y\r\n\r\n");
}

static void sizes_are_hexadecimal_of_either_case_with_leading_zeros_C_012(void **state)
{
    decodes_to("A\r\n0123456789\r\nb\r\n0123456789a\r\n0\r\n", "01234567890123456789a", "");
    decodes_to("000000000000000000000002\r\nab\r\n0\r\n", "ab", "");
}

static void extensions_are_dropped(void **state)
{
    decodes_to("2;a\r\nab\r\n0;last=1\r\n", "ab", "");
    decodes_to("2 ; a = \"x;\\\"y\t\" ;b=c\t; d\r\nab\r\n0\r\n", "ab", "");
}

static void the_largest_size_is_that_of_a_file_offset(void **state)
{
    struct h1_chunked chunk = {0};
    char text[] = "7fffffffffffffff\r\nab";
    size_t used, body;
    enum http_reject why;
    assert_int_equal(h1_chunked_decode(&chunk, text, sizeof(text) - 1, &used, &body, &why), H1_CHUNKED_MORE);
    assert_int_equal(body, 2);
    assert_true(chunk.left == INT64_MAX - 2);
    REJECTS("8000000000000000\r\n");
    REJECTS("fffffffffffffffff2\r\n");
    REJECTS("FFFFFFFFFFFFFFFF0\r\nhello");
}

static void the_end_and_a_refusal_are_final(void **state)
{
    struct h1_chunked chunk = {0};
    char text[] = "0\r\nX";
    size_t used, body;
    enum http_reject why;
    assert_int_equal(h1_chunked_decode(&chunk, text, 3, &used, &body, &why), H1_CHUNKED_DATA_END);
    assert_int_equal(h1_chunked_decode(&chunk, text + 3, 1, &used, &body, &why), H1_CHUNKED_DATA_END);
    assert_int_equal(used, 0);
    struct h1_chunked broken = {0};
    char bad[] = "x2\r\n";
    assert_int_equal(h1_chunked_decode(&broken, bad, 1, &used, &body, &why), H1_CHUNKED_REJECTED);
    assert_int_equal(h1_chunked_decode(&broken, bad + 1, 3, &used, &body, &why), H1_CHUNKED_REJECTED);
}

static void rejects_sizes_that_are_not_hexadecimal_C_012(void **state)
{
    REJECTS("2zz\r\nab");
    REJECTS("0x2\r\nab");
    REJECTS("+2\r\nab");
    REJECTS("-2\r\nab");
    REJECTS("\t2\r\nab");
    REJECTS(" 2\r\nab");
    REJECTS("2_0\r\nab");
    REJECTS("\r\nab");
    REJECTS("\r\n");
    REJECTS(";a\r\nab");
    REJECTS("2 \r\nab");
}

static void rejects_line_ends_other_than_crlf_C_012(void **state)
{
    REJECTS("2\nab\r\n0\r\n");
    REJECTS("2\rab\r\n0\r\n");
    REJECTS("2\r\r\nab\r\n0\r\n");
    REJECTS("2;a\nab\r\n0\r\n");
    REJECTS("2;a\rb\r\nab\r\n0\r\n");
    REJECTS("2;a=\"x\ry\"\r\nab");
    REJECTS("2;a=\"x\ny\"\r\nab");
    REJECTS("0\n\r\n");
}

static void rejects_extensions_that_are_not_in_the_grammar_C_012(void **state)
{
    REJECTS("2;\r\nab");
    REJECTS("2 ;\r\nab");
    REJECTS("2;;a\r\nab");
    REJECTS("2;a=\r\nab");
    REJECTS("2;a \r\nab");
    REJECTS("2;a=b \r\nab");
    REJECTS("2;a=b c\r\nab");
    REJECTS("2;a b\r\nab");
    REJECTS("2;a=\"b\"c\r\nab");
    REJECTS("2;a=\"b\\\x01\"\r\nab");
    REJECTS("2;bad[=x\r\nab");
    REJECTS("2;\0ext\r\nab");
    REJECTS("2 a\r\nab");
}

static void rejects_data_without_its_crlf_C_014(void **state)
{
    REJECTS("3\r\nabcXX0\r\n\r\n");
    REJECTS("3\r\nabc\n0\r\n\r\n");
    REJECTS("3\r\nabc\r\n\r\n0\r\n\r\n");
    REJECTS("3\r\nabc\r0\r\n\r\n");
    REJECTS("5\r\nhello0\r\n\r\n");
}

static void rejects_endless_size_lines(void **state)
{
    char text[1024];
    memset(text, '0', sizeof(text));
    assert_int_equal(decode(text, sizeof(text), sizeof(text)), H1_CHUNKED_REJECTED);
    memcpy(text, "1;", 2);
    assert_int_equal(decode(text, sizeof(text), 7), H1_CHUNKED_REJECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_is_moved_together),
        cmocka_unit_test(sizes_are_hexadecimal_of_either_case_with_leading_zeros_C_012),
        cmocka_unit_test(extensions_are_dropped),
        cmocka_unit_test(the_largest_size_is_that_of_a_file_offset),
        cmocka_unit_test(the_end_and_a_refusal_are_final),
        cmocka_unit_test(rejects_sizes_that_are_not_hexadecimal_C_012),
        cmocka_unit_test(rejects_line_ends_other_than_crlf_C_012),
        cmocka_unit_test(rejects_extensions_that_are_not_in_the_grammar_C_012),
        cmocka_unit_test(rejects_data_without_its_crlf_C_014),
        cmocka_unit_test(rejects_endless_size_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
