/* SPDX-License-Identifier: Apache-2.0 */
/* How large the windows are that we open to peers: small at first, then as large as what a round trip
 * delivers, so that a long way does not slow a transfer down and a short one costs no memory. When half a
 * window has been taken, a PING finds out how long a round trip is, and what is taken during two of them how
 * much it holds. A window grows only while its bytes are taken as fast as they come, and while each step
 * brought more bytes a second: what queues at a slow link would fill any window. A reader that falls behind
 * takes a window back to where it began, and what windows have grown by in all has a bound for each thread.
 *
 * Pure: the caller says what time it is, sends the PING and opens the window. Source: A7; RFC 9113 5.2; the
 * estimate is that of gRPC's BDP probes, over two round trips because a whole window may come in one piece.
 */
#ifndef ISOBAR_HTTP2_WINDOW_H
#define ISOBAR_HTTP2_WINDOW_H

#include "observe/counters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the windows of one thread may grow by in all; how much it is at a time is a gauge of the thread's. */
enum { HTTP2_GROWTH_BYTES = 64 * 1024 * 1024 };

struct http2_window_limits {
    uint32_t base, most; /* bytes */
};

/* What one round trip was found to deliver; windows of the same kind that come later begin with it once half
 * of their first one has been taken. */
struct http2_known {
    uint32_t size;
    uint64_t rate; /* bytes a second */
    uint64_t seen_ns;
};

/* A connection's round trips. */
struct http2_pace {
    uint64_t asked_ns, trip_ns; /* the PING went; the last one took so long */
    uint64_t rests_until_ns;    /* what was done last has to show first, or nothing grew */
    uint32_t n_asked;
    bool is_asking;  /* the answer is awaited */
    bool wants_ping; /* set here, for the owner to send one and to clear */
};

/* One window, of a stream or a connection. */
struct http2_window {
    uint32_t size;
    uint32_t asked;     /* the PING that it was measured by last */
    uint64_t taken;     /* since the last look at it */
    uint64_t since_ns;  /* it is being measured; 0: not */
    uint64_t delivered; /* since then */
    uint64_t rate;      /* bytes a second, that made it grow last */
    bool fell_behind;   /* since the last look */
};

void http2_window_init(struct http2_window *window, const struct http2_window_limits *limits);
/* `n` bytes were taken; `at_once`: without having waited. Returns the size that the window is to have from
 * now on, which may be the one it has. `growth` NULL: it is bounded elsewhere. */
uint32_t http2_window_take(struct http2_window *window, struct http2_pace *pace, struct http2_known *known,
                           const struct http2_window_limits *limits, counter *growth, size_t n, bool at_once,
                           uint64_t now_ns);
/* Back to where it began, or its end. */
uint32_t http2_window_shrink(struct http2_window *window, const struct http2_window_limits *limits,
                             counter *growth);
/* The answer to the PING has come. */
void http2_pace_answered(struct http2_pace *pace, uint64_t now_ns);

#endif
