/* SPDX-License-Identifier: Apache-2.0 */
/* A small generator for spreading load and for jitter (xoroshiro128+); never for secrets: those come from
 * getrandom(). One per thread. */
#ifndef ISOBAR_CORE_RANDOM_H
#define ISOBAR_CORE_RANDOM_H

#include "core/hash.h"

struct rng {
    uint64_t s0, s1;
};

static inline void rng_init(struct rng *rng, uint64_t seed)
{
    rng->s0 = hash_mix64(seed + 0x9e3779b97f4a7c15ull) | 1;
    rng->s1 = hash_mix64(rng->s0 + 0x9e3779b97f4a7c15ull);
}

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t a = rng->s0, b = rng->s1, sum = a + b;
    b ^= a;
    rng->s0 = (a << 24 | a >> 40) ^ b ^ (b << 16);
    rng->s1 = b << 37 | b >> 27;
    return sum;
}

/* Even over [0, n); n > 0. */
static inline uint32_t rng_below(struct rng *rng, uint32_t n)
{
    return (uint32_t)((rng_next(rng) >> 32) * n >> 32);
}

#endif
