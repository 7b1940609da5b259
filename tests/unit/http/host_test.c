/* SPDX-License-Identifier: Apache-2.0 */
#include "heads.h"

static void parses(const char *value, const char *host, unsigned port)
{
    struct slice got;
    uint16_t got_port;
    if (!http_host_parse(slice_str(value), &got, &got_port))
        fail_msg("%s is refused", value);
    is(got, host);
    assert_int_equal(got_port, port);
}

static void a_host_may_have_a_port(void **state)
{
    parses("t.example", "t.example", 0);
    parses("T.example:8080", "T.example", 8080);
    parses("10.0.0.1:1", "10.0.0.1", 1);
    parses("a_b-c.~d:65535", "a_b-c.~d", 65535);
    parses("a:080", "a", 80);
}

static void a_port_may_be_left_empty(void **state)
{
    parses("t.example:", "t.example", 0);
}

static void ipv6_keeps_its_brackets(void **state)
{
    parses("[::1]", "[::1]", 0);
    parses("[2001:db8::1]:443", "[2001:db8::1]", 443);
    parses("[::ffff:10.0.0.1]", "[::ffff:10.0.0.1]", 0);
}

static void names_may_have_escapes_and_delimiters(void **state)
{
    parses("a%2Fb", "a%2Fb", 0);
    parses("a!$&'()*+;=b", "a!$&'()*+;=b", 0);
}

static void rejects_what_is_no_host_C_007(void **state)
{
    static const char *const bad[] = {
        "",     " ",      "a b",       "a\tb",    "a/b",     "a@b",   "a?b",  "a#b",   "a\\b", "a,b",
        ":80",  "a:0",    "a:65536",   "a:99999", "a:1x",    "a:+1",  "a: 1", "a:1:2", "::1",  "[::1",
        "[]",   "[::1]x", "[1.2.3.4]", "[v1.x]",  "[::1%1]", "a[",    "a%",   "a%2",   "a%gg", "a\x80",
        "\x7f", "a\r",    "[[::1]]",   "[::1]:0", "<a>",     "\"a\"", "a|b",  "{a}",   "a^",
    };
    struct slice host;
    uint16_t port;
    for (size_t i = 0; i < iso_countof(bad); i++)
        if (http_host_parse(slice_str(bad[i]), &host, &port))
            fail_msg("%s is accepted", bad[i]);
    assert_false(http_host_parse(slice_of("a\0b", 3), &host, &port));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_may_have_a_port),
        cmocka_unit_test(a_port_may_be_left_empty),
        cmocka_unit_test(ipv6_keeps_its_brackets),
        cmocka_unit_test(names_may_have_escapes_and_delimiters),
        cmocka_unit_test(rejects_what_is_no_host_C_007),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
