/* SPDX-License-Identifier: Apache-2.0 */
/* Two values are equal when the schema prints them alike, so this file knows no key by name. */
#include "config/diff.h"

#include "config/names.h"
#include "config/part.h"
#include "config/same.h"
#include "config/schema.h"

enum { VALUE_BYTES_MAX = 120 }; /* of a value that is shown; a longer one is only said to differ */

struct diff {
    struct arena *arena;
    struct config_change *first, *last;
};

static void add_change(struct diff *diff, enum config_change_kind kind, const char *object, struct slice what)
{
    struct config_change *change = arena_new(diff->arena, struct config_change);
    *change =
        (struct config_change){.kind = kind, .object = object, .what = arena_slice(diff->arena, what).ptr};
    if (diff->last)
        diff->last->next = change;
    else
        diff->first = change;
    diff->last = change;
}

static uint32_t count_of(const struct schema_key *key, const void *holder)
{
    return *(const uint32_t *)((const char *)holder + key->count_offset);
}

static const char *item_of(const struct schema_key *key, const void *holder, uint32_t index)
{
    return *(char *const *)((const char *)holder + key->offset) + (size_t)key->section->bytes * index;
}

static struct slice identity_of(const struct schema_section *section, const void *item)
{
    return *(const struct slice *)((const char *)item + section->identity_offset);
}

static const char *object_path(struct diff *diff, const struct schema_key *key, const void *item)
{
    return arena_printf(diff->arena, "%s/%.*s", key->name, SLICE_ARG(identity_of(key->section, item)));
}

/* The items of a list by their identities; index is their place in the list. */
static void collect(struct names *names, const struct schema_key *key, const void *holder)
{
    names_init(names);
    for (uint32_t i = 0; i < count_of(key, holder); i++)
        names_add(names, identity_of(key->section, item_of(key, holder, i)), i, NULL);
    names_sort(names);
}

static void begin_change(struct text *line, const char *prefix, const char *name)
{
    text_printf(line, "%s%s%s", line->len ? "; " : "", prefix, name);
}

static void show(struct text *line, struct slice value)
{
    if (value.len == 0)
        text_printf(line, "unset");
    else
        text_add(line, value);
}

/* "10 -> 20", or that it changed where nothing may be said or the values are long. */
static void show_change(const struct schema_key *key, const void *from, const void *to, struct text *line)
{
    struct text before, after;
    text_init(&before);
    text_init(&after);
    key->type->print(key, from, SCHEMA_HIDDEN, &before);
    key->type->print(key, to, SCHEMA_HIDDEN, &after);
    bool is_same = slice_eq(text_slice(&before), text_slice(&after)); /* but for secrets */
    if (is_same || before.len > VALUE_BYTES_MAX || after.len > VALUE_BYTES_MAX) {
        text_printf(line, " changed");
    } else {
        text_printf(line, " ");
        show(line, text_slice(&before));
        text_printf(line, " -> ");
        show(line, text_slice(&after));
    }
    text_fini(&before);
    text_fini(&after);
}

static void diff_value(const struct schema_key *key, const void *from, const void *to, const char *prefix,
                       struct text *line)
{
    struct text before, after;
    text_init(&before);
    text_init(&after);
    key->type->print(key, from, SCHEMA_PLAIN, &before);
    key->type->print(key, to, SCHEMA_PLAIN, &after);
    if (!slice_eq(text_slice(&before), text_slice(&after))) {
        begin_change(line, prefix, key->name);
        show_change(key, from, to, line);
    }
    text_fini(&before);
    text_fini(&after);
}

/* Writes the items of `of` that `others` lacks: " +A +B". True when there was one. */
static bool list_missing(const struct schema_key *key, const void *of, const struct names *others, char sign,
                         struct text *line)
{
    bool any = false;
    for (uint32_t i = 0; i < count_of(key, of); i++) {
        struct slice name = identity_of(key->section, item_of(key, of, i));
        if (names_find(others, name))
            continue;
        text_printf(line, " %c%.*s", sign, SLICE_ARG(name));
        any = true;
    }
    return any;
}

static void diff_section(struct diff *diff, const struct schema_section *section, const void *from,
                         const void *to, const char *prefix, struct text *line);

