/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdio.h>

/* Counts 100,000 keys "/products/sku-N" hashed as the proxy would hash a path. */
static void count_products(struct fixture *f, uint32_t *counts)
{
    memset(counts, 0, sizeof(counts[0]) * f->pool.n);
    for (uint32_t k = 0; k < 100000; k++) {
        char key[32];
        int len = snprintf(key, sizeof(key), "/products/sku-%u", k);
        f->how.hash = iso_hash64(slice_of(key, (size_t)len), 0);
        counts[fixture_pick(f)]++;
    }
}

static void ten_servers_get_within_15_percent_of_their_share_C_108(void **state)
{
    static const char *const forms[] = {"127.0.0.1:%u", "10.1.4.%u:8080", "app-%u.internal:80",
                                        "unix:/run/%u.sock"};
    for (size_t form = 0; form < iso_countof(forms); form++) {
        for (uint32_t first = 1; first <= 200; first += 10) {
            struct fixture f;
            uint32_t counts[10];
            fixture_init(&f, BALANCE_CONSISTENT_HASH, 10, 1);
            for (uint32_t i = 0; i < 10; i++) {
                char name[32];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                snprintf(name, sizeof(name), forms[form], first + i);
#pragma GCC diagnostic pop
                f.names[i] = slice_str(arena_str(&f.arena, name));
            }
            fixture_build(&f);
            count_products(&f, counts);
            for (uint32_t i = 0; i < 10; i++)
                assert_within(counts[i], 10000, 0.15);
            fixture_close(&f);
        }
    }
}

static void weights_one_to_two_are_kept_within_10_percent_C_108(void **state)
{
    struct fixture f;
    uint32_t counts[10];
    fixture_open(&f, BALANCE_CONSISTENT_HASH, 10, (uint32_t[]){1, 2, 1, 2, 1, 2, 1, 2, 1, 2});
    count_products(&f, counts);
    double light = 0, heavy = 0;
    for (uint32_t i = 0; i < 10; i++)
        *(i % 2 ? &heavy : &light) += counts[i];
    assert_within(heavy / light, 2, 0.1);
    fixture_close(&f);
}

/* Thousands of points per target would make the table large without making it better. */
static void large_weights_take_no_more_memory_than_small_ones(void **state)
{
    size_t bytes[2];
    for (int k = 0; k < 2; k++) {
        struct fixture f;
        fixture_init(&f, BALANCE_CONSISTENT_HASH, 500, k ? 10000 : 1);
        size_t before = f.arena.total_bytes;
        fixture_build(&f);
        bytes[k] = f.arena.total_bytes - before;
        fixture_close(&f);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_in_range(bytes[0], 1 << 19, 1 << 21);
}

static void memory_is_bounded_and_everybody_has_a_point(void **state)
{
    struct fixture f;
    static uint32_t counts[6000];
    fixture_init(&f, BALANCE_CONSISTENT_HASH, 6000, 65535);
    for (uint32_t i = 0; i < 3000; i++)
        f.weights[i] = 6000;
    size_t before = f.arena.total_bytes;
    fixture_build(&f);
    assert_in_range(f.arena.total_bytes - before, 1, 13 << 20);
    fixture_count(&f, 3000000, counts);
    for (uint32_t i = 0; i < 6000; i++)
        assert_true(counts[i] > 0);
    fixture_close(&f);
}

static void more_points_make_it_more_even(void **state)
{
    struct fixture f;
    uint32_t counts[10];
    fixture_init(&f, BALANCE_CONSISTENT_HASH, 10, 1);
    f.pool.ring_points = 10000;
    fixture_build(&f);
    fixture_count(&f, 1000000, counts);
    for (uint32_t i = 0; i < 10; i++)
        assert_within(counts[i], 100000, 0.02);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_servers_get_within_15_percent_of_their_share_C_108),
        cmocka_unit_test(weights_one_to_two_are_kept_within_10_percent_C_108),
        cmocka_unit_test(large_weights_take_no_more_memory_than_small_ones),
        cmocka_unit_test(memory_is_bounded_and_everybody_has_a_point),
        cmocka_unit_test(more_points_make_it_more_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
