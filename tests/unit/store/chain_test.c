/* SPDX-License-Identifier: Apache-2.0 */
#include "store/chain.h"

#include "printed_of.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* A document of `n` groups, of which one is `word`. */
static struct printed *document(int n, const char *word)
{
    struct text text;
    text_init(&text);
    text_printf(&text, "{\"target_groups\":[");
    for (int i = 0; i < n; i++)
        text_printf(&text, "%s{\"name\":\"group-number-%d\",\"text\":\"%s\"}", i ? "," : "", i,
                    i == n / 2 ? word : "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    text_printf(&text, "]}");
    struct printed *printed = printed_of(text_slice(&text));
    text_fini(&text);
    return printed;
}

static void follow(struct chain *chain, uint64_t version, struct printed *printed)
{
    struct chain_row row;
    chain_plan(chain, version - 1, printed, &row);
    chain_follow(chain, version, "token", printed, &row);
    printed_unref(&printed);
}

static void a_small_document_is_kept_whole(void **state)
{
    struct chain chain = {0};
    follow(&chain, 1, document(10, "a"));
    follow(&chain, 2, document(10, "b"));
    assert_int_equal(chain.rows, 0);
    chain_fini(&chain);
}

static void of_a_large_one_the_middle_is_kept_behind_a_whole_one(void **state)
{
    struct chain chain = {0};
    struct chain_row row;
    struct printed *next = document(2000, "bb");
    follow(&chain, 1, document(2000, "a"));
    assert_int_equal(chain.rows, 0);
    chain_plan(&chain, 1, next, &row);
    assert_false(row.is_whole);
    assert_int_equal(row.change.middle_bytes, strlen(",{\"name\":\"group-number-1000\",\"text\":\"bb\"}"));

    struct text text, middle;
    text_init(&text);
    text_init(&middle);
    printed_write(chain.document, &text);
    printed_write_middle(next, &row.change, &middle);
    assert_true(chain_read(&text, row.change.head, row.change.tail, text_slice(&middle)));
    assert_true(printed_is(next, text_slice(&text)));
    text_fini(&text);
    text_fini(&middle);
    printed_unref(&next);
    chain_fini(&chain);
}

static void nothing_is_built_on_a_version_that_is_not_ours(void **state)
{
    struct chain chain = {0};
    struct chain_row row;
    struct printed *next = document(2000, "b");
    follow(&chain, 1, document(2000, "a"));
    chain_plan(&chain, 2, next, &row);
    assert_true(row.is_whole);
    chain_fini(&chain);
    chain_plan(&chain, 1, next, &row);
    assert_true(row.is_whole);
    printed_unref(&next);
}

static void a_chain_begins_anew_after_so_many_rows(void **state)
{
    struct chain chain = {0};
    for (uint64_t version = 1; version <= CHAIN_ROWS_MAX + 1; version++) {
        follow(&chain, version, document(2000, version & 1 ? "a" : "b"));
        assert_int_equal(chain.rows, version - 1);
    }
    follow(&chain, CHAIN_ROWS_MAX + 2, document(2000, "c"));
    assert_int_equal(chain.rows, 0);
    chain_fini(&chain);
}

static void a_chain_begins_anew_when_much_has_changed(void **state)
{
    struct chain chain = {0};
    follow(&chain, 1, document(2000, "a"));
    follow(&chain, 2, document(1500, "a"));
    assert_int_equal(chain.rows, 0);
    chain_fini(&chain);
}

static void rejects_a_row_that_does_not_fit_its_predecessor(void **state)
{
    struct text text;
    text_init(&text);
    text_add(&text, SLICE("abcdef"));
    assert_false(chain_read(&text, 7, 0, SLICE("x")));
    assert_false(chain_read(&text, 4, 3, SLICE("x")));
    assert_false(chain_read(&text, 3, UINT64_MAX, SLICE("x")));
    assert_string_equal(text.data, "abcdef");
    assert_true(chain_read(&text, 2, 1, SLICE("0123456789")));
    assert_string_equal(text.data, "ab0123456789f");
    assert_true(chain_read(&text, 1, 1, SLICE("")));
    assert_string_equal(text.data, "af");
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_document_is_kept_whole),
        cmocka_unit_test(of_a_large_one_the_middle_is_kept_behind_a_whole_one),
        cmocka_unit_test(nothing_is_built_on_a_version_that_is_not_ours),
        cmocka_unit_test(a_chain_begins_anew_after_so_many_rows),
        cmocka_unit_test(a_chain_begins_anew_when_much_has_changed),
        cmocka_unit_test(rejects_a_row_that_does_not_fit_its_predecessor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
