/* SPDX-License-Identifier: Apache-2.0 */
#include "transform/websocket.h"

#include "tls/sha1.h"

#include <string.h>

enum { KEY_BYTES = 24 };

bool websocket_accept(struct slice key, char out[WEBSOCKET_ACCEPT_BYTES])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char id[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    char text[KEY_BYTES + sizeof(id) - 1];
    unsigned char hash[SHA1_BYTES + 1] = {0}; /* seven times three bytes */
    if (key.len != KEY_BYTES)
        return false;
    memcpy(text, key.ptr, KEY_BYTES);
    memcpy(text + KEY_BYTES, id, sizeof(id) - 1);
    sha1(slice_of(text, sizeof(text)), hash);
    for (size_t i = 0; i < sizeof(hash); i += 3) {
        uint32_t bits = (uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8 | hash[i + 2];
        for (int digit = 0; digit < 4; digit++)
            *out++ = digits[bits >> (18 - 6 * digit) & 63];
    }
    out[-1] = '=';
    return true;
}

/* The whole header's length, known from its second byte on. */
static size_t header_len(const struct websocket_track *track)
{
    if (track->have < 2)
        return 2;
    uint8_t len7 = track->header[1] & 0x7f;
    return 2u + (len7 == 126 ? 2u : len7 == 127 ? 8u : 0u) + (track->header[1] & 0x80 ? 4u : 0u);
}

static uint64_t payload_len(const struct websocket_track *track)
{
    uint8_t len7 = track->header[1] & 0x7f;
    uint64_t len = 0;
    if (len7 < 126)
        return len7;
    for (int i = 0; i < (len7 == 126 ? 2 : 8); i++)
        len = len << 8 | track->header[2 + i];
    return len;
}

/* Follows to the end of the frame under way, or of the next one when between two; returns the bytes it took.
 */
static size_t follow_one(struct websocket_track *track, const uint8_t *data, size_t len)
{
    size_t at = 0;
    while (at < len && track->left == 0) {
        track->header[track->have++] = data[at++];
        if (track->have < 2 || track->have < header_len(track))
            continue;
        track->left = payload_len(track);
        track->have = 0;
        if (track->left == 0)
            return at;
    }
    size_t take = len - at < track->left ? len - at : (size_t)track->left;
    track->left -= take;
    return at + take;
}

void websocket_follow(struct websocket_track *track, const uint8_t *data, size_t len)
{
    for (size_t at = 0; at < len;)
        at += follow_one(track, data + at, len - at);
}

size_t websocket_finish_frame(struct websocket_track *track, const uint8_t *data, size_t len)
{
    return websocket_is_between(track) ? 0 : follow_one(track, data, len);
}

size_t websocket_close_frame(uint8_t *out, uint16_t code, bool masked, uint32_t mask)
{
    uint8_t payload[2] = {(uint8_t)(code >> 8), (uint8_t)code};
    out[0] = 0x88;
    out[1] = (uint8_t)(sizeof(payload) | (masked ? 0x80u : 0u));
    if (!masked) {
        memcpy(out + 2, payload, sizeof(payload));
        return 4;
    }
    memcpy(out + 2, &mask, 4);
    out[6] = payload[0] ^ out[2];
    out[7] = payload[1] ^ out[3];
    return 8;
}
