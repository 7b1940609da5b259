/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static char out[8];
static size_t len;
static bool is_canonical;

static bool decode(const char *text, enum base64_alphabet alphabet)
{
    len = 0;
    return base64_decode(slice_str(text), alphabet, out, sizeof(out), &len, &is_canonical);
}

static void texts_of_every_length_are_decoded(void **state)
{
    static const char *const texts[] = {"", "Zg", "Zm8", "Zm9v", "Zm9vYg", "Zm9vYmE", "Zm9vYmFy"};
    for (size_t n = 0; n < sizeof(texts) / sizeof(*texts); n++) {
        assert_true(decode(texts[n], BASE64_STANDARD));
        assert_true(is_canonical);
        assert_int_equal(len, n);
        assert_memory_equal(out, "foobar", n);
    }
}

static void each_alphabet_has_its_own_last_two_digits(void **state)
{
    assert_true(decode("+/8", BASE64_STANDARD) && decode("-_8", BASE64_URL));
    assert_memory_equal(out, "\xfb\xff", 2);
    assert_false(decode("-_8", BASE64_STANDARD));
    assert_false(decode("+/8", BASE64_URL));
}

static void what_is_no_digit_is_refused(void **state)
{
    assert_false(decode("Zg==", BASE64_URL));
    assert_false(decode("Z g", BASE64_URL));
}

static void more_than_there_is_room_for_is_refused(void **state)
{
    assert_true(decode("MTIzNDU2Nzg", BASE64_STANDARD));
    assert_false(decode("MTIzNDU2Nzg5", BASE64_STANDARD));
}

static void a_second_text_for_the_same_bytes_is_told(void **state)
{
    assert_true(decode("Zh", BASE64_STANDARD));
    assert_false(is_canonical);
    assert_true(decode("Zm9vY", BASE64_STANDARD));
    assert_false(is_canonical);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_of_every_length_are_decoded),
        cmocka_unit_test(each_alphabet_has_its_own_last_two_digits),
        cmocka_unit_test(what_is_no_digit_is_refused),
        cmocka_unit_test(more_than_there_is_room_for_is_refused),
        cmocka_unit_test(a_second_text_for_the_same_bytes_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
