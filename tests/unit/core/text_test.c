/* SPDX-License-Identifier: Apache-2.0 */
#include "core/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void a_text_is_quoted_as_JSON_has_it(void **state)
{
    static const struct {
        struct slice from;
        const char *to;
    } cases[] = {
        {SLICE(""), "\"\""},
        {SLICE("web-1.example:80"), "\"web-1.example:80\""},
        {SLICE("say \"hi\""), "\"say \\\"hi\\\"\""},
        {SLICE("a\\b"), "\"a\\\\b\""},
        {SLICE("a\nb\0c\x7f"), "\"a\\u000ab\\u0000c\\u007f\""},
        {SLICE("gr\xc3\xbc\xc3\x9f"), "\"gr\xc3\xbc\xc3\x9f\""},
        {SLICE("\xff\xc3"), "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    for (size_t i = 0; i < iso_countof(cases); i++) {
        struct text text;
        text_init(&text);
        text_add(&text, SLICE("x"));
        text_json(&text, cases[i].from);
        assert_int_equal(text.len, strlen(cases[i].to) + 1);
        assert_string_equal(text.data + 1, cases[i].to);
        text_fini(&text);
    }
}

static void texts_of_every_length_fit(void **state)
{
    struct text text;
    char long_one[1024];
    memset(long_one, 'a', sizeof(long_one));
    text_init(&text);
    size_t expected = 0;
    for (size_t n = 0; n <= sizeof(long_one); n++) {
        text_json(&text, slice_of(long_one, n));
        expected += n + 2;
        assert_int_equal(text.len, expected);
        assert_int_equal(text.data[text.len], '\0');
    }
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_text_is_quoted_as_JSON_has_it),
                                       cmocka_unit_test(texts_of_every_length_fit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
