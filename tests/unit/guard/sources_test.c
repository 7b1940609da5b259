/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/sources.h"

#include "core/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { LIST_MAX = 512 };

static struct arena arena;
static struct ip_prefix allow[LIST_MAX], deny[LIST_MAX];
static struct config_sources config;

static int begin(void **state)
{
    arena_init(&arena);
    config = (struct config_sources){.allow = allow, .deny = deny};
    return 0;
}

static int end(void **state)
{
    arena_fini(&arena);
    return 0;
}

static void allows(const char *prefix)
{
    assert_true(ip_prefix_parse(slice_str(prefix), &allow[config.n_allow++]));
}

static void denies(const char *prefix)
{
    assert_true(ip_prefix_parse(slice_str(prefix), &deny[config.n_deny++]));
}

static void expect(bool wanted, const char *address)
{
    struct ip_addr addr;
    assert_true(ip_parse(slice_str(address), &addr));
    if (sources_allow(sources_compile(&config, &arena), &addr) != wanted)
        fail_msg("%s is %s", address, wanted ? "denied" : "allowed");
}

static void without_lists_all_are_let_in(void **state)
{
    assert_null(sources_compile(&config, &arena));
    expect(true, "192.0.2.1");
}

static void a_list_of_denied_ones_lets_the_others_in(void **state)
{
    denies("10.0.0.0/8");
    expect(false, "10.0.0.0");
    expect(false, "10.255.255.255");
    expect(true, "9.255.255.255");
    expect(true, "11.0.0.0");
    expect(true, "2001:db8::1");
}

static void a_list_of_allowed_ones_keeps_the_others_out(void **state)
{
    allows("10.0.0.0/8");
    allows("2001:db8::/32");
    expect(true, "10.1.2.3");
    expect(true, "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
    expect(false, "2001:db9::");
    expect(false, "192.0.2.1");
}

static void the_longest_prefix_decides(void **state)
{
    allows("10.0.0.0/8");
    denies("10.1.0.0/16");
    allows("10.1.1.0/24");
    denies("10.1.1.255/32");
    expect(true, "10.0.255.255");
    expect(false, "10.1.0.0");
    expect(true, "10.1.1.0");
    expect(true, "10.1.1.254");
    expect(false, "10.1.1.255");
    expect(false, "10.1.2.0");
    expect(true, "10.2.0.0");
    expect(false, "11.0.0.0");
}

static void of_two_that_are_the_same_the_denied_one_decides(void **state)
{
    allows("10.0.0.0/8");
    denies("10.0.0.0/8");
    expect(false, "10.1.2.3");
}

static void the_ends_of_the_numbers_are_no_exception(void **state)
{
    denies("0.0.0.0/0");
    allows("255.255.255.255/32");
    allows("0.0.0.0/32");
    denies("ffff::/16");
    expect(true, "0.0.0.0");
    expect(true, "255.255.255.255");
    expect(false, "255.255.255.254");
    expect(false, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    expect(false, "fffe::1"); /* there is a list of allowed ones */
}

static void an_address_less_client_is_let_in(void **state)
{
    denies("0.0.0.0/0");
    assert_true(sources_allow(sources_compile(&config, &arena), &(struct ip_addr){0}));
}

/* As one would look it up by hand. */
static bool by_hand(const struct ip_addr *addr)
{
    int best = -1;
    bool verdict = config.n_allow == 0;
    for (uint32_t i = 0; i < config.n_allow; i++)
        if (ip_prefix_has(&allow[i], addr) && allow[i].bits > best) {
            best = allow[i].bits;
            verdict = true;
        }
    for (uint32_t i = 0; i < config.n_deny; i++)
        if (ip_prefix_has(&deny[i], addr) && deny[i].bits >= best) {
            best = deny[i].bits;
            verdict = false;
        }
    return verdict;
}

static struct ip_prefix any_prefix(void)
{
    struct ip_prefix prefix = {.addr.family = 4, .bits = (uint8_t)(rand() % 33)};
    for (int bit = 0; bit < prefix.bits; bit++)
        prefix.addr.bytes[bit / 8] |= (uint8_t)(rand() % 4 == 0 ? 0x80 >> bit % 8 : 0);
    return prefix;
}

static void many_prefixes_say_what_a_search_by_hand_says(void **state)
{
    srand(1);
    for (int round = 0; round < 50; round++) {
        config.n_allow = (uint32_t)rand() % 60;
        config.n_deny = 1 + (uint32_t)rand() % 60;
        for (uint32_t i = 0; i < LIST_MAX / 8; i++) {
            allow[i] = any_prefix();
            deny[i] = any_prefix();
        }
        const struct sources *sources = sources_compile(&config, &arena);
        for (int i = 0; i < 2000; i++) {
            struct ip_addr addr = any_prefix().addr;
            addr.bytes[3] = (uint8_t)rand();
            assert_int_equal(sources_allow(sources, &addr), by_hand(&addr));
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(without_lists_all_are_let_in),
        TEST(a_list_of_denied_ones_lets_the_others_in),
        TEST(a_list_of_allowed_ones_keeps_the_others_out),
        TEST(the_longest_prefix_decides),
        TEST(of_two_that_are_the_same_the_denied_one_decides),
        TEST(the_ends_of_the_numbers_are_no_exception),
        TEST(an_address_less_client_is_let_in),
        TEST(many_prefixes_say_what_a_search_by_hand_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
