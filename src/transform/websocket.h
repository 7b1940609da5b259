/* SPDX-License-Identifier: Apache-2.0 */
/* Follows the frames of a WebSocket stream as its bytes pass, so that a close frame of ours can be put
 * between two frames and never inside one (E2). Nothing is buffered and no payload is looked at. Source: RFC
 * 6455 5.2. */
#ifndef ISOBAR_TRANSFORM_WEBSOCKET_H
#define ISOBAR_TRANSFORM_WEBSOCKET_H

#include "core/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: before the first frame. */
struct websocket_track {
    uint64_t left;      /* payload bytes of the current frame still to pass */
    uint8_t header[14]; /* of the current frame, as far as it has passed */
    uint8_t have;       /* bytes of it; 0 with left == 0: between two frames */
};

static inline bool websocket_is_between(const struct websocket_track *track)
{
    return track->have == 0 && track->left == 0;
}

/* Follows data[0..len). */
void websocket_follow(struct websocket_track *track, const uint8_t *data, size_t len);
/* The same, but stops behind the frame that is under way: returns how many bytes belong to it (0 between two
 * frames, `len` when it goes on). */
size_t websocket_finish_frame(struct websocket_track *track, const uint8_t *data, size_t len);

enum { WEBSOCKET_ACCEPT_BYTES = 28 };

/* What a server answers to a client's key, written to out. False: it is no key. Source: RFC 6455 4.2.2. */
bool websocket_accept(struct slice key, char out[WEBSOCKET_ACCEPT_BYTES]);

enum { WEBSOCKET_CLOSE_MAX = 8, WEBSOCKET_GOING_AWAY = 1001 };

/* A close frame with a status code into out[WEBSOCKET_CLOSE_MAX]; what a client sends must be masked. Returns
 * its length. Source: RFC 6455 5.5.1, 7.4.1. */
size_t websocket_close_frame(uint8_t *out, uint16_t code, bool masked, uint32_t mask);

#endif
