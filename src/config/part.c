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

void config_parts_collect(struct stamps *stamps, const struct schema_key *key, const struct config *before)
{
    stamps_init(stamps);
    if (!before || !key->section->is_shared)
        return;
    const char *items = *(char *const *)((const char *)before + key->offset);
    uint32_t n = *(const uint32_t *)((const char *)before + key->count_offset);
    for (uint32_t i = 0; i < n; i++) {
        struct config_part *part = config_part_of(key->section, items + (size_t)key->section->bytes * i);
        if (part && part->item)
            stamps_add(stamps, part->stamp, part);
    }
}

struct config_part *config_parts_take(struct stamps *stamps, uint64_t stamp)
{
    struct config_part *part = stamps_find(stamps, stamp);
    if (part)
        part->refs++;
    return part;
}
