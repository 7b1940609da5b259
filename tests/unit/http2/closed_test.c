/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/closed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void it_is_known_who_ended_a_stream_lately(void **state)
{
    struct http2_closed closed = {0};
    http2_closed_note(&closed, 1, true);
    http2_closed_note(&closed, 5, false);
    assert_int_equal(http2_closed_find(&closed, 1), HTTP2_CLOSED_BY_CLIENT);
    assert_int_equal(http2_closed_find(&closed, 5), HTTP2_CLOSED_BY_US);
    assert_int_equal(http2_closed_find(&closed, 3), HTTP2_NEVER_OPENED);
}

static void a_stream_of_long_ago_is_not_judged(void **state)
{
    struct http2_closed closed = {0};
    for (int32_t id = 1; id <= 2 * HTTP2_CLOSED_KEPT + 1; id += 2)
        http2_closed_note(&closed, id, true);
    assert_int_equal(http2_closed_find(&closed, 1), HTTP2_CLOSED_UNKNOWN);
    assert_int_equal(http2_closed_find(&closed, 2 * HTTP2_CLOSED_KEPT + 1), HTTP2_CLOSED_BY_CLIENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_known_who_ended_a_stream_lately),
        cmocka_unit_test(a_stream_of_long_ago_is_not_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
