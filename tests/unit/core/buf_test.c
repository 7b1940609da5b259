/* SPDX-License-Identifier: Apache-2.0 */
#include "core/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void the_last_given_back_is_lent_next(void **state)
{
    struct buf_pool pool;
    buf_pool_init(&pool);
    struct buf *a = buf_try_take(&pool, 10), *b = buf_try_take(&pool, 10), *was = b;
    buf_give(&pool, &b);
    assert_null(b);
    assert_ptr_equal(buf_try_take(&pool, BUF_SMALLEST), was);
    buf_give(&pool, &was);
    buf_give(&pool, &a);
    assert_int_equal(pool.n_lent, 0);
    buf_pool_fini(&pool);
}

static void appending_grows_and_keeps_what_was_there(void **state)
{
    struct buf_pool pool;
    struct buf *buf = NULL;
    buf_pool_init(&pool);
    for (int i = 0; i < 3000; i++) {
        char four[4] = {(char)i, (char)(i >> 8), 1, 2};
        assert_true(buf_append(&pool, &buf, slice_of(four, 4)));
    }
    assert_int_equal(buf_len(buf), 12000);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal((unsigned char)buf->data[buf->start + 4 * (uint32_t)i], i & 255);
        assert_int_equal((unsigned char)buf->data[buf->start + 4 * (uint32_t)i + 1], i >> 8);
    }
    buf_give(&pool, &buf);
    assert_int_equal(pool.n_lent, 0);
    buf_pool_fini(&pool);
}

static void rejects_more_than_the_largest_class_and_keeps_the_buffer(void **state)
{
    struct buf_pool pool;
    struct buf *buf = NULL;
    static char big[BUF_LARGEST];
    buf_pool_init(&pool);
    assert_null(buf_try_take(&pool, BUF_LARGEST + 1));
    assert_true(buf_append(&pool, &buf, SLICE("abc")));
    assert_false(buf_append(&pool, &buf, slice_of(big, sizeof(big))));
    assert_int_equal(buf_len(buf), 3);
    assert_memory_equal(buf->data + buf->start, "abc", 3);
    assert_int_equal(pool.denied, 2);
    buf_give(&pool, &buf);
    buf_pool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_given_back_is_lent_next),
        cmocka_unit_test(appending_grows_and_keeps_what_was_there),
        cmocka_unit_test(rejects_more_than_the_largest_class_and_keeps_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
