/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/maglev.h"

#include "fixture.h"

#include <stdlib.h>

enum { M = MAGLEV_SIZE_DEFAULT, NOBODY = 0xffffffffu };

/* A set of targets and its table. */
struct built {
    struct arena arena;
    struct slice *names;
    uint32_t *weights, *slots, *counts;
    uint32_t n, m;
};

static void built_init(struct built *b, uint32_t n, uint32_t m, uint32_t weight)
{
    *b = (struct built){.n = n, .m = m};
    arena_init(&b->arena);
    b->names = arena_array(&b->arena, struct slice, n);
    b->weights = arena_array(&b->arena, uint32_t, n);
    b->counts = arena_array(&b->arena, uint32_t, n);
    b->slots = arena_array(&b->arena, uint32_t, m);
    for (uint32_t i = 0; i < n; i++) {
        b->names[i] = slice_str(arena_printf(&b->arena, "10.0.%u.%u", i / 250, i % 250));
        b->weights[i] = weight;
    }
}

static void built_fill(struct built *b)
{
    assert_int_equal(maglev_build(b->names, b->weights, b->n, b->m, b->slots), ISO_OK);
    memset(b->counts, 0, sizeof(b->counts[0]) * b->n);
    for (uint32_t s = 0; s < b->m; s++)
        if (b->slots[s] != NOBODY)
            b->counts[b->slots[s]]++;
}

static void built_close(struct built *b)
{
    arena_fini(&b->arena);
}

/* Slots whose owner changed although neither the old nor the new owner is `except`, in percent. */
static double moved_needlessly(const struct built *a, const struct built *b, uint32_t except)
{
    uint32_t moved = 0;
    for (uint32_t s = 0; s < a->m; s++)
        moved += a->slots[s] != b->slots[s] && a->slots[s] != except && b->slots[s] != except;
    return moved * 100.0 / a->m;
}

static void each_owns_floor_or_ceil_of_its_share_I2(void **state)
{
    static const uint32_t counts[] = {1, 2, 3, 16, 100, 256, 1000};
    for (size_t c = 0; c < iso_countof(counts); c++) {
        struct built b;
        built_init(&b, counts[c], M, 1);
        built_fill(&b);
        for (uint32_t i = 0; i < b.n; i++)
            assert_in_range(b.counts[i], M / b.n, (M + b.n - 1) / b.n);
        built_close(&b);
    }
}

static void weights_are_kept_to_a_slot_I2(void **state)
{
    struct built b;
    built_init(&b, 100, M, 1);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < b.n; i++)
        sum += b.weights[i] = 1 + i % 10 * 25;
    built_fill(&b);
    for (uint32_t i = 0; i < b.n; i++) {
        double share = (double)b.weights[i] * M / (double)sum;
        assert_true(b.counts[i] > share - 1.5 && b.counts[i] < share + 1.5);
    }
    built_close(&b);
}

static void shares_are_within_a_slot_B5(void **state)
{
    static const struct {
        uint32_t n, first_weight, other_weights;
    } sets[] = {{2, 1, 3}, {2, 1, 10}, {16, 1, 10}, {1000, 1, 1}, {3, 100, 300}};
    for (size_t i = 0; i < iso_countof(sets); i++) {
        struct built b;
        built_init(&b, sets[i].n, M, sets[i].other_weights);
        b.weights[0] = sets[i].first_weight;
        built_fill(&b);
        double sum = sets[i].first_weight + (double)(sets[i].n - 1) * sets[i].other_weights;
        for (uint32_t t = 0; t < b.n; t++) {
            double share = b.weights[t] * (double)M / sum;
            assert_true(b.counts[t] > share - 1 && b.counts[t] < share + 1);
        }
        built_close(&b);
    }
}

static void everybody_with_weight_owns_a_slot_I2(void **state)
{
    struct built b;
    built_init(&b, 60000, M, 1);
    b.weights[17] = BALANCE_WEIGHT_MAX;
    b.weights[18] = 0;
    for (uint32_t i = 100; i < 5000; i++)
        b.weights[i] = 3;
    built_fill(&b);
    for (uint32_t i = 0; i < b.n; i++)
        assert_true(i == 18 ? b.counts[i] == 0 : b.counts[i] > 0);
    built_close(&b);
}

static void as_many_targets_as_slots_own_one_each(void **state)
{
    struct built b;
    built_init(&b, 251, 251, 1);
    b.weights[0] = 100;
    built_fill(&b);
    for (uint32_t i = 0; i < b.n; i++)
        assert_int_equal(b.counts[i], 1);
    built_close(&b);
}

static void rejects_more_targets_than_slots_C_112(void **state)
{
    struct built b;
    built_init(&b, 70000, M, 1);
    assert_int_equal(maglev_build(b.names, b.weights, b.n, M, b.slots), ISO_ERR_INVALID);
    memset(b.weights, 0, sizeof(b.weights[0]) * 10000); /* who has no weight needs no slot */
    built_fill(&b);
    built_close(&b);
}

static void rejects_sizes_that_are_no_prime(void **state)
{
    static const uint32_t bad[] = {0, 1, 4, 65536, 65535, 655371, 251 * 257, MAGLEV_SIZE_MAX + 43};
    struct built b;
    built_init(&b, 1, M, 1);
    for (size_t i = 0; i < iso_countof(bad); i++)
        assert_int_equal(maglev_build(b.names, b.weights, 1, bad[i], b.slots), ISO_ERR_INVALID);
    assert_true(maglev_size_is_valid(MAGLEV_SIZE_DEFAULT) && maglev_size_is_valid(MAGLEV_SIZE_LARGE));
    assert_true(maglev_size_is_valid(2) && maglev_size_is_valid(3));
    built_close(&b);
}

