/* SPDX-License-Identifier: Apache-2.0 */
/* Values of several parts: lists, maps, sets of switches, ranges. A list of single values may also be written
 * as the value alone. */
#include "config/types_internal.h"

#include "config/part.h"
#include "config/suggest.h"

/* The items of a list, or the one value that stands for it: `for (item = first_item(node); item;
 * item = next_item(node, item))`. */
static const struct doc_node *first_item(const struct doc_node *node)
{
    return node->kind == DOC_LIST ? node->first : node;
}

static const struct doc_node *next_item(const struct doc_node *node, const struct doc_node *item)
{
    return node->kind == DOC_LIST ? item->next : NULL;
}

static uint32_t count_items(const struct doc_node *node)
{
    return node->kind == DOC_LIST ? node->n : 1;
}

static uint32_t *count_of(const struct schema_key *key, void *holder)
{
    return (uint32_t *)((char *)holder + key->count_offset);
}

static uint32_t get_count(const struct schema_key *key, const void *holder)
{
    return *(const uint32_t *)((const char *)holder + key->count_offset);
}

/* An empty list where one value at least is needed says nothing; it is refused rather than guessed at. */
static bool is_usable_list(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node)
{
    if (node->kind != DOC_MAP && node->kind != DOC_NULL &&
        (node->kind != DOC_LIST || node->n > 0 || !key->min))
        return true;
    decode_mismatch(decoder, key, node);
    return false;
}

static void decode_texts(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                         void *holder)
{
    if (!is_usable_list(decoder, key, node))
        return;
    struct slice *texts = arena_array(decoder->arena, struct slice, count_items(node));
    uint32_t n = 0;
    for (const struct doc_node *item = first_item(node); item && !doc_is_full(decoder->doc);
         item = next_item(node, item))
        n += types_read_text(decoder, key, item, &texts[n]);
    *(struct slice **)((char *)holder + key->offset) = texts;
    *count_of(key, holder) = n;
}

static void print_texts(const struct schema_key *key, const void *holder, enum schema_view view,
                        struct text *out)
{
    const struct slice *texts = *(struct slice *const *)((const char *)holder + key->offset);
    uint32_t n = get_count(key, holder);
    if (n == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        text_printf(out, i ? ", " : "[");
        types_print_word(texts[i], out);
    }
    text_printf(out, "]");
}

static void expect_texts(const struct schema_key *key, struct text *out)
{
    text_printf(out, "a list of %s", key->expected ? key->expected : "texts");
}

const struct schema_type type_texts = {decode_texts, print_texts, expect_texts};

static void decode_prefixes(struct decoder *decoder, const struct schema_key *key,
                            const struct doc_node *node, void *holder)
{
    if (!is_usable_list(decoder, key, node))
        return;
    struct ip_prefix *prefixes = arena_array(decoder->arena, struct ip_prefix, count_items(node));
    uint32_t n = 0;
    for (const struct doc_node *item = first_item(node); item && !doc_is_full(decoder->doc);
         item = next_item(node, item)) {
        struct slice text = item->text;
        if (item->kind == DOC_STRING && ip_prefix_parse(text, &prefixes[n])) {
            n++;
            continue;
        }
        struct ip_addr addr;
        const char *why =
            item->kind == DOC_STRING && ip_parse(slice_of(text.ptr, slice_find(text, '/')), &addr)
                ? "; bits behind the prefix length must be 0"
                : "";
        doc_fault(decoder->doc, DIAG_ERROR, item,
                  "is %s, expected an address or a prefix such as 10.0.0.0/8 or 2001:db8::/32%s",
                  doc_describe(item, &decoder->doc->arena), why);
    }
    *(struct ip_prefix **)((char *)holder + key->offset) = prefixes;
    *count_of(key, holder) = n;
}

