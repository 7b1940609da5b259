/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/rendezvous.h"

#include <math.h>

enum { NAME_SEED = 0x72656e64 };

uint64_t *rendezvous_names(const struct balance_pool *pool, struct arena *arena)
{
    uint64_t *names = arena_array(arena, uint64_t, pool->n);
    for (uint32_t i = 0; i < pool->n; i++)
        names[i] = iso_hash64(pool->names[i], NAME_SEED);
    return names;
}

/* -ln(u) for 0 < u <= 1 to about 1e-13 in plain IEEE arithmetic: nodes must agree on it, and the C library
 * gives other last bits on other processors. */
static double neg_log(double u)
{
    int exponent;
    double fraction = frexp(u, &exponent); /* 0.5 .. 1 */
    if (fraction < 0.70710678118654752) {
        fraction *= 2;
        exponent--;
    }
    double s = (fraction - 1) / (fraction + 1), s2 = s * s, sum = 1.0 / 17;
    for (int k = 15; k > 0; k -= 2)
        sum = sum * s2 + 1.0 / k;
    return -(2 * s * sum + exponent * 0.69314718055994531);
}

uint32_t rendezvous_pick(const struct balance_pool *pool, const struct usable *usable, const uint64_t *names,
                         const struct balance_pick *how)
{
    uint32_t best = BALANCE_NONE;
    double best_time = INFINITY;
    for (uint32_t word = 0; word < usable->words; word++) {
        for (uint64_t bits = usable_word(usable, how, word); bits; bits &= bits - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(bits);
            double weight = (double)(int64_t)usable_weight(pool, how, i);
            double u = ((double)(int64_t)(hash_mix64(how->hash ^ names[i]) >> 11) + 0.5) * 0x1p-53;
            /* -ln(u) >= 1 - u: the logarithm is taken only where it may win, about ln(n) times a pick. */
            if (best != BALANCE_NONE && 1 - u >= best_time * weight)
                continue;
            double time = neg_log(u) / weight;
            if (best == BALANCE_NONE || time < best_time) {
                best = i;
                best_time = time;
            }
        }
    }
    return best;
}
