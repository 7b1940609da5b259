/* SPDX-License-Identifier: Apache-2.0 */
/* Hashes. iso_hash64 (xxh3) for names that the operator chooses: stable across machines and releases, since
 * ring and Maglev tables on several nodes must agree. siphash where a client picks the keys. */
#ifndef ISOBAR_CORE_HASH_H
#define ISOBAR_CORE_HASH_H

#include "core/slice.h"

/* xxh3_64 of the bytes with a seed; part of the on-wire contract between nodes, never to change. */
uint64_t iso_hash64(struct slice s, uint64_t seed);

struct siphash_key {
    uint64_t k0, k1;
};
/* SipHash-2-4. Source: Aumasson, Bernstein: SipHash, 2012. */
uint64_t siphash(const struct siphash_key *key, struct slice s);

/* A bijection that spreads every input bit over the word (finaliser of MurmurHash3). */
static inline uint64_t hash_mix64(uint64_t x)
{
    x ^= x >> 33;
    x *= 0xff51afd7ed558ccdull;
    x ^= x >> 33;
    x *= 0xc4ceb9fe1a85ec53ull;
    return x ^ x >> 33;
}

#endif