static void print_prefixes(const struct schema_key *key, const void *holder, enum schema_view view,
                           struct text *out)
{
    const struct ip_prefix *prefixes = *(struct ip_prefix *const *)((const char *)holder + key->offset);
    uint32_t n = get_count(key, holder);
    for (uint32_t i = 0; i < n; i++) {
        char ip[IP_TEXT_MAX];
        size_t len = ip_print(&prefixes[i].addr, ip);
        text_printf(out, "%s%.*s/%u", i ? ", " : "[", (int)len, ip, prefixes[i].bits);
    }
    if (n)
        text_printf(out, "]");
}

static void expect_prefixes(const struct schema_key *key, struct text *out)
{
    text_printf(out, "a list of addresses or prefixes such as 10.0.0.0/8");
}

const struct schema_type type_prefixes = {decode_prefixes, print_prefixes, expect_prefixes};

static void decode_switches(struct decoder *decoder, const struct schema_key *key,
                            const struct doc_node *node, void *holder)
{
    if (!is_usable_list(decoder, key, node))
        return;
    for (const struct schema_choice *choice = key->choices; choice->name; choice++)
        *(bool *)((char *)holder + choice->value) = false;
    for (const struct doc_node *item = first_item(node); item && !doc_is_full(decoder->doc);
         item = next_item(node, item)) {
        const struct schema_choice *choice = types_find_choice(decoder, key, item);
        if (choice)
            *(bool *)((char *)holder + choice->value) = true;
    }
}

static void print_switches(const struct schema_key *key, const void *holder, enum schema_view view,
                           struct text *out)
{
    const char *joint = "[";
    for (const struct schema_choice *choice = key->choices; choice->name; choice++) {
        if (!*(const bool *)((const char *)holder + choice->value))
            continue;
        text_printf(out, "%s%s", joint, choice->name);
        joint = ", ";
    }
    text_printf(out, "%s", *joint == '[' ? "[]" : "]");
}

static void expect_switches(const struct schema_key *key, struct text *out)
{
    text_printf(out, "a list of ");
    for (const struct schema_choice *choice = key->choices; choice->name; choice++)
        text_printf(out, "%s%s", choice == key->choices ? "" : ", ", choice->name);
}

const struct schema_type type_switches = {decode_switches, print_switches, expect_switches};

enum { STATUS_MIN = 100, STATUS_MAX = 599 };

static bool parse_range(struct slice text, struct config_status_range *range)
{
    size_t dash = slice_find(text, '-');
    uint64_t from, to;
    if (!slice_u64(slice_of(text.ptr, dash), &from))
        return false;
    to = from;
    if (dash < text.len && !slice_u64(slice_of(text.ptr + dash + 1, text.len - dash - 1), &to))
        return false;
    if (from < STATUS_MIN || to > STATUS_MAX || from > to)
        return false;
    *range = (struct config_status_range){.from = (uint16_t)from, .to = (uint16_t)to};
    return true;
}

static void decode_statuses(struct decoder *decoder, const struct schema_key *key,
                            const struct doc_node *node, void *holder)
{
    if (node->kind != DOC_STRING && node->kind != DOC_INTEGER) {
        decode_mismatch(decoder, key, node);
        return;
    }
    size_t commas = 0;
    for (size_t i = 0; i < node->text.len; i++)
        commas += node->text.ptr[i] == ',';
    struct config_status_range *ranges = arena_array(decoder->arena, struct config_status_range, commas + 1);
    uint32_t n = 0;
    struct slice rest = node->text, part;
    while (slice_next(&rest, ',', &part)) {
        if (!parse_range(slice_trim(part), &ranges[n++])) {
            decode_mismatch(decoder, key, node);
            return;
        }
    }
    *(struct config_status_range **)((char *)holder + key->offset) = ranges;
    *count_of(key, holder) = n;
}

static void print_statuses(const struct schema_key *key, const void *holder, enum schema_view view,
                           struct text *out)
{
    const struct config_status_range *ranges =
        *(struct config_status_range *const *)((const char *)holder + key->offset);
    uint32_t n = get_count(key, holder);
    for (uint32_t i = 0; i < n; i++) {
        text_printf(out, "%s%u", i ? "," : "\"", ranges[i].from);
        if (ranges[i].to != ranges[i].from)
            text_printf(out, "-%u", ranges[i].to);
    }
    if (n)
        text_printf(out, "\"");
}

