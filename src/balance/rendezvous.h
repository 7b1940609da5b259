/* SPDX-License-Identifier: Apache-2.0 */
/* Weighted rendezvous hashing: key and name give each target a score, the best wins. Exact shares, and a
 * target that comes, goes or changes weight moves only the keys it must. O(n), 1 to 2 ns a target; ip_hash
 * is this alone, ring and Maglev end here when their own search finds nobody usable.
 * Source: Thaler, Ravishankar, 1998; weights by exponential race (Schindelhauer, Schomaker, 2005). */
#ifndef ISOBAR_BALANCE_RENDEZVOUS_H
#define ISOBAR_BALANCE_RENDEZVOUS_H

#include "balance/usable.h"

/* The hash of each name, [n]. */
uint64_t *rendezvous_names(const struct balance_pool *pool, struct arena *arena);

/* The target of the key how->hash among the usable ones, by weight and ramp; BALANCE_NONE without any. */
uint32_t rendezvous_pick(const struct balance_pool *pool, const struct usable *usable, const uint64_t *names,
                         const struct balance_pick *how);

/* Whether a target in slow start takes this key already. The answer depends on key and target only and never
 * goes back while the ramp rises, so that each key moves to the target once. Source: B7. */
static inline bool rendezvous_accepts(const struct balance_pick *how, const uint64_t *names, uint32_t i)
{
    return !how->ramp || how->ramp[i] == BALANCE_RAMP_FULL ||
           hash_mix64(how->hash + names[i]) >> 48 <= how->ramp[i];
}

#endif
