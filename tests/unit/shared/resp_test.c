/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/resp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct resp_value parsed(const char *text)
{
    struct resp_value value;
    size_t used = 0, n = strlen(text);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(resp_parse(slice_of(text, cut), &value, &used), RESP_NEED_MORE);
    assert_int_equal(resp_parse(slice_of(text, n), &value, &used), RESP_COMPLETE);
    assert_int_equal(used, n);
    return value;
}

static void replies_are_read_whole_or_not_at_all(void **state)
{
    struct resp_value value = parsed("+OK\r\n");
    assert_true(value.type == RESP_SIMPLE && slice_eq(value.text, SLICE("OK")));
    value = parsed(":-42\r\n");
    assert_true(value.type == RESP_INTEGER && value.integer == -42);
    value = parsed("$5\r\na\r\nbc\r\n");
    assert_true(value.type == RESP_BULK && slice_eq(value.text, SLICE("a\r\nbc")));
    value = parsed("$0\r\n\r\n");
    assert_true(value.type == RESP_BULK && value.text.len == 0);
    assert_int_equal(parsed("$-1\r\n").type, RESP_NIL);
    assert_int_equal(parsed("*-1\r\n").type, RESP_NIL);
    value = parsed("*3\r\n$3\r\nabc\r\n:7\r\n$-1\r\n");
    assert_true(value.type == RESP_ARRAY && value.n == 3);
    assert_true(slice_eq(value.elements[0].text, SLICE("abc")) && value.elements[1].integer == 7);
    assert_int_equal(value.elements[2].type, RESP_NIL);
    assert_int_equal(parsed("*0\r\n").n, 0);
}

static void an_error_begins_with_a_word(void **state)
{
    struct resp_value value = parsed("-MOVED 3999 127.0.0.1:6381\r\n");
    assert_int_equal(value.type, RESP_ERROR);
    assert_true(slice_eq(resp_error_word(&value), SLICE("MOVED")));
    value = parsed("-ERR\r\n");
    assert_true(slice_eq(resp_error_word(&value), SLICE("ERR")));
}

static void a_reply_ends_where_the_next_one_begins(void **state)
{
    struct resp_value value;
    size_t used;
    assert_int_equal(resp_parse(SLICE("$1\r\nx\r\n+OK\r\n"), &value, &used), RESP_COMPLETE);
    assert_int_equal(used, 7);
}

static void rejects_what_our_commands_are_never_answered_with(void **state)
{
    static const char *const bad[] = {"hello\r\n", "\r\n",    "+OK\n",
                                      ":\r\n",     ":1x\r\n", ":99999999999999999999\r\n",
                                      "$\r\n",     "$-2\r\n", "$16385\r\n",
                                      "*17\r\n",   "*-2\r\n", "*1\r\n*0\r\n",
                                      "$1\r\nxyz", "\n",      "*2\r\n:1\r\n?\r\n"};
    struct resp_value value;
    size_t used;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(resp_parse(slice_str(bad[i]), &value, &used), RESP_BAD);
}

static void rejects_a_line_without_an_end(void **state)
{
    char line[RESP_LINE_MAX + 1] = "+";
    struct resp_value value;
    size_t used;
    memset(line + 1, 'x', sizeof(line) - 1);
    assert_int_equal(resp_parse(slice_of(line, 100), &value, &used), RESP_NEED_MORE);
    assert_int_equal(resp_parse(slice_of(line, sizeof(line)), &value, &used), RESP_BAD);
}

static void a_command_says_the_length_of_each_argument(void **state)
{
    struct slice args[] = {SLICE("SET"), SLICE("k\r\n"), SLICE("")};
    struct text text;
    text_init(&text);
    resp_command(&text, args, 3);
    assert_string_equal(text.data, "*3\r\n$3\r\nSET\r\n$3\r\nk\r\n\r\n$0\r\n\r\n");
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_are_read_whole_or_not_at_all),
        cmocka_unit_test(an_error_begins_with_a_word),
        cmocka_unit_test(a_reply_ends_where_the_next_one_begins),
        cmocka_unit_test(rejects_what_our_commands_are_never_answered_with),
        cmocka_unit_test(rejects_a_line_without_an_end),
        cmocka_unit_test(a_command_says_the_length_of_each_argument),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
