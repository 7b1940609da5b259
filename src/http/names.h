/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing names with ours, quickly; and field names that are not known names but may become one at a
 * backend: CGI, WSGI and their kin turn every byte that an environment variable cannot hold into '_', so that
 * X_Forwarded_For and X-Forwarded-For are one variable there. */
#ifndef ISOBAR_HTTP_NAMES_H
#define ISOBAR_HTTP_NAMES_H

#include "http/message.h"

#define HTTP_DEFINE_SAME(bits)                                                                               \
    static inline bool http_same##bits(const char *name, const char *known)                                  \
    {                                                                                                        \
        uint##bits##_t n, k, fold = (uint##bits##_t)0x2020202020202020u;                                     \
        memcpy(&n, name, sizeof(n));                                                                         \
        memcpy(&k, known, sizeof(k));                                                                        \
        /* Only where the known byte is a letter (0x40 set) may the case bit differ. */                      \
        fold &= (uint##bits##_t)(k >> 1);                                                                    \
        return ((n ^ k) & (uint##bits##_t) ~fold) == 0;                                                      \
    }
HTTP_DEFINE_SAME(16)
HTTP_DEFINE_SAME(32)
HTTP_DEFINE_SAME(64)
#undef HTTP_DEFINE_SAME

enum { HTTP_FOLDED_MAX = 24 };

/* Is `name` the lower-case word `known` but for case? Both have `len` bytes, 2 to HTTP_FOLDED_MAX; `known` is
 * of letters, digits and hyphens. */
static inline bool http_same_folded(const char *name, const char *known, size_t len)
{
    if (len >= 8) {
        if (!http_same64(name, known) || !http_same64(name + len - 8, known + len - 8))
            return false;
        return len <= 16 || http_same64(name + 8, known + 8);
    }
    if (len >= 4)
        return http_same32(name, known) && http_same32(name + len - 4, known + len - 4);
    return http_same16(name, known) && http_same16(name + len - 2, known + len - 2);
}

/* As above, for a literal. */
#define http_is_word(s, literal)                                                                             \
    ((s).len == sizeof(literal) - 1 && http_same_folded((s).ptr, literal, sizeof(literal) - 1))

/* The hash table of known names: ids, 0 where there is none. Filled before main() runs, then only read. */
enum { HTTP_NAME_SLOTS = 256 };
extern uint8_t http_name_slots[HTTP_NAME_SLOTS];

/* Where a name of one or more bytes begins to be looked for. */
static inline uint32_t http_name_slot(const char *name, size_t len)
{
    uint32_t first = (unsigned char)name[0] | 0x20u, last = (unsigned char)name[len - 1] | 0x20u;
    return (first * 7 + last * 49 + (uint32_t)len * 19) % HTTP_NAME_SLOTS;
}

/* Could the name, of one or more bytes, be a known one or look like one? False is certain; no branch is
 * taken.
 */
static inline bool http_field_may_be_known(const char *name, size_t len)
{
    return http_name_slots[http_name_slot(name, len)] != 0;
}

/* The id of the known name that `name` equals but for the bytes where the known one has hyphens (and but for
 * case), or HTTP_FIELD_OTHER. */
enum http_field_id http_field_lookalike(struct slice name);

#endif
