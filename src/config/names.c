/* SPDX-License-Identifier: Apache-2.0 */
#include "config/names.h"

#include <stdlib.h>

void names_init(struct names *names)
{
    *names = (struct names){0};
}

void names_fini(struct names *names)
{
    free(names->all);
    *names = (struct names){0};
}

void names_add(struct names *names, struct slice text, uint32_t index, const struct doc_node *node)
{
    if (names->n == names->cap) {
        names->cap = names->cap ? names->cap * 2 : 16;
        names->all = realloc(names->all, names->cap * sizeof(*names->all));
        iso_assert(names->all != NULL);
    }
    names->all[names->n++] = (struct name){.text = text, .index = index, .node = node};
}

static int compare_texts(struct slice a, struct slice b)
{
    size_t common = a.len < b.len ? a.len : b.len;
    int order = common ? memcmp(a.ptr, b.ptr, common) : 0;
    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

static int compare_names(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = compare_texts(x->text, y->text);
    return order ? order : x->index < y->index ? -1 : x->index > y->index;
}

void names_sort(struct names *names)
{
    if (names->n)
        qsort(names->all, names->n, sizeof(*names->all), compare_names);
}

const struct name *names_find(const struct names *names, struct slice text)
{
    uint32_t low = 0, high = names->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (compare_texts(names->all[middle].text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < names->n && slice_eq(names->all[low].text, text) ? &names->all[low] : NULL;
}

void names_each_twin(const struct names *names, struct doc *doc,
                     void (*report)(struct doc *doc, const struct name *twin, const struct name *first))
{
    for (uint32_t i = 1, first = 0; i < names->n; i++) {
        if (slice_eq(names->all[i].text, names->all[first].text))
            report(doc, &names->all[i], &names->all[first]);
        else
            first = i;
    }
}
