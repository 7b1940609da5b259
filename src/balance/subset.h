/* SPDX-License-Identifier: Apache-2.0 */
/* Which backends each of many proxies talks to, when all to all would be too many connections and probes.
 * Every proxy computes the same answer from the two lists of names, so nothing is negotiated: each takes its
 * own line. Source: B6. */
#ifndef ISOBAR_BALANCE_SUBSET_H
#define ISOBAR_BALANCE_SUBSET_H

#include "core/slice.h"

/* Writes the subset of proxy `self` into the bitmap members[(n_backends + 63) / 64]: min(size, n_backends)
 * backends. Over the fleet each backend is in floor or ceil of n_proxies * size / n_backends subsets. Does
 * not depend on the order of the names, which must be unique; a proxy or backend that comes or goes changes
 * few other subsets. O(n_proxies * n_backends). Threads: any, but it takes milliseconds for a large fleet:
 * control. */
void subset_choose(const struct slice *proxies, uint32_t n_proxies, uint32_t self,
                   const struct slice *backends, uint32_t n_backends, uint32_t size, uint64_t *members);

#endif
