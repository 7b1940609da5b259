/* SPDX-License-Identifier: Apache-2.0 */
/* Bump memory of fixed size on the request path: a field value that a request needs is made here, in the
 * worker's scratch or in the exchange's buffer. It never grows: running out is an answer (a limit reached),
 * not a crash. */
#ifndef ISOBAR_CORE_SCRATCH_H
#define ISOBAR_CORE_SCRATCH_H

#include "core/slice.h"

struct scratch {
    char *at; /* borrows; the next free byte */
    char *end;
};

/* `n` bytes, unaligned, or NULL when they do not fit. */
static inline char *scratch_take(struct scratch *scratch, size_t n)
{
    if ((size_t)(scratch->end - scratch->at) < n)
        return NULL;
    char *out = scratch->at;
    scratch->at += n;
    return out;
}

#endif
