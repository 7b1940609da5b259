/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams have ended lately, and by whom: nghttp2 ignores whatever comes for a stream that is over, but
 * a client that ended one itself breaks the rules by going on (RFC 9113 5.1), while what it sent before it
 * read our reset is fine. Streams from further back are given the benefit of the doubt. */
#ifndef ISOBAR_HTTP2_CLOSED_H
#define ISOBAR_HTTP2_CLOSED_H

#include <stdbool.h>
#include <stdint.h>

enum { HTTP2_CLOSED_KEPT = 32 };

/* Zeroed: none. */
struct http2_closed {
    uint32_t n;                     /* in all */
    int32_t ids[HTTP2_CLOSED_KEPT]; /* negative: we reset it */
};

enum http2_closed_by { HTTP2_CLOSED_UNKNOWN, HTTP2_CLOSED_BY_CLIENT, HTTP2_CLOSED_BY_US, HTTP2_NEVER_OPENED };

void http2_closed_note(struct http2_closed *closed, int32_t id, bool by_client);
/* Of a stream below the newest that is not open. */
enum http2_closed_by http2_closed_find(const struct http2_closed *closed, int32_t id);

#endif
