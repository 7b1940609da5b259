/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/session_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct siphash_key salt = {1, 2};

static struct ip_addr ip_of(const char *text)
{
    struct ip_addr ip;
    assert_true(ip_parse(slice_str(text), &ip));
    return ip;
}

static void a_store_key_leads_back_to_the_table(void **state)
{
    char key[64];
    uint64_t found;
    struct ip_addr ip = ip_of("192.0.2.1");
    size_t n = session_key_of_client(key, sizeof(key), SLICE("web"), &ip);
    assert_true(slice_eq(slice_of(key, n), SLICE("client:web/192.0.2.1")));
    assert_true(session_key_in_table(slice_of(key, n), SLICE("web"), &salt, &found));
    assert_true(found == session_table_key_of_client(&salt, &ip));
    n = session_key_of_id(key, sizeof(key), SLICE("abc"));
    assert_true(slice_eq(slice_of(key, n), SLICE("session:abc")));
    assert_true(session_key_in_table(slice_of(key, n), SLICE("web"), &salt, &found));
    assert_true(found == session_table_key(&salt, SLICE("abc")));
}

static void an_ipv6_client_is_its_64(void **state)
{
    char key[64];
    struct ip_addr a = ip_of("2001:db8:0:1::5"), b = ip_of("2001:db8:0:1:ffff::9");
    size_t n = session_key_of_client(key, sizeof(key), SLICE("web"), &a);
    assert_true(slice_eq(slice_of(key, n), SLICE("client:web/2001:db8:0:1::")));
    assert_true(session_table_key_of_client(&salt, &a) == session_table_key_of_client(&salt, &b));
}

static void a_key_of_another_group_is_none_of_ours(void **state)
{
    uint64_t found;
    assert_false(session_key_in_table(SLICE("client:api/192.0.2.1"), SLICE("web"), &salt, &found));
    assert_false(session_key_in_table(SLICE("client:web"), SLICE("web"), &salt, &found));
    assert_false(session_key_in_table(SLICE("client:web/"), SLICE("web"), &salt, &found));
    assert_false(session_key_in_table(SLICE("client:web/nobody"), SLICE("web"), &salt, &found));
    assert_false(session_key_in_table(SLICE("server:web/10.0.0.1:80"), SLICE("web"), &salt, &found));
}

static void no_cookie_is_the_address_of_a_client(void **state)
{
    struct ip_addr ip = ip_of("49.50.51.52");
    assert_false(session_table_key(&salt, SLICE("1234")) == session_table_key_of_client(&salt, &ip));
}

static void rejects_a_key_that_does_not_fit(void **state)
{
    char key[12];
    assert_int_equal(session_key_of_id(key, sizeof(key), SLICE("abc")), 11);
    assert_int_equal(session_key_of_id(key, sizeof(key), SLICE("abcd")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_key_leads_back_to_the_table),
        cmocka_unit_test(an_ipv6_client_is_its_64),
        cmocka_unit_test(a_key_of_another_group_is_none_of_ours),
        cmocka_unit_test(no_cookie_is_the_address_of_a_client),
        cmocka_unit_test(rejects_a_key_that_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
