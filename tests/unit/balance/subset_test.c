/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/subset.h"

#include "fixture.h"

/* Subsets of a whole fleet: proxies "l7-P", backends "10.0.X.Y:80". */
struct fleet {
    struct arena arena;
    struct slice *proxies, *backends;
    uint32_t n_proxies, n_backends, words;
    uint64_t *members; /* a bitmap of `words` for each proxy */
};

static void fleet_init(struct fleet *f, uint32_t n_proxies, uint32_t n_backends)
{
    *f = (struct fleet){.n_proxies = n_proxies, .n_backends = n_backends, .words = (n_backends + 63) / 64};
    arena_init(&f->arena);
    f->proxies = arena_array(&f->arena, struct slice, n_proxies);
    f->backends = arena_array(&f->arena, struct slice, n_backends);
    f->members = arena_array(&f->arena, uint64_t, (size_t)n_proxies * f->words);
    for (uint32_t p = 0; p < n_proxies; p++)
        f->proxies[p] = slice_str(arena_printf(&f->arena, "l7-%u", p));
    for (uint32_t b = 0; b < n_backends; b++)
        f->backends[b] = slice_str(arena_printf(&f->arena, "10.0.%u.%u:80", b / 250, b % 250));
}

static void fleet_choose(struct fleet *f, uint32_t size)
{
    for (uint32_t p = 0; p < f->n_proxies; p++)
        subset_choose(f->proxies, f->n_proxies, p, f->backends, f->n_backends, size,
                      &f->members[(size_t)p * f->words]);
}

static bool uses(const struct fleet *f, uint32_t p, uint32_t b)
{
    return balance_is_eligible(&f->members[(size_t)p * f->words], b);
}

/* Pairs of the first n proxies and backends that are in `after` but not in `before`. */
static uint32_t new_pairs(const struct fleet *before, const struct fleet *after, uint32_t n_proxies,
                          uint32_t n_backends)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < n_proxies; p++)
        for (uint32_t b = 0; b < n_backends; b++)
            count += uses(after, p, b) && !uses(before, p, b);
    return count;
}

static void assert_even(uint32_t n_proxies, uint32_t n_backends, uint32_t size)
{
    struct fleet f;
    fleet_init(&f, n_proxies, n_backends);
    fleet_choose(&f, size);
    for (uint32_t p = 0; p < n_proxies; p++) {
        uint32_t has = 0;
        for (uint32_t b = 0; b < n_backends; b++)
            has += uses(&f, p, b);
        assert_int_equal(has, size);
    }
    for (uint32_t b = 0; b < n_backends; b++) {
        uint32_t used = 0;
        for (uint32_t p = 0; p < n_proxies; p++)
            used += uses(&f, p, b);
        assert_in_range(used, n_proxies * size / n_backends,
                        (n_proxies * size + n_backends - 1) / n_backends);
    }
    arena_fini(&f.arena);
}

static void each_proxy_has_its_number_and_each_backend_its_share_B6(void **state)
{
    assert_even(20, 200, 20);
    assert_even(97, 500, 30);
    assert_even(60, 300, 100);
    assert_even(1, 50, 20);
    for (uint32_t n_proxies = 1; n_proxies <= 12; n_proxies++)
        for (uint32_t n_backends = 1; n_backends <= 14; n_backends++)
            for (uint32_t size = 1; size <= n_backends; size++)
                assert_even(n_proxies, n_backends, size);
}

static void a_small_pool_is_used_whole(void **state)
{
    struct fleet f;
    fleet_init(&f, 3, 15);
    fleet_choose(&f, 20);
    for (uint32_t p = 0; p < 3; p++)
        assert_int_equal(f.members[p], (1u << 15) - 1);
    arena_fini(&f.arena);
}

static void nothing_of_nothing_is_nothing(void **state)
{
    struct fleet f;
    fleet_init(&f, 2, 64);
    memset(f.members, 0xff, 2 * sizeof(uint64_t));
    fleet_choose(&f, 0);
    assert_true(f.members[0] == 0 && f.members[1] == 0);
    subset_choose(f.proxies, 2, 0, NULL, 0, 20, f.members);
    arena_fini(&f.arena);
}

static void the_order_of_names_does_not_matter_B6(void **state)
{
    struct fleet f, g;
    fleet_init(&f, 10, 99);
    fleet_init(&g, 10, 99);
    for (uint32_t b = 0; b < 99; b++)
        g.backends[b * 40 % 99] = f.backends[b];
    for (uint32_t p = 0; p < 10; p++)
        g.proxies[p * 3 % 10] = f.proxies[p];
    fleet_choose(&f, 20);
    fleet_choose(&g, 20);
    for (uint32_t p = 0; p < 10; p++)
        for (uint32_t b = 0; b < 99; b++)
            assert_int_equal(uses(&f, p, b), uses(&g, p * 3 % 10, b * 40 % 99));
    arena_fini(&f.arena);
    arena_fini(&g.arena);
}

/* 50 proxies of 300 backends, 25 each: 1250 pairs. */
static void a_backend_that_leaves_or_comes_changes_few_subsets_B6(void **state)
{
    struct fleet with, without;
    fleet_init(&with, 50, 300);
    fleet_init(&without, 50, 299);
    fleet_choose(&with, 25);
    fleet_choose(&without, 25);
    assert_in_range(new_pairs(&with, &without, 50, 299), 4, 25); /* 4 or 5 lost a backend */
    assert_in_range(new_pairs(&without, &with, 50, 299), 0, 25);
    arena_fini(&with.arena);
    arena_fini(&without.arena);
}

static void a_proxy_that_leaves_or_comes_changes_few_subsets_B6(void **state)
{
    struct fleet with, without;
    fleet_init(&with, 50, 300);
    fleet_init(&without, 49, 300);
    fleet_choose(&with, 25);
    fleet_choose(&without, 25);
    assert_in_range(new_pairs(&with, &without, 49, 300), 0, 1225 / 8);
    assert_in_range(new_pairs(&without, &with, 49, 300), 0, 1225 / 8);
    arena_fini(&with.arena);
    arena_fini(&without.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_proxy_has_its_number_and_each_backend_its_share_B6),
        cmocka_unit_test(a_small_pool_is_used_whole),
        cmocka_unit_test(nothing_of_nothing_is_nothing),
        cmocka_unit_test(the_order_of_names_does_not_matter_B6),
        cmocka_unit_test(a_backend_that_leaves_or_comes_changes_few_subsets_B6),
        cmocka_unit_test(a_proxy_that_leaves_or_comes_changes_few_subsets_B6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
