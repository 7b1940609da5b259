/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/memory_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static struct http2_memory memory;
static nghttp2_mem mem;

static void *take(size_t size)
{
    return mem.malloc(size, mem.mem_user_data);
}

static void give(void *data)
{
    mem.free(data, mem.mem_user_data);
}

static void what_was_freed_last_comes_first(void **state)
{
    void *a = take(100), *b = take(100);
    give(a);
    give(b);
    assert_ptr_equal(take(65), b);
    assert_ptr_equal(take(128), a);
    give(a);
    give(b);
    void *other = take(64); /* another class */
    assert_ptr_not_equal(other, a);
    assert_ptr_not_equal(other, b);
    give(other);
}

static void pieces_are_zeroed_where_that_is_asked_for(void **state)
{
    unsigned char *dirty = take(200);
    memset(dirty, 7, 200);
    give(dirty);
    unsigned char *clean = mem.calloc(20, 10, mem.mem_user_data);
    for (int i = 0; i < 200; i++)
        assert_int_equal(clean[i], 0);
    give(clean);
    assert_null(mem.calloc(SIZE_MAX / 2, 3, mem.mem_user_data));
}

/* From class to class, out of them, further, and back. */
static void a_piece_keeps_its_bytes_when_its_size_changes(void **state)
{
    static const size_t sizes[] = {10, 30, 33, 500, 4096, 5000, 100000, 4000, 20};
    unsigned char *data = mem.realloc(NULL, 10, mem.mem_user_data);
    memset(data, 9, 10);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        data = mem.realloc(data, sizes[i], mem.mem_user_data);
        for (int j = 0; j < 10; j++)
            assert_int_equal(data[j], 9);
        memset(data + 10, (int)i, sizes[i] - 10);
    }
    give(data);
}

static void a_list_keeps_only_so_much(void **state)
{
    static void *pieces[1000];
    for (int i = 0; i < 1000; i++)
        pieces[i] = take(4096);
    for (int i = 0; i < 1000; i++)
        give(pieces[i]);
    assert_int_equal(memory.n_free[HTTP2_MEMORY_CLASSES - 1], 128);
    give(NULL);
}

static int set_up(void **state)
{
    mem = http2_memory_of(&memory);
    return 0;
}

static int tear_down(void **state)
{
    http2_memory_fini(&memory);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_freed_last_comes_first),
        cmocka_unit_test(pieces_are_zeroed_where_that_is_asked_for),
        cmocka_unit_test(a_piece_keeps_its_bytes_when_its_size_changes),
        cmocka_unit_test(a_list_keeps_only_so_much),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
