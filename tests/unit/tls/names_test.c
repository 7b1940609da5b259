/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct tls_names made(void)
{
    struct tls_names names = {0};
    tls_names_add(&names, SLICE("b.example"), 1);
    tls_names_add(&names, SLICE("*.B.example"), 2);
    tls_names_add(&names, SLICE("a.example"), 3);
    tls_names_add(&names, SLICE("a.example"), 0);
    tls_names_sort(&names);
    return names;
}

static int find(struct slice asked)
{
    struct tls_names names = made();
    uint32_t index = 99;
    int found = tls_names_find(&names, asked, &index) ? (int)index : -1;
    tls_names_fini(&names);
    return found;
}

static void names_are_found_in_any_case_and_with_a_final_dot_C_075(void **state)
{
    assert_int_equal(find(SLICE("b.example")), 1);
    assert_int_equal(find(SLICE("B.eXample.")), 1);
}

static void a_wildcard_stands_for_one_label_C_075(void **state)
{
    assert_int_equal(find(SLICE("x.b.example")), 2);
    assert_int_equal(find(SLICE("y.x.b.example")), -1);
    assert_int_equal(find(SLICE(".b.example")), -1);
}

static void of_equal_names_the_first_of_the_list_counts(void **state)
{
    assert_int_equal(find(SLICE("a.example")), 0);
}

static void rejects_what_is_no_name(void **state)
{
    static char longest[300];
    memset(longest, 'a', sizeof(longest));
    assert_int_equal(find(SLICE("")), -1);
    assert_int_equal(find(SLICE(".")), -1);
    assert_int_equal(find(SLICE("c.example")), -1);
    assert_int_equal(find(slice_of(longest, 254)), -1);
    assert_int_equal(find(slice_of(longest, 255)), -1);
}

static void an_empty_set_knows_nothing(void **state)
{
    struct tls_names names = {0};
    uint32_t index;
    tls_names_sort(&names);
    assert_false(tls_names_find(&names, SLICE("a.example"), &index));
    tls_names_fini(&names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_in_any_case_and_with_a_final_dot_C_075),
        cmocka_unit_test(a_wildcard_stands_for_one_label_C_075),
        cmocka_unit_test(of_equal_names_the_first_of_the_list_counts),
        cmocka_unit_test(rejects_what_is_no_name),
        cmocka_unit_test(an_empty_set_knows_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
