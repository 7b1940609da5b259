/* SPDX-License-Identifier: Apache-2.0 */
/* Asking the cache for memory that will be needed soon. On a core that has slept since the last request most
 * of what a request touches lies in no near cache; asked for together, before a system call, it comes while
 * the kernel works. */
#ifndef ISOBAR_CORE_FETCH_H
#define ISOBAR_CORE_FETCH_H

#include <stddef.h>
#include <stdint.h>

enum { FETCH_LINE = 64 };

/* The lines of n bytes at `at`, to be written or read. Any address will do, NULL as well. */
static inline void fetch(const void *at, size_t n)
{
    for (size_t i = 0; i < n; i += FETCH_LINE)
        __builtin_prefetch((const void *)((uintptr_t)at + i), 1);
}

#endif
