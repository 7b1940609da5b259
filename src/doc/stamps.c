/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/stamps.h"

#include "core/check.h"

#include <stdlib.h>

void stamps_init(struct stamps *stamps)
{
    *stamps = (struct stamps){0};
}

void stamps_fini(struct stamps *stamps)
{
    free(stamps->all);
    *stamps = (struct stamps){0};
}

void stamps_add(struct stamps *stamps, uint64_t stamp, void *thing)
{
    if (stamps->n == stamps->cap) {
        stamps->cap = stamps->cap ? stamps->cap * 2 : 64;
        stamps->all = realloc(stamps->all, stamps->cap * sizeof(*stamps->all));
        iso_assert(stamps->all != NULL);
    }
    stamps->all[stamps->n++] = (struct stamp_entry){stamp, thing};
}

static int compare(const void *a, const void *b)
{
    const struct stamp_entry *x = a, *y = b;
    return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

void *stamps_find(struct stamps *stamps, uint64_t stamp)
{
    uint32_t next = stamps->next++;
    if (!stamps->is_sorted && next < stamps->n && stamps->all[next].stamp == stamp)
        return stamps->all[next].thing;
    if (stamps->n == 0)
        return NULL;
    if (!stamps->is_sorted)
        qsort(stamps->all, stamps->n, sizeof(*stamps->all), compare);
    stamps->is_sorted = true;
    const struct stamp_entry wanted = {.stamp = stamp},
                             *found = bsearch(&wanted, stamps->all, stamps->n, sizeof(*stamps->all), compare);
    return found ? found->thing : NULL;
}
