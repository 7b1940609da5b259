/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over ways that are made up: a sender that fills the window as fast as the link carries it. */
#include "http2/window.h"

#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

enum { PIECE = 8 * 1024 };

static const struct http2_window_limits limits = {.base = 64 * 1024, .most = 2 * 1024 * 1024};

struct way {
    uint64_t trip_ns, bytes_per_s;
    uint64_t now_ns, pong_ns;
    struct http2_pace pace;
    struct http2_known known;
    counter growth;
    uint64_t n_pings;
};

/* Bytes over the way: the window's worth a round trip, or what the link carries. */
static void carry(struct way *way, struct http2_window *window, uint64_t bytes, bool at_once)
{
    for (uint64_t sent = 0; sent < bytes; sent += PIECE) {
        uint64_t by_window_ns = way->trip_ns * PIECE / window->size;
        uint64_t by_link_ns = PIECE * NS_PER_S / way->bytes_per_s;
        way->now_ns += by_window_ns > by_link_ns ? by_window_ns : by_link_ns;
        if (way->pace.is_asking && way->now_ns >= way->pong_ns)
            http2_pace_answered(&way->pace, way->now_ns);
        http2_window_take(window, &way->pace, &way->known, &limits, &way->growth, PIECE, at_once,
                          way->now_ns);
        if (!way->pace.wants_ping)
            continue;
        way->pace.wants_ping = false;
        way->n_pings++;
        way->pong_ns = way->now_ns + way->trip_ns;
    }
}

static struct way make_way(uint64_t trip_ms, uint64_t bytes_per_s)
{
    return (struct way){
        .trip_ns = trip_ms * NS_PER_MS, .bytes_per_s = bytes_per_s, .now_ns = 1000 * NS_PER_S};
}

static void a_window_grows_until_it_holds_what_a_round_trip_delivers(void **state)
{
    struct way way = make_way(50, 10 * 1000 * 1000); /* 500 KB */
    struct http2_window window;
    http2_window_init(&window, &limits);
    carry(&way, &window, 20 * 1000 * 1000, true);
    assert_in_range(window.size, 500 * 1000, 1600 * 1000);
    assert_int_equal(way.growth, window.size - limits.base);
}

static void a_short_way_leaves_it_as_it_is(void **state)
{
    struct way way = make_way(1, 10 * 1000 * 1000); /* 10 KB */
    struct http2_window window;
    http2_window_init(&window, &limits);
    carry(&way, &window, 20 * 1000 * 1000, true);
    assert_int_equal(window.size, limits.base);
    assert_in_range(way.n_pings, 1, 10); /* in two seconds */
}

static void it_never_exceeds_its_most(void **state)
{
    struct way way = make_way(500, 1000 * 1000 * 1000);
    struct http2_window window;
    http2_window_init(&window, &limits);
    carry(&way, &window, 200 * 1000 * 1000, true);
    assert_int_equal(window.size, limits.most);
}

static void a_body_that_ends_within_half_a_window_asks_for_nothing(void **state)
{
    struct way way = make_way(50, 10 * 1000 * 1000);
    struct http2_window window;
    http2_window_init(&window, &limits);
    carry(&way, &window, 3 * PIECE, true);
    assert_int_equal(way.n_pings, 0);
}

static void a_reader_that_falls_behind_takes_it_back(void **state)
{
    struct way way = make_way(50, 10 * 1000 * 1000);
    struct http2_window window;
    http2_window_init(&window, &limits);
    carry(&way, &window, 20 * 1000 * 1000, true);
    carry(&way, &window, PIECE, false);
    assert_int_equal(window.size, limits.base);
    assert_int_equal(way.growth, 0);
    uint64_t before = way.n_pings;
    carry(&way, &window, 20 * 1000 * 1000, false);
    assert_int_equal(window.size, limits.base);
    assert_int_equal(way.n_pings, before);
}

static void the_next_window_begins_with_what_is_known(void **state)
{
    struct way way = make_way(50, 10 * 1000 * 1000);
    struct http2_window first, next;
    http2_window_init(&first, &limits);
    carry(&way, &first, 20 * 1000 * 1000, true);
    http2_window_init(&next, &limits);
    carry(&way, &next, limits.base / 2, true);
    assert_int_equal(next.size, first.size);
}

static void what_is_known_is_forgotten(void **state)
{
    struct way way = make_way(50, 10 * 1000 * 1000);
    struct http2_window first, next;
    http2_window_init(&first, &limits);
    carry(&way, &first, 20 * 1000 * 1000, true);
    way.now_ns += 60 * NS_PER_S;
    http2_window_init(&next, &limits);
    carry(&way, &next, limits.base / 2, true);
    assert_int_equal(next.size, limits.base);
}

static void all_windows_of_a_thread_together_are_bounded(void **state)
{
    enum { N = 100 };
    static struct http2_window windows[N];
    counter growth = 0;
    uint64_t size = 0;
    for (int i = 0; i < N; i++) {
        struct way way = make_way(500, 1000 * 1000 * 1000);
        way.growth = growth;
        http2_window_init(&windows[i], &limits);
        carry(&way, &windows[i], 100 * 1000 * 1000, true);
        growth = way.growth;
        size += windows[i].size;
    }
    assert_in_range(growth, HTTP2_GROWTH_BYTES / 2, HTTP2_GROWTH_BYTES);
    assert_int_equal(size, growth + (uint64_t)N * limits.base);
    for (int i = 0; i < N; i++)
        http2_window_shrink(&windows[i], &limits, &growth);
    assert_int_equal(growth, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_grows_until_it_holds_what_a_round_trip_delivers),
        cmocka_unit_test(a_short_way_leaves_it_as_it_is),
        cmocka_unit_test(it_never_exceeds_its_most),
        cmocka_unit_test(a_body_that_ends_within_half_a_window_asks_for_nothing),
        cmocka_unit_test(a_reader_that_falls_behind_takes_it_back),
        cmocka_unit_test(the_next_window_begins_with_what_is_known),
        cmocka_unit_test(what_is_known_is_forgotten),
        cmocka_unit_test(all_windows_of_a_thread_together_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
