/* SPDX-License-Identifier: Apache-2.0 */
#include "config/suggest.h"

#include "core/check.h"

enum { NAME_MAX_BYTES = 40, PREFIX_MIN = 3 };

static size_t fold(struct slice s, char out[NAME_MAX_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < s.len && n < NAME_MAX_BYTES; i++)
        if (s.ptr[i] != '_' && s.ptr[i] != '-' && s.ptr[i] != ' ')
            out[n++] = ascii_lower(s.ptr[i]);
    return n;
}

static unsigned min_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: Levenshtein with swaps of neighbours. */
static unsigned edits(const char *a, size_t a_len, const char *b, size_t b_len)
{
    unsigned rows[3][NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= b_len; j++)
        rows[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_len; i++) {
        unsigned *now = rows[i % 3], *before = rows[(i + 2) % 3], *earlier = rows[(i + 1) % 3];
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = min_of(min_of(before[j], now[j - 1]) + 1, before[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_of(now[j], earlier[j - 2] + 1);
        }
    }
    return rows[a_len % 3][b_len];
}

unsigned suggest_distance(struct slice typed, struct slice name)
{
    char a[NAME_MAX_BYTES], b[NAME_MAX_BYTES];
    if (typed.len > NAME_MAX_BYTES || typed.len == 0)
        return SUGGEST_FAR;
    size_t a_len = fold(typed, a), b_len = fold(name, b), shorter = a_len < b_len ? a_len : b_len;
    unsigned distance = edits(a, a_len, b, b_len);
    if (distance > 1 && shorter >= PREFIX_MIN && memcmp(a, b, shorter) == 0)
        distance = 1;
    /* One edit in a short word, about a third of a longer one: "tpye" is "type", "port" is not "host". */
    unsigned allowed = shorter <= 4 ? 1 : shorter <= 7 ? 2 : 3;
    return distance <= allowed ? distance : SUGGEST_FAR;
}

void suggest_offer(struct suggestion *best, struct slice typed, const char *candidate)
{
    unsigned distance = suggest_distance(typed, slice_str(candidate));
    if (distance == SUGGEST_FAR || (best->name && best->distance <= distance))
        return;
    *best = (struct suggestion){.name = candidate, .distance = distance};
}
