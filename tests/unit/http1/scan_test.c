/* SPDX-License-Identifier: Apache-2.0 */
#include "../http/heads.h"

/* The chosen variant says what its scalar twin says, for each byte value at each place of each length. */
static void every_variant_gives_the_same_answer(void **state)
{
    for (size_t len = 0; len <= 130; len++) {
        char *data = malloc(len ? len : 1);
        memset(data, 'a', len);
        assert_int_equal(h1_scan_value(data, len), len);
        for (size_t at = 0; at < len; at++) {
            for (int c = 0; c < 256; c++) {
                data[at] = (char)c;
                if (h1_scan_value(data, len) != h1_scan_value_scalar(data, len))
                    fail_msg("byte %d at %zu of %zu", c, at, len);
            }
            data[at] = 'a';
        }
        free(data);
    }
}

static void the_first_of_several_is_found(void **state)
{
    char data[100];
    memset(data, 'a', sizeof(data));
    data[90] = '\r';
    for (size_t at = 90; at-- > 0;) {
        data[at] = '\n';
        assert_int_equal(h1_scan_value(data, sizeof(data)), at);
    }
}

static void tabs_and_high_bytes_are_passed_over(void **state)
{
    static const char text[] = "\t \x80\xff~!\t\x7f";
    assert_int_equal(h1_scan_value(text, sizeof(text) - 1), 7);
    assert_int_equal(h1_scan_value_scalar(text, sizeof(text) - 1), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variant_gives_the_same_answer),
        cmocka_unit_test(the_first_of_several_is_found),
        cmocka_unit_test(tabs_and_high_bytes_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
