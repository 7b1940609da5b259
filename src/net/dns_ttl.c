/* SPDX-License-Identifier: Apache-2.0 */
/* c-ares does not tell the TTL of SRV records, so it is read here. Only lengths matter: a name is skipped,
 * not read, so that a pointer (which ends it) need not be followed. */
#include "net/dns_ttl.h"

#include <stdbool.h>

enum {
    HEADER_BYTES = 12,
    QUESTION_BYTES = 4, /* type, class */
    RECORD_BYTES = 10,  /* type, class, TTL, length of the data */
    LABEL_KIND = 0xc0,  /* the two bits that tell a label from a pointer */
};

struct cursor {
    const unsigned char *at, *end;
};

static unsigned get16(const unsigned char *at)
{
    return (unsigned)at[0] << 8 | at[1];
}

static bool skip(struct cursor *cursor, size_t n)
{
    if ((size_t)(cursor->end - cursor->at) < n)
        return false;
    cursor->at += n;
    return true;
}

static bool skip_name(struct cursor *cursor)
{
    while (cursor->at < cursor->end) {
        unsigned len = *cursor->at;
        if ((len & LABEL_KIND) == LABEL_KIND)
            return skip(cursor, 2);
        if (len & LABEL_KIND || !skip(cursor, 1 + len))
            return false;
        if (len == 0)
            return true;
    }
    return false;
}

uint32_t dns_shortest_ttl(const unsigned char *message, size_t len)
{
    struct cursor cursor = {message, message + len};
    uint32_t shortest = UINT32_MAX;
    if (!skip(&cursor, HEADER_BYTES))
        return 0;
    for (unsigned n = get16(message + 4); n > 0; n--)
        if (!skip_name(&cursor) || !skip(&cursor, QUESTION_BYTES))
            return 0;
    for (unsigned n = get16(message + 6); n > 0; n--) {
        if (!skip_name(&cursor) || !skip(&cursor, RECORD_BYTES))
            return 0;
        const unsigned char *ttl = cursor.at - 6;
        uint32_t ttl_s = (uint32_t)get16(ttl) << 16 | get16(ttl + 2);
        if (ttl_s > INT32_MAX)
            ttl_s = 0;
        shortest = ttl_s < shortest ? ttl_s : shortest;
        if (!skip(&cursor, get16(cursor.at - 2)))
            return 0;
    }
    return shortest;
}
