/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/json.h"

#include "readers.h"

static void expect(const char *text, const char *expected)
{
    expect_read_of(json_read, slice_str(text), false, expected);
}

static void reads_every_kind_of_value(void **state)
{
    expect("{\"a\": [1, -2.5e3, \"x\", true, false, null], \"b\": {}, \"c\": []}",
           "{a=[int'1' real'-2.5e3' 'x' bool'true' bool'false' null'null'] b={} c=[]}");
    expect(" 1 ", "int'1'");
    expect("\"\"", "''");
    expect("\xef\xbb\xbf{}", "{}");
}

static void texts_keep_what_looks_like_something_else(void **state)
{
    expect("[\"1\", \"true\", \"null\", \"\"]", "['1' 'true' 'null' '']");
}

static void escapes_become_characters(void **state)
{
    expect("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\ud83d\\ude00\"",
           "'\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'");
}

static void nodes_know_line_and_character(void **state)
{
    expect_read_of(json_read, SLICE("{\"\xc3\xa9\": 1,\n  \"b\": [\n\"x\"]}"), true,
                   "{\xc3\xa9=int'1'@1:7 b=['x'@3:1]@2:8}@1:1");
}

static void rejects_what_is_not_json(void **state)
{
    static const struct {
        const char *text, *fault;
    } cases[] = {
        {"", "1:1: is not valid JSON: the text ends here, expected a value"},
        {"{", "1:2: is not valid JSON: the text ends here, expected a key in quotes"},
        {"[1", "1:3: is not valid JSON: the text ends here, expected a comma or ]"},
        {"[1,]", "1:4: is not valid JSON: expected a value"},
        {"{\"a\":1,}", "1:8: is not valid JSON: expected a key in quotes"},
        {"{\"a\" 1}", "1:6: is not valid JSON: expected a colon after the key"},
        {"{a: 1}", "1:2: is not valid JSON: expected a key in quotes"},
        {"{} x", "1:4: is not valid JSON: expected nothing behind the document"},
        {"[1}", "1:3: is not valid JSON: expected a comma or ]"},
        {"[\"a\nb\"]", "1:4: is not valid JSON: expected the end of the text in quotes"},
        {"\"a", "1:3: is not valid JSON: the text ends here, expected the end of the text in quotes"},
        {"\"\\", "1:3: is not valid JSON: the text ends here, expected the end of the text in quotes"},
        {"\"\\x\"", "1:3: is not valid JSON: expected one of \" \\ / b f n r t u after a backslash"},
        {"\"\\u12\"", "1:6: is not valid JSON: expected four hexadecimal digits after \\u"},
        {"\"\\ud83d\"", "1:8: is not valid JSON: expected a pair of surrogates"},
        {"\"\\ud83d\\u0041\"", "1:14: is not valid JSON: expected a pair of surrogates"},
        {"\"\\ude00\"", "1:8: is not valid JSON: expected a pair of surrogates"},
        {"\"\\u0000\"", "1:8: is not valid JSON: expected no \\u0000 in a text"},
        {"// c\n1", "1:1: is not valid JSON: expected a value"},
    };
    for (size_t i = 0; i < iso_countof(cases); i++)
        expect(cases[i].text, cases[i].fault);
    static const char *const words[] = {"NaN", "Infinity", "-",    "01",  "1.", ".5",
                                        "+1",  "0x1",      "True", "nul", "1e", "--1"};
    for (size_t i = 0; i < iso_countof(words); i++)
        expect(words[i], "1:1: is not valid JSON: expected a value: a text in quotes, a number, true, false, "
                         "null, [ or {");
}

static void rejects_keys_that_occur_twice(void **state)
{
    expect("{\"a\": 1, \"\\u0061\": 2}", "1:10: /a: is given twice; the first is on line 1");
}

/* C-150: 100,000 levels, which a recursive reader would not survive. */
static void rejects_deep_nesting_without_recursion(void **state)
{
    static char text[200000];
    memset(text, '[', sizeof(text));
    expect_read_of(json_read, slice_of(text, sizeof(text)), false, "1:33: is nested deeper than 32 levels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_kind_of_value),
        cmocka_unit_test(texts_keep_what_looks_like_something_else),
        cmocka_unit_test(escapes_become_characters),
        cmocka_unit_test(nodes_know_line_and_character),
        cmocka_unit_test(rejects_what_is_not_json),
        cmocka_unit_test(rejects_keys_that_occur_twice),
        cmocka_unit_test(rejects_deep_nesting_without_recursion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
