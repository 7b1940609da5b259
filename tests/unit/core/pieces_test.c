/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pieces.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <malloc.h>
#include <string.h>

static void what_was_freed_last_is_taken_first(void **state)
{
    struct pieces pieces = {0};
    void *a = pieces_take(&pieces, 98), *b = pieces_take(&pieces, 100);
    pieces_give(&pieces, a);
    pieces_give(&pieces, b);
    assert_ptr_equal(pieces_take(&pieces, 89), b);
    assert_ptr_equal(pieces_take(&pieces, 104), a);
    void *larger = pieces_take(&pieces, 105);
    assert_non_null(larger);
    pieces_give(&pieces, larger);
    pieces_give(&pieces, a);
    pieces_give(&pieces, b);
    pieces_fini(&pieces);
}

static void pieces_are_aligned_and_hold_what_was_asked_for(void **state)
{
    struct pieces pieces = {0};
    for (size_t size = 0; size < 100000; size += size < 5000 ? 1 : 331) {
        char *data = pieces_take(&pieces, size);
        assert_int_equal((uintptr_t)data % 16, 0);
        assert_true(malloc_usable_size(data) >= size);
        memset(data, 0x5a, size);
        pieces_give(&pieces, data);
    }
    pieces_fini(&pieces);
}

static void content_survives_growing_and_shrinking(void **state)
{
    struct pieces pieces = {0};
    char *data = NULL;
    static const size_t sizes[] = {10, 40, 5000, 90000, 120000, 40000, 6000, 300, 2};
    size_t kept = 0;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        data = pieces_resize(&pieces, data, sizes[i]);
        size_t check = kept < sizes[i] ? kept : sizes[i];
        for (size_t k = 0; k < check; k++)
            assert_int_equal(data[k], (char)k);
        for (size_t k = 0; k < sizes[i]; k++)
            data[k] = (char)k;
        kept = sizes[i];
    }
    pieces_give(&pieces, data);
    pieces_fini(&pieces);
}

static void a_list_keeps_no_more_than_its_share(void **state)
{
    struct pieces pieces = {0};
    enum { MANY = 200, BYTES = 32 * 1024 - 8 };
    void *all[MANY];
    for (int i = 0; i < MANY; i++)
        all[i] = pieces_take(&pieces, BYTES);
    for (int i = 0; i < MANY; i++)
        pieces_give(&pieces, all[i]);
    assert_int_equal(pieces.n_free[PIECES_CLASSES - 1], 256 / 32);
    pieces_fini(&pieces);
}

static void little_is_left_over_in_a_piece(void **state)
{
    for (size_t size = 24; size < 32 * 1024; size += 7) {
        void *data = pieces_take(NULL, size);
        assert_true(malloc_usable_size(data) <= size + (size < 56 ? 16 : size / 4 + 16));
        pieces_give(NULL, data);
    }
}

static void without_lists_it_is_malloc(void **state)
{
    struct pieces pieces = {0};
    void *data = pieces_take(NULL, 50);
    pieces_give(&pieces, data); /* of another thread */
    assert_ptr_equal(pieces_take(&pieces, 50), data);
    pieces_give(NULL, data);
    pieces_give(NULL, NULL);
    pieces_fini(&pieces);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_freed_last_is_taken_first),
        cmocka_unit_test(pieces_are_aligned_and_hold_what_was_asked_for),
        cmocka_unit_test(content_survives_growing_and_shrinking),
        cmocka_unit_test(a_list_keeps_no_more_than_its_share),
        cmocka_unit_test(little_is_left_over_in_a_piece),
        cmocka_unit_test(without_lists_it_is_malloc),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