/* Items that are part of their object: "targets +A -B; targets/C weight 1 -> 2". */
static void diff_parts(struct diff *diff, const struct schema_key *key, const void *from, const void *to,
                       const char *prefix, struct text *line)
{
    struct names before, after;
    struct text moves;
    text_init(&moves);
    collect(&before, key, from);
    collect(&after, key, to);
    bool added = list_missing(key, to, &before, '+', &moves),
         removed = list_missing(key, from, &after, '-', &moves);
    if (added || removed) {
        begin_change(line, prefix, key->name);
        text_add(line, text_slice(&moves));
    }
    for (uint32_t i = 0; i < count_of(key, to); i++) {
        const char *item = item_of(key, to, i);
        const struct name *old = names_find(&before, identity_of(key->section, item));
        if (old && !config_same(key->section, item_of(key, from, old->index), item))
            diff_section(diff, key->section, item_of(key, from, old->index), item,
                         arena_printf(diff->arena, "%s%s ", prefix, object_path(diff, key, item)), line);
    }
    text_fini(&moves);
    names_fini(&before);
    names_fini(&after);
}

/* The keys of one object but for the objects below it. */
static void diff_section(struct diff *diff, const struct schema_section *section, const void *from,
                         const void *to, const char *prefix, struct text *line)
{
    for (const struct schema_key *key = section->keys; key->name; key++) {
        bool is_list = schema_is_list(key);
        if (is_list && key->section->is_object)
            continue;
        if (schema_is_section(key) && !key->optional)
            diff_section(diff, key->section, (const char *)from + key->offset, (const char *)to + key->offset,
                         arena_printf(diff->arena, "%s%s.", prefix, key->name), line);
        else if (is_list && key->section->identity_offset != SCHEMA_NO_OFFSET)
            diff_parts(diff, key, from, to, prefix, line);
        else
            diff_value(key, from, to, prefix, line);
    }
}

static void diff_objects(struct diff *diff, const struct schema_section *section, const void *from,
                         const void *to);

static void diff_object(struct diff *diff, const struct schema_section *section, const void *from,
                        const void *to, const char *object)
{
    struct text line;
    text_init(&line);
    diff_section(diff, section, from, to, "", &line);
    if (line.len)
        add_change(diff, CONFIG_CHANGED, object, text_slice(&line));
    text_fini(&line);
    diff_objects(diff, section, from, to);
}

/* The same objects in the same order. */
static bool has_same_order(const struct schema_key *key, const void *from, const void *to)
{
    if (count_of(key, from) != count_of(key, to))
        return false;
    for (uint32_t i = 0; i < count_of(key, to); i++) {
        const char *old = item_of(key, from, i), *item = item_of(key, to, i);
        if (!config_part_is_same(key->section, old, item) &&
            !slice_eq(identity_of(key->section, old), identity_of(key->section, item)))
            return false;
    }
    return true;
}

static void diff_changed(struct diff *diff, const struct schema_key *key, const void *old, const void *item)
{
    if (!config_same(key->section, old, item))
        diff_object(diff, key->section, old, item, object_path(diff, key, item));
}

/* One list of objects, each with a change of its own. */
static void diff_object_list(struct diff *diff, const struct schema_key *key, const void *from,
                             const void *to)
{
    static const char nothing[4096]; /* an object before it was there, after it is gone */
    iso_assert(key->section->bytes <= sizeof(nothing));
    if (has_same_order(key, from, to)) {
        for (uint32_t i = 0; i < count_of(key, to); i++)
            diff_changed(diff, key, item_of(key, from, i), item_of(key, to, i));
        return;
    }
    struct names before, after;
    collect(&before, key, from);
    collect(&after, key, to);
    for (uint32_t i = 0; i < count_of(key, from); i++) {
        if (names_find(&after, identity_of(key->section, item_of(key, from, i))))
            continue;
        const char *object = object_path(diff, key, item_of(key, from, i));
        add_change(diff, CONFIG_REMOVED, object, SLICE("removed"));
        diff_objects(diff, key->section, item_of(key, from, i), nothing);
    }
    for (uint32_t i = 0; i < count_of(key, to); i++) {
        const char *item = item_of(key, to, i);
        const struct name *old = names_find(&before, identity_of(key->section, item));
        if (old) {
            diff_changed(diff, key, item_of(key, from, old->index), item);
            continue;
        }
        add_change(diff, CONFIG_ADDED, object_path(diff, key, item), SLICE("added"));
        diff_objects(diff, key->section, nothing, item);
    }
    names_fini(&before);
    names_fini(&after);
}

static void diff_objects(struct diff *diff, const struct schema_section *section, const void *from,
                         const void *to)
{
    for (const struct schema_key *key = section->keys; key->name; key++)
        if (schema_is_list(key) && key->section->is_object)
            diff_object_list(diff, key, from, to);
}

const struct config_change *config_diff(const struct config *from, const struct config *to,
                                        struct arena *arena)
{
    struct diff diff = {.arena = arena};
    diff_object(&diff, &schema_config, from, to, "config");
    return diff.first;
}