static void expect_statuses(const struct schema_key *key, struct text *out)
{
    text_printf(out, "statuses from 100 to 599 such as \"200-399\" or \"200,204\"");
}

const struct schema_type type_statuses = {decode_statuses, print_statuses, expect_statuses};

/* key->check looks at the values; names are checked by key->check_name. */
static void decode_pairs(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                         void *holder)
{
    if (node->kind != DOC_MAP) {
        decode_mismatch(decoder, key, node);
        return;
    }
    struct config_pair *pairs = arena_array(decoder->arena, struct config_pair, node->n);
    uint32_t n = 0;
    for (const struct doc_node *child = node->first; child && !doc_is_full(decoder->doc);
         child = child->next) {
        struct slice name = child->key;
        if (child->kind == DOC_NULL || child->kind == DOC_LIST || child->kind == DOC_MAP) {
            doc_fault(decoder->doc, DIAG_ERROR, child, "is %s, expected a text",
                      doc_describe(child, &decoder->doc->arena));
            continue;
        }
        if ((key->check_name && !key->check_name(decoder, child, &name)) ||
            !types_read_text(decoder, key, child, &pairs[n].value))
            continue;
        pairs[n++].name = arena_slice(decoder->arena, name);
    }
    *(struct config_pair **)((char *)holder + key->offset) = pairs;
    *count_of(key, holder) = n;
}

static void print_pairs(const struct schema_key *key, const void *holder, enum schema_view view,
                        struct text *out)
{
    const struct config_pair *pairs = *(struct config_pair *const *)((const char *)holder + key->offset);
    uint32_t n = get_count(key, holder);
    for (uint32_t i = 0; i < n; i++) {
        text_printf(out, i ? ", " : "{");
        types_print_word(pairs[i].name, out);
        text_printf(out, ": ");
        types_print_value(key, pairs[i].name, pairs[i].value, view, out);
    }
    if (n)
        text_printf(out, "}");
}

static void expect_pairs(const struct schema_key *key, struct text *out)
{
    text_printf(out, "a map of %s", key->expected ? key->expected : "texts");
}

const struct schema_type type_pairs = {decode_pairs, print_pairs, expect_pairs};

static void expect_section(const struct schema_key *key, struct text *out)
{
    text_printf(out, "%s: a map", key->section->item);
}

static void print_section_of(const struct schema_section *section, const void *holder, enum schema_view view,
                             struct text *out)
{
    const char *joint = "{";
    for (const struct schema_key *key = section->keys; key->name; key++) {
        struct text value;
        text_init(&value);
        key->type->print(key, holder, view, &value);
        if (value.len) {
            text_printf(out, "%s%s: ", joint, key->name);
            text_add(out, text_slice(&value));
            joint = ", ";
        }
        text_fini(&value);
    }
    if (*joint == ',')
        text_printf(out, "}");
}

static void decode_as_section(struct decoder *decoder, const struct schema_key *key,
                              const struct doc_node *node, void *holder)
{
    if (!node && key->optional)
        return;
    if (node && key->present_offset != SCHEMA_NO_OFFSET)
        *(bool *)((char *)holder + key->present_offset) = true;
    decode_section(decoder, key->section, node, (char *)holder + key->offset);
}

static void print_section(const struct schema_key *key, const void *holder, enum schema_view view,
                          struct text *out)
{
    if (key->present_offset != SCHEMA_NO_OFFSET &&
        !*(const bool *)((const char *)holder + key->present_offset))
        return;
    print_section_of(key->section, (const char *)holder + key->offset, view, out);
}

const struct schema_type type_section = {decode_as_section, print_section, expect_section};

