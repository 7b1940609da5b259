/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/outbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

static void expect_next(struct outbox *outbox, const char *key, const char *value,
                        struct outbox_entry **entry)
{
    *entry = outbox_next(outbox, 0);
    assert_non_null(*entry);
    assert_true(slice_eq((*entry)->key, slice_str(key)) && slice_eq((*entry)->value, slice_str(value)));
}

static void writes_leave_oldest_first_and_once(void **state)
{
    struct outbox *outbox = outbox_new(10);
    struct outbox_entry *a, *b;
    outbox_put(outbox, SLICE("a"), SLICE("1"), 100);
    outbox_put(outbox, SLICE("b"), SLICE("2"), 100);
    expect_next(outbox, "a", "1", &a);
    expect_next(outbox, "b", "2", &b);
    assert_null(outbox_next(outbox, 0));
    assert_int_equal(outbox_count(outbox), 2);
    outbox_done(outbox, a, true);
    outbox_done(outbox, b, true);
    assert_int_equal(outbox_count(outbox), 0);
    outbox_free(&outbox);
}

static void what_was_not_stored_is_sent_again_C5(void **state)
{
    struct outbox *outbox = outbox_new(10);
    struct outbox_entry *entry;
    outbox_put(outbox, SLICE("a"), SLICE("1"), 100);
    expect_next(outbox, "a", "1", &entry);
    outbox_done(outbox, entry, false);
    expect_next(outbox, "a", "1", &entry);
    outbox_done(outbox, entry, true);
    outbox_free(&outbox);
}

static void the_last_value_of_a_key_is_the_one_that_is_sent(void **state)
{
    struct outbox *outbox = outbox_new(10);
    struct outbox_entry *entry;
    outbox_put(outbox, SLICE("a"), SLICE("1"), 100);
    outbox_put(outbox, SLICE("a"), SLICE("2"), 100);
    expect_next(outbox, "a", "2", &entry);
    outbox_put(outbox, SLICE("a"), SLICE("3"), 100); /* while the second is on its way */
    outbox_done(outbox, entry, true);
    expect_next(outbox, "a", "3", &entry);
    outbox_done(outbox, entry, true);
    assert_null(outbox_next(outbox, 0));
    outbox_free(&outbox);
}

static void a_deletion_takes_the_place_of_a_value(void **state)
{
    struct outbox *outbox = outbox_new(10);
    outbox_put(outbox, SLICE("a"), SLICE("1"), 100);
    outbox_put(outbox, SLICE("a"), (struct slice){0}, 0);
    struct outbox_entry *entry = outbox_next(outbox, 1000);
    assert_non_null(entry);
    assert_null(entry->value.ptr);
    outbox_free(&outbox);
}

static void what_has_expired_is_not_sent(void **state)
{
    struct outbox *outbox = outbox_new(10);
    outbox_put(outbox, SLICE("a"), SLICE("1"), 100);
    outbox_put(outbox, SLICE("b"), SLICE("2"), 200);
    struct outbox_entry *entry = outbox_next(outbox, 150);
    assert_true(slice_eq(entry->key, SLICE("b")));
    outbox_free(&outbox);
}

static void a_full_outbox_gives_up_the_oldest_and_counts_it(void **state)
{
    struct outbox *outbox = outbox_new(3);
    struct outbox_entry *entry;
    char key[16];
    for (int i = 0; i < 5; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        outbox_put(outbox, slice_str(key), SLICE("v"), 100);
    }
    assert_int_equal(outbox_count(outbox), 3);
    assert_int_equal(outbox_lost(outbox), 2);
    expect_next(outbox, "k2", "v", &entry);
    outbox_free(&outbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_leave_oldest_first_and_once),
        cmocka_unit_test(what_was_not_stored_is_sent_again_C5),
        cmocka_unit_test(the_last_value_of_a_key_is_the_one_that_is_sent),
        cmocka_unit_test(a_deletion_takes_the_place_of_a_value),
        cmocka_unit_test(what_has_expired_is_not_sent),
        cmocka_unit_test(a_full_outbox_gives_up_the_oldest_and_counts_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
