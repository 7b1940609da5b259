/* SPDX-License-Identifier: Apache-2.0 */
#include "heads.h"

static const char *cookie(const char *cookies, const char *name)
{
    static char text[100];
    struct slice value;
    if (!http_cookie_find(slice_str(cookies), slice_str(name), &value))
        return NULL;
    snprintf(text, sizeof(text), "%.*s", SLICE_ARG(value));
    return text;
}

static const char *query(const char *pairs, const char *name)
{
    static char text[100];
    struct slice value;
    if (!http_query_find(slice_str(pairs), slice_str(name), &value))
        return NULL;
    snprintf(text, sizeof(text), "%.*s", SLICE_ARG(value));
    return text;
}

static void cookies_are_found_by_their_whole_name(void **state)
{
    assert_string_equal(cookie("a=1; lb_server=web-3; b=2", "lb_server"), "web-3");
    assert_string_equal(cookie("a=1;b=x=y ;c=", "b"), "x=y");
    assert_string_equal(cookie("a=1;b=x=y ;c=", "c"), "");
    assert_string_equal(cookie("ab=1; a=2; a=3", "a"), "2");
    assert_null(cookie("ab=1; A=2; xa=3", "a"));
    assert_null(cookie("", "a"));
    assert_null(cookie("===;;;", "a"));
    assert_null(cookie("=1", ""));
}

static void cookies_may_be_spread_over_several_fields(void **state)
{
    struct http_message *m = accepted(get("Cookie: a=1\r\nX: b=0\r\nCookie: b=2; a=3\r\nCookie: c=4\r\n"));
    struct slice value;
    assert_true(http_message_cookie(m, SLICE("a"), &value));
    is(value, "1");
    assert_true(http_message_cookie(m, SLICE("b"), &value));
    is(value, "2");
    assert_false(http_message_cookie(m, SLICE("d"), &value));
    m->fields[4].flags |= HTTP_FIELD_DROP;
    assert_false(http_message_cookie(m, SLICE("c"), &value));
}

static void parameters_are_found_by_their_whole_name(void **state)
{
    assert_string_equal(query("x=1&page=2&page=3", "page"), "2");
    assert_string_equal(query("flag&x=1", "flag"), "");
    assert_string_equal(query("a=b=c&", "a"), "b=c");
    assert_string_equal(query("a=%20+", "a"), "%20+");
    assert_null(query("xa=1&ab=2& a=3", "a"));
    assert_null(query("", "a"));
    struct slice value;
    assert_false(http_query_find((struct slice){0}, SLICE("a"), &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cookies_are_found_by_their_whole_name),
        cmocka_unit_test(cookies_may_be_spread_over_several_fields),
        cmocka_unit_test(parameters_are_found_by_their_whole_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
