/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the frame headers in a connection's bytes as they come, whatever the pieces; payloads are passed
 * over. For what has to be known of a frame that nghttp2 does not tell. Source: RFC 9113 4.1. */
#ifndef ISOBAR_HTTP2_WALK_H
#define ISOBAR_HTTP2_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { HTTP2_FRAME_HEADER_BYTES = 9, HTTP2_PREFACE_BYTES = 24 };

struct http2_walk {
    size_t
        left; /* bytes until the next header; HTTP2_PREFACE_BYTES for a client's connection to begin with */
    uint8_t header[HTTP2_FRAME_HEADER_BYTES];
    uint8_t have; /* bytes of the header that have come */
};

/* Goes on from data[*at..len) to behind the next complete frame header, which is then in walk->header; false:
 * there is none in these bytes, and all of them have been passed over. */
static inline bool http2_walk_next(struct http2_walk *walk, const char *data, size_t len, size_t *at)
{
    while (*at < len) {
        size_t here = len - *at;
        if (walk->left) {
            size_t n = here < walk->left ? here : walk->left;
            walk->left -= n;
            *at += n;
            continue;
        }
        size_t n = HTTP2_FRAME_HEADER_BYTES - (size_t)walk->have;
        n = here < n ? here : n;
        memcpy(walk->header + walk->have, data + *at, n);
        walk->have = (uint8_t)(walk->have + n);
        *at += n;
        if (walk->have < HTTP2_FRAME_HEADER_BYTES)
            return false;
        walk->have = 0;
        walk->left = (size_t)walk->header[0] << 16 | (size_t)walk->header[1] << 8 | walk->header[2];
        return true;
    }
    return false;
}

static inline uint8_t http2_walk_type(const struct http2_walk *walk)
{
    return walk->header[3];
}

static inline int32_t http2_walk_stream(const struct http2_walk *walk)
{
    return (int32_t)((uint32_t)(walk->header[5] & 0x7f) << 24 | (uint32_t)walk->header[6] << 16 |
                     (uint32_t)walk->header[7] << 8 | walk->header[8]);
}

#endif
