/* SPDX-License-Identifier: Apache-2.0 */
#include "heads.h"

static void reasons_are_those_of_the_registry(void **state)
{
    assert_string_equal(http_status_reason(200), "OK");
    assert_string_equal(http_status_reason(431), "Request Header Fields Too Large");
    assert_string_equal(http_status_reason(299), "");
    assert_string_equal(http_status_reason(0), "");
}

static void every_refusal_has_a_status_a_word_and_a_text(void **state)
{
    for (unsigned why = HTTP_REJECT_NONE + 1; why < HTTP_REJECT_COUNT; why++) {
        unsigned status = http_reject_status((enum http_reject)why);
        assert_true(status >= 400 && status < 600);
        assert_string_not_equal(http_status_reason(status), "");
        assert_true(strlen(http_reject_word((enum http_reject)why)) > 0);
        assert_true(strlen(http_reject_text((enum http_reject)why)) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_are_those_of_the_registry),
        cmocka_unit_test(every_refusal_has_a_status_a_word_and_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
