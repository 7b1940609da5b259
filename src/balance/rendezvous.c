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

/* A word as a number between 0 and 1. */
static inline double unit_of(uint64_t draw)
{
    return ((double)(int64_t)(draw >> 11) + 0.5) * 0x1p-53;
}

/* -ln(unit_of(draw)) to about 1e-12 in plain IEEE arithmetic: nodes must agree on it, and the C library gives
 * other last bits on other processors. */
static double neg_log(uint64_t draw)
{
    int shift = __builtin_clzll(draw | 1);
    double fraction = unit_of(draw << shift); /* 0.5 .. 1 */
    double s = (fraction - 0.75) / (fraction + 0.75), s2 = s * s;
    double sum = 1.0 / 15;
    sum = sum * s2 + 1.0 / 13;
    sum = sum * s2 + 1.0 / 11;
    sum = sum * s2 + 1.0 / 9;
    sum = sum * s2 + 1.0 / 7;
    sum = sum * s2 + 1.0 / 5;
    sum = sum * s2 + 1.0 / 3;
    sum = sum * s2 + 1;
    return 0.28768207245178096 /* ln(4/3) */ - 2 * s * sum + shift * 0.69314718055994531;
}

uint32_t rendezvous_pick(const struct balance_pool *pool, const struct usable *usable, const uint64_t *names,
                         const struct balance_pick *how)
{
    uint32_t best = BALANCE_NONE;
    uint64_t best_draw = 0, best_weight = 0;
    double best_time = NAN; /* of an exponential race; NAN: not computed yet */
    for (uint32_t word = 0; word < usable->words; word++) {
        for (uint64_t bits = usable_word(usable, how, word); bits; bits &= bits - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(bits);
            uint64_t draw = hash_mix64(how->hash ^ names[i]), weight = usable_weight(pool, how, i);
            if (weight == best_weight || best == BALANCE_NONE) {
                if (draw <= best_draw && best != BALANCE_NONE)
                    continue; /* with equal weights the order of the draws is that of the times */
                best_time = NAN;
            } else {
                if (isnan(best_time))
                    best_time = neg_log(best_draw) / (double)best_weight;
                /* -ln(u) >= 1 - u: the logarithm is taken only where it may win. */
                if (1 - unit_of(draw) >= best_time * (double)weight)
                    continue;
                double time = neg_log(draw) / (double)weight;
                if (time >= best_time)
                    continue;
                best_time = time;
            }
            best = i;
            best_draw = draw;
            best_weight = weight;
        }
    }
    return best;
}
