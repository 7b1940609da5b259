/* SPDX-License-Identifier: Apache-2.0 */
#include "transform/websocket.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* A frame with the given payload length; returns its bytes. */
static size_t frame(uint8_t *out, uint64_t payload, bool masked)
{
    size_t n = 0;
    out[n++] = 0x82;
    if (payload < 126) {
        out[n++] = (uint8_t)payload;
    } else if (payload < 65536) {
        out[n++] = 126;
        out[n++] = (uint8_t)(payload >> 8);
        out[n++] = (uint8_t)payload;
    } else {
        out[n++] = 127;
        for (int shift = 56; shift >= 0; shift -= 8)
            out[n++] = (uint8_t)(payload >> shift);
    }
    if (masked) {
        out[1] |= 0x80;
        memset(out + n, 0xaa, 4);
        n += 4;
    }
    memset(out + n, 0x88, payload); /* looks like headers, is payload */
    return n + payload;
}

static void frames_of_every_length_form_are_followed_at_every_split(void **state)
{
    static uint8_t data[80000];
    static const uint64_t payloads[] = {0, 1, 125, 126, 300, 66000};
    for (size_t p = 0; p < sizeof(payloads) / sizeof(payloads[0]); p++) {
        for (int masked = 0; masked < 2; masked++) {
            size_t len = frame(data, payloads[p], masked);
            size_t step = payloads[p] > 1000 ? 997 : 1;
            for (size_t split = 1; split < len; split += step) {
                struct websocket_track track = {0};
                websocket_follow(&track, data, split);
                assert_false(websocket_is_between(&track));
                websocket_follow(&track, data + split, len - split);
                assert_true(websocket_is_between(&track));
            }
        }
    }
}

static void finishing_stops_behind_the_frame_under_way(void **state)
{
    uint8_t data[64];
    size_t first = frame(data, 10, true), second = frame(data + first, 3, false);
    struct websocket_track track = {0};
    websocket_follow(&track, data, 4);
    assert_int_equal(websocket_finish_frame(&track, data + 4, first + second - 4), first - 4);
    assert_true(websocket_is_between(&track));
    assert_int_equal(websocket_finish_frame(&track, data + first, second), 0);
}

static void a_frame_that_goes_on_takes_all_bytes(void **state)
{
    uint8_t data[200];
    frame(data, 150, false);
    struct websocket_track track = {0};
    websocket_follow(&track, data, 20);
    assert_int_equal(websocket_finish_frame(&track, data + 20, 30), 30);
    assert_false(websocket_is_between(&track));
}

static void a_close_frame_says_going_away_E2(void **state)
{
    uint8_t out[WEBSOCKET_CLOSE_MAX];
    assert_int_equal(websocket_close_frame(out, WEBSOCKET_GOING_AWAY, false, 0), 4);
    assert_memory_equal(out, "\x88\x02\x03\xe9", 4);
    assert_int_equal(websocket_close_frame(out, WEBSOCKET_GOING_AWAY, true, 0x01020304), 8);
    assert_int_equal(out[1], 0x82);
    assert_int_equal(out[6] ^ out[2], 0x03);
    assert_int_equal(out[7] ^ out[3], 0xe9);
}

static void a_key_is_answered_by_its_digest(void **state)
{
    char out[WEBSOCKET_ACCEPT_BYTES];
    assert_true(websocket_accept(SLICE("dGhlIHNhbXBsZSBub25jZQ=="), out)); /* RFC 6455 1.3 */
    assert_memory_equal(out, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", sizeof(out));
    assert_false(websocket_accept(SLICE("short"), out));
    assert_false(websocket_accept(SLICE("dGhlIHNhbXBsZSBub25jZQ==="), out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_of_every_length_form_are_followed_at_every_split),
        cmocka_unit_test(finishing_stops_behind_the_frame_under_way),
        cmocka_unit_test(a_frame_that_goes_on_takes_all_bytes),
        cmocka_unit_test(a_key_is_answered_by_its_digest),
        cmocka_unit_test(a_close_frame_says_going_away_E2),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
