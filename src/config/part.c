/* SPDX-License-Identifier: Apache-2.0 */
#include "config/part.h"

#include <stdlib.h>

struct config_part *config_part_new(uint64_t stamp)
{
    struct config_part *part = calloc(1, sizeof(*part));
    iso_assert(part != NULL);
    arena_init(&part->arena);
    part->stamp = stamp;
    part->refs = 1;
    return part;
}

void config_part_unref(struct config_part **taken)
{
    struct config_part *part = *taken;
    *taken = NULL;
    if (!part || --part->refs > 0)
        return;
    arena_fini(&part->arena);
    free(part);
}

void config_part_settle(struct config_part *part, const struct schema_section *section, const void *item)
{
    part->item = arena_alloc(&part->arena, section->bytes);
    memcpy(part->item, item, section->bytes);
}

struct config_part *config_part_of(const struct schema_section *section, const void *item)
{
    return section->is_shared ? *(struct config_part *const *)((const char *)item + section->part_offset)
                              : NULL;
}

bool config_part_is_same(const struct schema_section *section, const void *a, const void *b)
{
    const struct config_part *part = config_part_of(section, a);
    return part && part == config_part_of(section, b);
}

void config_part_search_init(struct config_part_search *search, const struct schema_key *key,
                             const struct config *before)
{
    *search = (struct config_part_search){.section = key->section};
    if (!before || !key->section->is_shared)
        return;
    search->items = *(char *const *)((const char *)before + key->offset);
    search->n = *(const uint32_t *)((const char *)before + key->count_offset);
}

void config_part_search_fini(struct config_part_search *search)
{
    free(search->sorted);
    *search = (struct config_part_search){0};
}

static struct config_part *part_at(const struct config_part_search *search, uint32_t index)
{
    return config_part_of(search->section, search->items + (size_t)search->section->bytes * index);
}

static int compare_stamps(const void *a, const void *b)
{
    const struct config_part *x = *(struct config_part *const *)a, *y = *(struct config_part *const *)b;
    return x->stamp < y->stamp ? -1 : x->stamp > y->stamp;
}

static void sort(struct config_part_search *search)
{
    search->sorted = calloc(search->n + 1, sizeof(struct config_part *));
    iso_assert(search->sorted != NULL);
    for (uint32_t i = 0; i < search->n; i++)
        if (part_at(search, i))
            search->sorted[search->n_sorted++] = part_at(search, i);
    qsort(search->sorted, search->n_sorted, sizeof(struct config_part *), compare_stamps);
}

static struct config_part *find(struct config_part_search *search, uint64_t stamp)
{
    if (!search->sorted)
        sort(search);
    const struct config_part wanted = {.stamp = stamp}, *key = &wanted;
    struct config_part **found =
        bsearch(&key, search->sorted, search->n_sorted, sizeof(struct config_part *), compare_stamps);
    return found ? *found : NULL;
}

struct config_part *config_part_search_take(struct config_part_search *search, uint64_t stamp)
{
    if (search->n == 0)
        return NULL;
    struct config_part *part = search->next < search->n ? part_at(search, search->next) : NULL;
    search->next++;
    if (!part || part->stamp != stamp)
        part = find(search, stamp);
    if (!part || !part->item)
        return NULL;
    part->refs++;
    return part;
}
