/* SPDX-License-Identifier: Apache-2.0 */
/* The Maglev table as plain arrays, for the packet tier as well as for the method. A key's owner is
 * slots[hash reduced to m]; a change of the targets moves the keys it must and under 1% of the others.
 * Source: I2; Eisenbud et al., Maglev, NSDI 2016, 3.4. */
#ifndef ISOBAR_BALANCE_MAGLEV_H
#define ISOBAR_BALANCE_MAGLEV_H

#include "core/err.h"
#include "core/slice.h"

enum { MAGLEV_SIZE_DEFAULT = 65537, MAGLEV_SIZE_LARGE = 655373, MAGLEV_SIZE_MAX = 1 << 24 };

/* Fills slots[m] with indexes into the input, or with 0xffffffff throughout when no target has weight.
 * Depends on the set of names and weights only, not on their order, and is the same on every machine: equal
 * input gives an identical table. With equal weights each target owns floor or ceil of m / n slots; otherwise
 * weight / sum * m, rounded, and at least one.
 * Errors: ISO_ERR_INVALID when m is no prime or above MAGLEV_SIZE_MAX, more targets have weight than there
 * are slots, or two names are equal; slots are then untouched. Threads: any. */
iso_err maglev_build(const struct slice *names, const uint32_t *weights, uint32_t n, uint32_t m,
                     uint32_t *slots) ISO_MUST_USE;

bool maglev_size_is_valid(uint32_t m);

/* The slot of a well mixed hash: its upper half scaled to m, which costs one multiplication. */
static inline uint32_t maglev_slot(uint64_t hash, uint32_t m)
{
    return (uint32_t)((hash >> 32) * m >> 32);
}

#endif
