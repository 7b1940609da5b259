/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ip.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct ip_addr addr(const char *text)
{
    struct ip_addr out = {0};
    assert_true(ip_parse(slice_str(text), &out));
    return out;
}

static void prints_what_it_parsed(void **state)
{
    static const char *const texts[] = {"0.0.0.0", "127.0.0.1", "255.255.255.255", "10.20.130.9",
                                        "::",      "::1",       "2001:db8::a:b"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        char out[IP_TEXT_MAX];
        struct ip_addr a = addr(texts[i]);
        assert_int_equal(ip_print(&a, out), strlen(texts[i]));
        assert_memory_equal(out, texts[i], strlen(texts[i]));
    }
}

static void mapped_addresses_become_ipv4(void **state)
{
    struct ip_addr a = addr("::ffff:10.1.2.3"), b = addr("10.1.2.3");
    assert_true(ip_eq(&a, &b));
}

static void prefixes_match_by_their_bits(void **state)
{
    struct ip_prefix p;
    assert_true(ip_prefix_parse(SLICE("10.16.0.0/12"), &p));
    struct ip_addr in = addr("10.31.255.255"), out = addr("10.32.0.0"), six = addr("::1");
    assert_true(ip_prefix_has(&p, &in));
    assert_false(ip_prefix_has(&p, &out));
    assert_false(ip_prefix_has(&p, &six));
    assert_true(ip_prefix_parse(SLICE("0.0.0.0/0"), &p));
    assert_true(ip_prefix_has(&p, &out));
}

static void rejects_what_is_no_address(void **state)
{
    static const char *const bad[] = {"",          "1.2.3", "1.2.3.4.5", "256.1.1.1",
                                      "[1.2.3.4]", ":::",   "1.2.3.4 ",  "fe80::1%eth0"};
    struct ip_addr a;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(ip_parse(slice_str(bad[i]), &a));
    struct ip_prefix p;
    assert_false(ip_prefix_parse(SLICE("10.0.0.1/8"), &p));
    assert_false(ip_prefix_parse(SLICE("10.0.0.0/33"), &p));
    assert_false(ip_prefix_parse(SLICE("10.0.0.0/"), &p));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prints_what_it_parsed),
        cmocka_unit_test(mapped_addresses_become_ipv4),
        cmocka_unit_test(prefixes_match_by_their_bits),
        cmocka_unit_test(rejects_what_is_no_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