/* An item that is as it was is taken over. Another one that may be shared later gets memory of its own. */
static void decode_item(struct decoder *decoder, const struct schema_section *section, struct stamps *before,
                        const struct doc_node *node, void *item)
{
    if (!section->is_shared) {
        decode_section(decoder, section, node, item);
        return;
    }
    struct config_part *part = config_parts_take(before, node->stamp);
    if (part) {
        memcpy(item, part->item, section->bytes);
    } else {
        struct arena *around = decoder->arena;
        unsigned said = doc_said(decoder->doc);
        part = config_part_new(node->stamp);
        decoder->arena = &part->arena;
        decode_section(decoder, section, node, item);
        decoder->arena = around;
        part->is_quiet = doc_said(decoder->doc) == said;
    }
    *(struct config_part **)((char *)item + section->part_offset) = part;
}

static void decode_items(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                         void *holder)
{
    if (node->kind != DOC_LIST) {
        decode_mismatch(decoder, key, node);
        return;
    }
    char *items = arena_alloc(decoder->arena, (size_t)key->section->bytes * node->n);
    uint32_t n = 0;
    struct stamps before;
    config_parts_collect(&before, key, decoder->before);
    for (const struct doc_node *item = node->first; item; item = item->next, n++)
        if (!doc_is_full(decoder->doc))
            decode_item(decoder, key->section, &before, item, items + (size_t)key->section->bytes * n);
    stamps_fini(&before);
    *(void **)((char *)holder + key->offset) = items;
    *count_of(key, holder) = n;
}

static void print_items(const struct schema_key *key, const void *holder, enum schema_view view,
                        struct text *out)
{
    const char *items = *(char *const *)((const char *)holder + key->offset);
    uint32_t n = get_count(key, holder);
    for (uint32_t i = 0; i < n; i++) {
        text_printf(out, i ? ", " : "[");
        print_section_of(key->section, items + (size_t)key->section->bytes * i, view, out);
    }
    if (n)
        text_printf(out, "]");
}

static void expect_items(const struct schema_key *key, struct text *out)
{
    text_printf(out, "a list, each item %s: a map", key->section->item);
}

const struct schema_type type_items = {decode_items, print_items, expect_items};

static const struct {
    const char *name;
    enum config_hash_kind kind;
    bool named;
} hash_keys[] = {
    {"client_ip", CONFIG_HASH_CLIENT_IP, false}, {"path", CONFIG_HASH_PATH, false},
    {"header", CONFIG_HASH_HEADER, true},        {"cookie", CONFIG_HASH_COOKIE, true},
    {"query", CONFIG_HASH_QUERY, true},
};

/* `client_ip`, `path`, `{ header: NAME }`, `{ cookie: NAME }`, `{ query: NAME }`. */
static void decode_hash_key(struct decoder *decoder, const struct schema_key *key,
                            const struct doc_node *node, void *holder)
{
    struct config_target_group *group = holder;
    bool named = node->kind == DOC_MAP && node->n == 1 && node->first->kind == DOC_STRING;
    struct slice word = named ? node->first->key : node->text;
    for (size_t i = 0; i < iso_countof(hash_keys); i++) {
        if (hash_keys[i].named != named || !slice_eq(word, slice_str(hash_keys[i].name)))
            continue;
        group->hash_kind = hash_keys[i].kind;
        group->hash_name = (struct slice){0};
        if (named)
            types_read_text(decoder, key, node->first, &group->hash_name);
        return;
    }
    decode_mismatch(decoder, key, node);
}

static void print_hash_key(const struct schema_key *key, const void *holder, enum schema_view view,
                           struct text *out)
{
    const struct config_target_group *group = holder;
    for (size_t i = 0; i < iso_countof(hash_keys); i++) {
        if (hash_keys[i].kind != group->hash_kind)
            continue;
        if (!hash_keys[i].named) {
            text_printf(out, "%s", hash_keys[i].name);
            return;
        }
        text_printf(out, "{%s: ", hash_keys[i].name);
        types_print_word(group->hash_name, out);
        text_printf(out, "}");
    }
}

static void expect_hash_key(const struct schema_key *key, struct text *out)
{
    text_printf(out, "client_ip, path, {header: NAME}, {cookie: NAME} or {query: NAME}");
}

const struct schema_type type_hash_key = {decode_hash_key, print_hash_key, expect_hash_key};
