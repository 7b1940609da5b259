/* SPDX-License-Identifier: Apache-2.0 */
#include "net/dns_ttl.h"

#include "core/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD(questions, answers) "\0\1\x81\x80\0" questions "\0" answers "\0\0\0\0"
#define QUESTION                 "\2_x\4test\0\0\x21\0\1"
#define RECORD(name, ttl)        name "\0\x21\0\1" ttl "\0\2ab"

/* Of a message in memory of its own size, so that a sanitizer sees a read behind it. */
static uint32_t ttl_of(const char *message, size_t len)
{
    unsigned char *copy = malloc(len ? len : 1);
    memcpy(copy, message, len);
    uint32_t ttl = dns_shortest_ttl(copy, len);
    free(copy);
    return ttl;
}

#define TTL_OF(message) ttl_of(message, sizeof(message) - 1)

static void the_shortest_of_the_answers_counts(void **state)
{
    assert_int_equal(TTL_OF(HEAD("\1", "\1") QUESTION RECORD("\xc0\x0c", "\0\0\1\x2c")), 300);
    assert_int_equal(
        TTL_OF(HEAD("\1", "\2") QUESTION RECORD("\xc0\x0c", "\0\0\1\x2c") RECORD("\1a\0", "\0\0\0\5")), 5);
    /* What stands behind the answers is other sections. */
    assert_int_equal(
        TTL_OF(HEAD("\1", "\1") QUESTION RECORD("\xc0\x0c", "\0\0\1\x2c") RECORD("\1a\0", "\0\0\0\1")), 300);
}

static void zero_and_negative_are_zero(void **state)
{
    assert_int_equal(TTL_OF(HEAD("\0", "\1") RECORD("\0", "\0\0\0\0")), 0);
    assert_int_equal(TTL_OF(HEAD("\0", "\1") RECORD("\0", "\x80\0\0\0")), 0);
    assert_int_equal(TTL_OF(HEAD("\0", "\1") RECORD("\0", "\x7f\xff\xff\xff")), INT32_MAX);
}

static void without_answers_there_is_none(void **state)
{
    assert_int_equal(TTL_OF(HEAD("\1", "\0") QUESTION), UINT32_MAX);
}

static void rejects_every_message_that_is_cut_off(void **state)
{
    static const char whole[] = HEAD("\1", "\1") QUESTION RECORD("\xc0\x0c", "\0\0\1\x2c");
    for (size_t len = 0; len < sizeof(whole) - 1; len++)
        assert_int_equal(ttl_of(whole, len), 0);
}

static void rejects_labels_of_an_unknown_kind_and_counts_that_are_too_high(void **state)
{
    assert_int_equal(TTL_OF(HEAD("\0", "\1") RECORD("\x80\0", "\0\0\1\x2c")), 0);
    assert_int_equal(TTL_OF(HEAD("\0", "\xff") RECORD("\0", "\0\0\1\x2c")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_shortest_of_the_answers_counts),
        cmocka_unit_test(zero_and_negative_are_zero),
        cmocka_unit_test(without_answers_there_is_none),
        cmocka_unit_test(rejects_every_message_that_is_cut_off),
        cmocka_unit_test(rejects_labels_of_an_unknown_kind_and_counts_that_are_too_high),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
