/* SPDX-License-Identifier: Apache-2.0 */
#include "core/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t iso_hash64(struct slice s, uint64_t seed)
{
    return XXH3_64bits_withSeed(s.ptr, s.len, seed);
}

static inline uint64_t rotl(uint64_t x, int b)
{
    return x << b | x >> (64 - b);
}

static inline void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rotl(v[1], 13) ^ v[0], v[3] = rotl(v[3], 16) ^ v[2];
    v[0] = rotl(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotl(v[1], 17) ^ v[2], v[3] = rotl(v[3], 21) ^ v[0];
    v[2] = rotl(v[2], 32);
}

uint64_t siphash(const struct siphash_key *key, struct slice s)
{
    uint64_t v[4] = {key->k0 ^ 0x736f6d6570736575ull, key->k1 ^ 0x646f72616e646f6dull,
                     key->k0 ^ 0x6c7967656e657261ull, key->k1 ^ 0x7465646279746573ull};
    size_t whole = s.len & ~(size_t)7;
    for (size_t at = 0; at < whole; at += 8) {
        uint64_t word;
        memcpy(&word, s.ptr + at, 8);
        v[3] ^= word;
        sip_round(v), sip_round(v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t)s.len << 56;
    for (size_t i = whole; i < s.len; i++)
        last |= (uint64_t)(unsigned char)s.ptr[i] << (8 * (i - whole));
    v[3] ^= last;
    sip_round(v), sip_round(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
