/* SPDX-License-Identifier: Apache-2.0 */
/* Who can be picked at all: the targets that have weight, as a bitmap beside the caller's bitmap of eligible
 * ones, so that finding the next usable target costs one word per 64. Part of every method's table. */
#ifndef ISOBAR_BALANCE_USABLE_H
#define ISOBAR_BALANCE_USABLE_H

#include "balance/method.h"

struct usable {
    uint32_t n, words;
    uint32_t n_positive;      /* targets with weight */
    bool uniform;             /* those all have the same weight */
    const uint64_t *positive; /* bit i: target i has weight; [words] */
};

void usable_init(struct usable *usable, const struct balance_pool *pool, struct arena *arena);

static inline uint64_t usable_word(const struct usable *usable, const struct balance_pick *how, uint32_t word)
{
    return how->eligible[word] & usable->positive[word];
}

static inline bool usable_has(const struct usable *usable, const struct balance_pick *how, uint32_t i)
{
    return usable_word(usable, how, i / 64) >> (i % 64) & 1;
}

/* The first usable target at or after `from`, going round at the end; BALANCE_NONE when there is none. */
uint32_t usable_next(const struct usable *usable, const struct balance_pick *how, uint32_t from);

/* Whether target `i` takes part in this decision: always, but while it is in slow start only as often as its
 * ramp says. For methods without a hash; the others let the key decide (rendezvous.h). Source: B7. */
static inline bool usable_takes_part(const struct balance_pick *how, uint32_t i)
{
    return !how->ramp || how->ramp[i] == BALANCE_RAMP_FULL || rng_next(how->rng) >> 48 <= how->ramp[i];
}

/* A target's weight in force now, in units that are the same for all targets of the call. */
static inline uint64_t usable_weight(const struct balance_pool *pool, const struct balance_pick *how,
                                     uint32_t i)
{
    return (uint64_t)pool->weights[i] * (how->ramp ? how->ramp[i] : 1);
}

#endif
