/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers into text for the request path, where snprintf would cost more than the rest of a head. */
#ifndef ISOBAR_CORE_PRINT_H
#define ISOBAR_CORE_PRINT_H

#include "core/slice.h"

enum { PRINT_U64_MAX = 20 };

/* Decimal digits without NUL; returns how many, at most PRINT_U64_MAX. */
static inline size_t print_u64(char *out, uint64_t v)
{
    char digits[PRINT_U64_MAX];
    size_t n = 0;
    do
        digits[PRINT_U64_MAX - ++n] = (char)('0' + v % 10);
    while (v /= 10);
    memcpy(out, digits + PRINT_U64_MAX - n, n);
    return n;
}

#endif