static void nobody_owns_a_table_without_targets(void **state)
{
    struct built b;
    built_init(&b, 3, M, 0);
    built_fill(&b);
    for (uint32_t s = 0; s < M; s++)
        assert_int_equal(b.slots[s], NOBODY);
    assert_int_equal(maglev_build(NULL, NULL, 0, M, b.slots), ISO_OK);
    assert_int_equal(b.slots[0], NOBODY);
    built_close(&b);
}

/* The permutations as the paper writes them, in plain arithmetic. */
static void plain_maglev(const struct built *b, const uint32_t *order, uint32_t *slots)
{
    uint32_t *next = calloc(b->n, sizeof(uint32_t)), left = b->m;
    memset(slots, 0xff, sizeof(slots[0]) * b->m);
    while (left > 0) {
        for (uint32_t rank = 0; rank < b->n && left > 0; rank++) {
            uint32_t i = order[rank];
            uint64_t offset = iso_hash64(b->names[i], 0x6f666673) % b->m;
            uint64_t skip = iso_hash64(b->names[i], 0x736b6970) % (b->m - 1) + 1;
            uint64_t slot;
            do
                slot = (offset + skip * next[i]++) % b->m;
            while (slots[slot] != NOBODY);
            slots[slot] = i;
            left--;
        }
    }
    free(next);
}

static void the_table_is_the_papers_I2(void **state)
{
    static const uint32_t by_name[] = {0, 1, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 2, 3, 4, 5, 6, 7, 8, 9};
    static const uint32_t sizes[] = {23, 29, 101, 1009, M, MAGLEV_SIZE_LARGE};
    for (size_t i = 0; i < iso_countof(sizes); i++) {
        struct built b;
        uint32_t *plain = malloc(sizeof(uint32_t) * sizes[i]);
        built_init(&b, 20, sizes[i], 7);
        built_fill(&b);
        plain_maglev(&b, by_name, plain);
        assert_memory_equal(b.slots, plain, sizeof(uint32_t) * sizes[i]);
        built_close(&b);
        free(plain);
    }
}

static void order_of_the_input_does_not_matter_I2(void **state)
{
    struct built a, b;
    built_init(&a, 300, M, 1);
    built_init(&b, 300, M, 1);
    for (uint32_t i = 0; i < 300; i++) {
        a.weights[i] = 1 + i % 7;
        b.weights[i * 113 % 300] = a.weights[i];
        b.names[i * 113 % 300] = a.names[i];
    }
    built_fill(&a);
    built_fill(&b);
    for (uint32_t s = 0; s < M; s++)
        assert_int_equal(a.slots[s] * 113 % 300, b.slots[s]);
    built_close(&a);
    built_close(&b);
}

static void unchanged_input_gives_an_identical_table_I9(void **state)
{
    for (uint32_t weighted = 0; weighted < 2; weighted++) {
        struct built a, b;
        built_init(&a, 100, M, 5);
        built_init(&b, 100, M, 5);
        a.weights[3] = b.weights[3] = weighted ? 11 : 5;
        built_fill(&a);
        built_fill(&b);
        assert_memory_equal(a.slots, b.slots, sizeof(a.slots[0]) * M);
        built_close(&a);
        built_close(&b);
    }
}

static void disruption_and_share_C_112(void **state)
{
    struct built before, after;
    built_init(&before, 100, M, 10);
    built_init(&after, 100, M, 10);
    built_fill(&before);
    for (uint32_t i = 0; i < 100; i++)
        assert_within(before.counts[i], M / 100.0, 0.01);

    after.weights[42] = 0; /* one leaves; read backwards, one comes */
    built_fill(&after);
    assert_true(moved_needlessly(&before, &after, 42) < 1);

    after.weights[42] = 11; /* one gains a little: it must get 0.1% of all, 1% of its own */
    built_fill(&after);
    assert_true(moved_needlessly(&before, &after, 42) < 2);
    assert_within(after.counts[42], M * 11.0 / 1001, 0.01);
    built_close(&before);
    built_close(&after);
}

static void rejects_a_method_pool_that_does_not_fit_C_112(void **state)
{
    struct fixture f;
    fixture_init(&f, BALANCE_MAGLEV, 252, 1);
    f.pool.maglev_size = 251;
    assert_int_equal(fixture_try_build(&f), ISO_ERR_INVALID);
    f.pool.maglev_size = 256;
    assert_int_equal(fixture_try_build(&f), ISO_ERR_INVALID);
    f.pool.maglev_size = MAGLEV_SIZE_LARGE;
    assert_int_equal(fixture_try_build(&f), ISO_OK);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_owns_floor_or_ceil_of_its_share_I2),
        cmocka_unit_test(weights_are_kept_to_a_slot_I2),
        cmocka_unit_test(shares_are_within_a_slot_B5),
        cmocka_unit_test(everybody_with_weight_owns_a_slot_I2),
        cmocka_unit_test(as_many_targets_as_slots_own_one_each),
        cmocka_unit_test(rejects_more_targets_than_slots_C_112),
        cmocka_unit_test(rejects_sizes_that_are_no_prime),
        cmocka_unit_test(nobody_owns_a_table_without_targets),
        cmocka_unit_test(the_table_is_the_papers_I2),
        cmocka_unit_test(order_of_the_input_does_not_matter_I2),
        cmocka_unit_test(unchanged_input_gives_an_identical_table_I9),
        cmocka_unit_test(disruption_and_share_C_112),
        cmocka_unit_test(rejects_a_method_pool_that_does_not_fit_C_112),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
