/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/walk.h"

#include "core/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const char frames[] = "\0\0\2\0\1\0\0\0\7ab" /* DATA of stream 7 */
                             "\0\0\0\4\1\0\0\0\0"   /* SETTINGS */
                             "\0\0\1\1\0\1\2\3\4x"; /* HEADERS of a stream of four bytes */

static void headers_are_found_whatever_the_pieces(void **state)
{
    static const uint8_t types[] = {0, 4, 1};
    static const int32_t streams[] = {7, 0, 0x01020304};
    for (size_t piece = 1; piece < sizeof(frames); piece++) {
        struct http2_walk walk = {0};
        size_t found = 0;
        for (size_t begin = 0; begin < sizeof(frames) - 1; begin += piece) {
            size_t len = sizeof(frames) - 1 - begin < piece ? sizeof(frames) - 1 - begin : piece, at = 0;
            while (http2_walk_next(&walk, frames + begin, len, &at)) {
                assert_true(found < iso_countof(types) && at > 0 && at <= len);
                assert_int_equal(http2_walk_type(&walk), types[found]);
                assert_int_equal(http2_walk_stream(&walk), streams[found]);
                found++;
            }
            assert_int_equal(at, len);
        }
        assert_int_equal(found, iso_countof(types));
        assert_int_equal(walk.left, 0);
    }
}

static void a_preface_is_passed_over(void **state)
{
    struct http2_walk walk = {.left = 3};
    size_t at = 0;
    assert_true(http2_walk_next(&walk, "PRI\0\0\0\4\0\0\0\0\0", 12, &at));
    assert_int_equal(at, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_found_whatever_the_pieces),
        cmocka_unit_test(a_preface_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
