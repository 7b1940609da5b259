/* SPDX-License-Identifier: Apache-2.0 */
/* Asserts that stay on in release builds: a stop is better than a wrong answer. They state what the author
 * believes; nothing a client, a backend or the kernel can do may reach one. Also the few attributes and
 * macros that every file may use. */
#ifndef ISOBAR_CORE_CHECK_H
#define ISOBAR_CORE_CHECK_H

#include <stddef.h>

_Noreturn void iso_check_failed(const char *what, const char *file, int line);

#define iso_assert(cond)                                                                                     \
    (__builtin_expect(!!(cond), 1) ? (void)0 : iso_check_failed(#cond, __FILE__, __LINE__))
#define iso_unreachable(why) iso_check_failed("unreachable: " why, __FILE__, __LINE__)

#define iso_likely(x)   __builtin_expect(!!(x), 1)
#define iso_unlikely(x) __builtin_expect(!!(x), 0)

#define container_of(ptr, type, member)                                                                      \
    ({                                                                                                       \
        const typeof(((type *)0)->member) *member_ptr_ = (ptr);                                              \
        (type *)((char *)member_ptr_ - offsetof(type, member));                                              \
    })
#define iso_countof(array) (sizeof(array) / sizeof((array)[0]))

/* The size of a cache line on every machine we run on; shared and per-thread data are kept on lines of their
 * own. */
#define ISO_CACHE_LINE   64
#define ISO_CACHE_ALIGN  __attribute__((aligned(ISO_CACHE_LINE)))
#define ISO_PRINTF(f, a) __attribute__((format(printf, f, a)))

#endif
