/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/names.h"

#include "core/check.h"

#include <stdlib.h>

enum { NAME_BYTES_MAX = 254 }; /* RFC 1035: 253 and a final dot */

void tls_names_add(struct tls_names *names, struct slice text, uint32_t index)
{
    if (names->n == names->cap) {
        names->cap = names->cap ? names->cap * 2 : 8;
        names->all = realloc(names->all, names->cap * sizeof(*names->all));
        iso_assert(names->all != NULL);
    }
    char *copy = malloc(text.len + 1);
    iso_assert(copy != NULL);
    for (size_t i = 0; i < text.len; i++)
        copy[i] = ascii_lower(text.ptr[i]);
    names->all[names->n++] = (struct tls_name){slice_of(copy, text.len), index};
}

static int compare(const void *x, const void *y)
{
    const struct tls_name *a = x, *b = y;
    int order = slice_compare(a->text, b->text);
    return order ? order : (a->index > b->index) - (a->index < b->index);
}

void tls_names_sort(struct tls_names *names)
{
    if (names->n)
        qsort(names->all, names->n, sizeof(*names->all), compare);
}

void tls_names_fini(struct tls_names *names)
{
    for (uint32_t i = 0; i < names->n; i++)
        free((char *)names->all[i].text.ptr);
    free(names->all);
    *names = (struct tls_names){0};
}

static bool find(const struct tls_names *names, struct slice text, uint32_t *index)
{
    uint32_t lo = 0, hi = names->n;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (slice_compare(names->all[mid].text, text) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo == names->n || !slice_eq(names->all[lo].text, text))
        return false;
    *index = names->all[lo].index;
    return true;
}

bool tls_names_find(const struct tls_names *names, struct slice asked, uint32_t *index)
{
    char lower[NAME_BYTES_MAX + 1];
    if (asked.len == 0 || asked.len > NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < asked.len; i++)
        lower[i] = ascii_lower(asked.ptr[i]);
    struct slice text = slice_of(lower, asked.len);
    if (lower[text.len - 1] == '.')
        text.len--;
    if (find(names, text, index))
        return true;
    size_t dot = slice_find(text, '.');
    if (dot == 0 || dot >= text.len)
        return false;
    lower[dot - 1] = '*';
    return find(names, slice_of(text.ptr + dot - 1, text.len - dot + 1), index);
}
