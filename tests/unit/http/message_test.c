/* SPDX-License-Identifier: Apache-2.0 */
#include "heads.h"

static struct http_message message;

static struct http_message *empty(void)
{
    memset(&message, 0xa5, sizeof(message));
    http_message_init(&message, false);
    return &message;
}

static void emptying_leaves_the_field_array_alone(void **state)
{
    struct http_message *m = empty();
    assert_int_equal(m->n_fields, 0);
    assert_null(m->query.ptr);
    assert_int_equal(m->fields[0].id, 0xa5);
}

static void added_fields_are_found_by_id_and_by_name(void **state)
{
    struct http_message *m = empty();
    assert_true(http_message_add(m, SLICE("X-Forwarded-For"), SLICE("1.2.3.4")));
    assert_true(http_message_add(m, SLICE("X-Mine"), SLICE("a")));
    assert_true(http_message_add(m, SLICE("x-mine"), SLICE("b")));
    is(http_field_value(http_message_find(m, HTTP_FIELD_X_FORWARDED_FOR)), "1.2.3.4");
    is(http_field_value(http_message_find_name(m, SLICE("x-forwarded-for"))), "1.2.3.4");
    is(http_field_value(http_message_find_name(m, SLICE("X-MINE"))), "a");
    assert_null(http_message_find(m, HTTP_FIELD_HOST));
    assert_null(http_message_find_name(m, SLICE("x-min")));
    assert_int_equal(m->fields[0].raw_len, 0);
}

static void dropped_fields_are_not_found(void **state)
{
    struct http_message *m = empty();
    http_message_add(m, SLICE("Date"), SLICE("1"));
    http_message_add(m, SLICE("date"), SLICE("2"));
    http_message_add(m, SLICE("X-Mine"), SLICE("3"));
    http_message_add(m, SLICE("x-mine"), SLICE("4"));
    m->fields[0].flags = HTTP_FIELD_DROP;
    is(http_field_value(http_message_find(m, HTTP_FIELD_DATE)), "2");
    http_message_drop(m, HTTP_FIELD_DATE);
    assert_null(http_message_find(m, HTTP_FIELD_DATE));
    http_message_drop_name(m, SLICE("X-mine"));
    assert_null(http_message_find_name(m, SLICE("x-mine")));
    http_message_add(m, SLICE("Server"), SLICE("5"));
    http_message_drop_name(m, SLICE("server"));
    assert_null(http_message_find(m, HTTP_FIELD_SERVER));
}

static void a_full_message_takes_no_more(void **state)
{
    struct http_message *m = empty();
    for (int i = 0; i < HTTP_FIELDS_MAX; i++)
        assert_true(http_message_add(m, SLICE("a"), SLICE("b")));
    assert_false(http_message_add(m, SLICE("a"), SLICE("b")));
    assert_int_equal(m->n_fields, HTTP_FIELDS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emptying_leaves_the_field_array_alone),
        cmocka_unit_test(added_fields_are_found_by_id_and_by_name),
        cmocka_unit_test(dropped_fields_are_not_found),
        cmocka_unit_test(a_full_message_takes_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
