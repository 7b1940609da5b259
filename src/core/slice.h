/* SPDX-License-Identifier: Apache-2.0 */
/* A slice is a borrowed run of bytes: it never owns them and need not end in NUL. Whoever keeps one past the
 * call that made it says from whom it borrows and for how long. */
#ifndef ISOBAR_CORE_SLICE_H
#define ISOBAR_CORE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
    const char *ptr; /* borrows; NULL only when len is 0 */
    size_t len;
};

/* For printf("%.*s", SLICE_ARG(s)). */
#define SLICE_ARG(s) (int)(s).len, (s).ptr
#define SLICE(lit)                                                                                           \
    (struct slice)                                                                                           \
    {                                                                                                        \
        ("" lit), sizeof(lit) - 1                                                                            \
    }

static inline struct slice slice_of(const char *ptr, size_t len)
{
    return (struct slice){ptr, len};
}

static inline struct slice slice_str(const char *str)
{
    return (struct slice){str, str ? strlen(str) : 0};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* Below, at or above 0 as `a` stands before, at or behind `b` in the order of their bytes. */
static inline int slice_compare(struct slice a, struct slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static inline char ascii_lower(char c)
{
    return (unsigned)(c - 'A') < 26u ? (char)(c | 0x20) : c;
}

/* Equal but for ASCII case, whatever the locale. */
static inline bool slice_caseeq(struct slice a, struct slice b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (ascii_lower(a.ptr[i]) != ascii_lower(b.ptr[i]))
            return false;
    return true;
}

static inline bool slice_starts(struct slice s, struct slice prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool slice_ends(struct slice s, struct slice suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

/* Without spaces and tabs at both ends (OWS of RFC 9110 5.6.3). */
static inline struct slice slice_trim(struct slice s)
{
    while (s.len && (s.ptr[0] == ' ' || s.ptr[0] == '\t'))
        s.ptr++, s.len--;
    while (s.len && (s.ptr[s.len - 1] == ' ' || s.ptr[s.len - 1] == '\t'))
        s.len--;
    return s;
}

/* The index of the first `c`, or s.len. */
static inline size_t slice_find(struct slice s, char c)
{
    const char *hit = s.len ? memchr(s.ptr, c, s.len) : NULL;
    return hit ? (size_t)(hit - s.ptr) : s.len;
}

/* Takes the part before the next `sep` off `*rest`; false when nothing is left. Empty parts are returned too.
 */
static inline bool slice_next(struct slice *rest, char sep, struct slice *part)
{
    if (!rest->ptr)
        return false;
    size_t at = slice_find(*rest, sep);
    *part = slice_of(rest->ptr, at);
    if (at == rest->len)
        *rest = (struct slice){0};
    else
        *rest = slice_of(rest->ptr + at + 1, rest->len - at - 1);
    return true;
}

/* Decimal digits only, no sign, no space, no overflow; false otherwise. */
static inline bool slice_u64(struct slice s, uint64_t *out)
{
    uint64_t v = 0;
    if (s.len == 0 || s.len > 20)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        unsigned d = (unsigned char)s.ptr[i] - '0';
        if (d > 9 || __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return true;
}

#endif
