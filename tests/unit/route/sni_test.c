/* SPDX-License-Identifier: Apache-2.0 */
/* Each test lists rules as an operator would, in the file's order, and asks which one a ClientHello gets. */
#include "route/sni.h"

#include "core/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { RULES_MAX = 8 };

static struct arena arena;
static struct config_rule rules[RULES_MAX];
static struct slice names[RULES_MAX][2], protocols[RULES_MAX];
static struct ip_prefix sources[RULES_MAX];
static struct config_listener listener;

static int begin(void **state)
{
    arena_init(&arena);
    memset(rules, 0, sizeof(rules));
    listener = (struct config_listener){.rules = rules};
    return 0;
}

static int end(void **state)
{
    arena_fini(&arena);
    return 0;
}

/* NULL: none. */
static void add(const char *rule, const char *sni, const char *alpn, const char *source)
{
    uint32_t i = listener.n_rules++;
    struct config_match *match = &rules[i].match;
    rules[i].name = slice_str(rule);
    names[i][0] = slice_str(sni);
    protocols[i] = slice_str(alpn);
    match->sni = names[i];
    match->n_sni = sni != NULL;
    match->alpn = &protocols[i];
    match->n_alpn = alpn != NULL;
    match->sources = &sources[i];
    match->n_sources = source != NULL;
    if (source)
        assert_true(ip_prefix_parse(slice_str(source), &sources[i]));
}

static void expect(const char *rule, struct slice name, struct slice alpn)
{
    const struct sni_table *table = sni_compile(&listener, &arena);
    const struct client_hello hello = {.server_name = name, .alpn = alpn};
    struct ip_addr client;
    assert_true(ip_parse(SLICE("192.0.2.1"), &client));
    const struct config_rule *found = sni_match(table, &hello, &client);
    if (!rule)
        assert_null(found);
    else if (!found || !slice_eq(found->name, slice_str(rule)))
        fail_msg("%.*s: %.*s, not %s", SLICE_ARG(name), found ? (int)found->name.len : 4,
                 found ? found->name.ptr : "none", rule);
}

static void an_exact_name_goes_before_wildcards_and_those_before_any(void **state)
{
    add("any", NULL, NULL, NULL);
    add("short", "*.example", NULL, NULL);
    add("long", "*.b.example", NULL, NULL);
    add("exact", "a.b.example", NULL, NULL);
    expect("exact", SLICE("a.b.example"), (struct slice){0});
    expect("long", SLICE("x.b.example"), (struct slice){0});
    expect("long", SLICE("y.x.b.example"), (struct slice){0});
    expect("short", SLICE("b.example"), (struct slice){0});
    expect("any", SLICE("example"), (struct slice){0});
    expect("any", (struct slice){0}, (struct slice){0});
}

static void case_and_a_dot_at_the_end_do_not_count(void **state)
{
    add("exact", "a.example", NULL, NULL);
    expect("exact", SLICE("A.EXAMPLE"), (struct slice){0});
    expect("exact", SLICE("a.example."), (struct slice){0});
    expect(NULL, SLICE("a.example.."), (struct slice){0});
}

static void without_a_rule_there_is_none(void **state)
{
    expect(NULL, SLICE("a.example"), (struct slice){0});
    add("exact", "a.example", NULL, NULL);
    expect(NULL, SLICE("b.example"), (struct slice){0});
    expect(NULL, (struct slice){0}, (struct slice){0});
    expect(NULL, SLICE("."), (struct slice){0});
}

static void a_name_is_not_taken_for_a_wildcard(void **state)
{
    add("wild", "*.example", NULL, NULL);
    expect(NULL, SLICE(".example"), (struct slice){0});
    expect(NULL, SLICE("*example"), (struct slice){0});
}

static void more_conditions_go_first_and_fall_back(void **state)
{
    add("plain", "a.example", NULL, NULL);
    add("h2", "a.example", "h2", NULL);
    add("h2 inside", "a.example", "h2", "192.0.2.0/24");
    add("elsewhere", "a.example", "h2", "10.0.0.0/8");
    expect("h2 inside", SLICE("a.example"), SLICE("\x08http/1.1\x02h2"));
    expect("plain", SLICE("a.example"), SLICE("\x08http/1.1"));
    expect("plain", SLICE("a.example"), (struct slice){0});
}

static void a_condition_that_fails_leads_to_the_next_name(void **state)
{
    add("wild", "*.example", NULL, NULL);
    add("h2", "a.example", "h2", NULL);
    expect("wild", SLICE("a.example"), SLICE("\x08http/1.1"));
}

static void a_rule_may_have_several_names(void **state)
{
    add("both", "a.example", NULL, NULL);
    names[0][1] = SLICE("*.b.example");
    rules[0].match.n_sni = 2;
    expect("both", SLICE("a.example"), (struct slice){0});
    expect("both", SLICE("x.b.example"), (struct slice){0});
}

static void the_first_of_equal_rules_is_taken(void **state)
{
    add("first", "a.example", NULL, NULL);
    add("second", "a.example", NULL, NULL);
    expect("first", SLICE("a.example"), (struct slice){0});
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(an_exact_name_goes_before_wildcards_and_those_before_any),
        TEST(case_and_a_dot_at_the_end_do_not_count),
        TEST(without_a_rule_there_is_none),
        TEST(a_name_is_not_taken_for_a_wildcard),
        TEST(more_conditions_go_first_and_fall_back),
        TEST(a_condition_that_fails_leads_to_the_next_name),
        TEST(a_rule_may_have_several_names),
        TEST(the_first_of_equal_rules_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
