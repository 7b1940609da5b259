/* SPDX-License-Identifier: Apache-2.0 */
#include "config/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static unsigned distance(const char *a, const char *b)
{
    return suggest_distance(slice_str(a), slice_str(b));
}

static void typing_slips_are_near(void **state)
{
    assert_int_equal(distance("blance", "balance"), 1);
    assert_int_equal(distance("tpye", "type"), 1);
    assert_int_equal(distance("algoritm", "algorithm"), 1);
    assert_int_equal(distance("tagrets", "targets"), 1);
    assert_int_equal(distance("healthcheck", "health_check"), 0);
    assert_int_equal(distance("http", "HTTP"), 0);
    assert_int_equal(distance("round-robin", "round_robin"), 0);
}

static void beginnings_are_near(void **state)
{
    assert_int_equal(distance("least_conn", "least_connections"), 1);
    assert_int_equal(distance("timeout", "timeout_ms"), 1);
    assert_int_equal(distance("interval", "interval_s"), 1);
}

static void other_words_are_far(void **state)
{
    assert_int_equal(distance("port", "host"), SUGGEST_FAR);
    assert_int_equal(distance("ip", "via"), SUGGEST_FAR);
    assert_int_equal(distance("listen", "limits"), SUGGEST_FAR);
    assert_int_equal(distance("", "port"), SUGGEST_FAR);
    assert_int_equal(distance("0123456789012345678901234567890123456789x", "x"), SUGGEST_FAR);
}

static void the_nearest_is_suggested(void **state)
{
    struct suggestion best = {0};
    suggest_offer(&best, SLICE("pathprefix"), "path");
    suggest_offer(&best, SLICE("pathprefix"), "path_prefix");
    suggest_offer(&best, SLICE("pathprefix"), "path_regex");
    assert_string_equal(best.name, "path_prefix");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(typing_slips_are_near),
        cmocka_unit_test(beginnings_are_near),
        cmocka_unit_test(other_words_are_far),
        cmocka_unit_test(the_nearest_is_suggested),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
