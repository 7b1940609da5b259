/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/window.h"

#include "core/clock.h"

#define KNOWN_NS (10 * NS_PER_S) /* what was learned of a way is forgotten after so long without use */
#define REST_NS  (500 * NS_PER_MS)

void http2_window_init(struct http2_window *window, const struct http2_window_limits *limits)
{
    *window = (struct http2_window){.size = limits->base};
}

void http2_pace_answered(struct http2_pace *pace, uint64_t now_ns)
{
    if (!pace->is_asking)
        return;
    pace->is_asking = false;
    pace->trip_ns = now_ns > pace->asked_ns ? now_ns - pace->asked_ns : 1;
}

uint32_t http2_window_shrink(struct http2_window *window, const struct http2_window_limits *limits,
                             counter *growth)
{
    if (growth)
        gauge_add(growth, -(int64_t)(window->size - limits->base));
    window->size = limits->base;
    window->rate = 0;
    window->since_ns = 0;
    return window->size;
}

/* As far as the limits and the thread's bound let it. */
static void grow(struct http2_window *window, const struct http2_window_limits *limits, counter *growth,
                 uint64_t size)
{
    if (size > limits->most)
        size = limits->most;
    if (size <= window->size || (growth && counter_read(growth) + size - window->size > HTTP2_GROWTH_BYTES))
        return;
    if (growth)
        gauge_add(growth, (int64_t)(size - window->size));
    window->size = (uint32_t)size;
}

static bool is_fresh(const struct http2_known *known, uint64_t now_ns)
{
    return known->size && now_ns - known->seen_ns < KNOWN_NS;
}

/* Does the way deliver what fills the window, and faster than before it grew last? */
static bool is_held_up(const struct http2_window *window, uint64_t rate, uint64_t a_trip)
{
    return a_trip >= window->size / 3 * 2 && rate > window->rate + window->rate / 4;
}

/* Two round trips have been measured. */
static void judge(struct http2_window *window, struct http2_pace *pace,
                  const struct http2_window_limits *limits, counter *growth, uint64_t now_ns)
{
    uint64_t took_us = (now_ns - window->since_ns) / NS_PER_US + 1;
    uint64_t rate = window->delivered * (NS_PER_S / NS_PER_US) / took_us;
    uint64_t a_trip = window->delivered * (pace->trip_ns / NS_PER_US + 1) / took_us;
    window->since_ns = 0;
    if (!is_held_up(window, rate, a_trip)) {
        pace->rests_until_ns = now_ns + REST_NS;
        return;
    }
    window->rate = rate;
    grow(window, limits, growth, 2 * a_trip);
    pace->rests_until_ns = now_ns + pace->trip_ns; /* until it shows */
}

/* Half the window has been taken, all of it at once. */
static void look(struct http2_window *window, struct http2_pace *pace, struct http2_known *known,
                 const struct http2_window_limits *limits, counter *growth, uint64_t now_ns)
{
    if (is_fresh(known, now_ns) && window->size < known->size) {
        window->rate = known->rate;
        window->since_ns = 0;
        grow(window, limits, growth, known->size);
    } else if (window->since_ns && !pace->is_asking && now_ns - window->since_ns >= 2 * pace->trip_ns) {
        judge(window, pace, limits, growth, now_ns);
    }
    if (window->size >= known->size || !is_fresh(known, now_ns))
        *known = (struct http2_known){.size = window->size, .rate = window->rate, .seen_ns = now_ns};
    if (pace->is_asking || window->since_ns || window->size >= limits->most || now_ns < pace->rests_until_ns)
        return;
    pace->is_asking = pace->wants_ping = true;
    pace->asked_ns = now_ns;
    pace->n_asked++;
}

uint32_t http2_window_take(struct http2_window *window, struct http2_pace *pace, struct http2_known *known,
                           const struct http2_window_limits *limits, counter *growth, size_t n, bool at_once,
                           uint64_t now_ns)
{
    if (window->since_ns) {
        window->delivered += n;
    } else if (pace->is_asking && window->asked != pace->n_asked) {
        window->asked = pace->n_asked;
        window->since_ns = pace->asked_ns;
        window->delivered = n;
    }
    window->taken += n;
    window->fell_behind |= !at_once;
    if (!at_once && window->size > limits->base)
        return http2_window_shrink(window, limits, growth);
    if (window->taken < window->size / 2)
        return window->size;
    bool fell_behind = window->fell_behind;
    window->taken = 0;
    window->fell_behind = false;
    if (fell_behind)
        window->since_ns = 0;
    else
        look(window, pace, known, limits, growth, now_ns);
    return window->size;
}
