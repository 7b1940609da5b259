/* SPDX-License-Identifier: Apache-2.0 */
#include "config/decode.h"

#include "config/secret.h"
#include "config/suggest.h"
#include "config/types.h"
#include "core/hash.h"
#include "doc/doc_edit.h"

#include <stdio.h>

struct slice decode_absolute(struct decoder *decoder, struct slice path)
{
    if (path.len == 0 || path.ptr[0] == '/' || !decoder->base_dir || !*decoder->base_dir)
        return path;
    return slice_str(arena_printf(decoder->arena, "%s/%.*s", decoder->base_dir, SLICE_ARG(path)));
}

/* A number with a unit behind it: the usual way to write a duration elsewhere. */
static bool has_unit(const struct doc_node *node)
{
    struct slice s = node->text;
    size_t digits = 0;
    while (digits < s.len && ((s.ptr[digits] >= '0' && s.ptr[digits] <= '9') || s.ptr[digits] == '.'))
        digits++;
    return node->kind == DOC_STRING && digits > 0 && digits < s.len && s.len - digits <= 4 &&
           (s.ptr[digits] == ' ' || s.ptr[digits] == '%' || ascii_lower(s.ptr[digits]) >= 'a');
}

const char *decode_describe(struct decoder *decoder, const struct doc_node *node)
{
    const struct schema_key *key = decoder->key;
    bool is_container = node->kind == DOC_LIST || node->kind == DOC_MAP || node->kind == DOC_NULL;
    struct text shown;
    if (!key || !key->secret || is_container)
        return doc_describe(node, &decoder->doc->arena);
    text_init(&shown);
    secret_show(key, node->key, node->text, &shown);
    bool is_open = slice_eq(text_slice(&shown), node->text);
    text_fini(&shown);
    return is_open ? doc_describe(node, &decoder->doc->arena) : "a secret that is not shown here";
}

void decode_mismatch(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node)
{
    struct text expected;
    text_init(&expected);
    key->type->expect(key, &expected);
    const char *hint = "";
    bool numeric = key->type == &type_number || key->type == &type_seconds;
    if (numeric && has_unit(node))
        hint = strchr(key->name, '_') ? "; write the number alone, the unit is in the key's name"
                                      : "; write the number alone";
    else if (numeric && node->kind == DOC_STRING && node->text.len &&
             strspn(node->text.ptr, "0123456789") == node->text.len)
        hint = "; write it without quotes and without leading zeros";
    doc_fault(decoder->doc, DIAG_ERROR, node, "is %s, expected %.*s%s", decode_describe(decoder, node),
              SLICE_ARG(text_slice(&expected)), hint);
    text_fini(&expected);
}

static void list_keys(const struct schema_section *section, struct text *out)
{
    for (const struct schema_key *key = section->keys; key->name; key++)
        text_printf(out, "%s%s", key == section->keys ? "" : ", ", key->name);
}

/* Words that other balancers use for what has another name here. */
static const struct {
    const char *theirs, *ours;
} synonyms[] = {
    {"balance", "algorithm"},
    {"lb_policy", "algorithm"},
    {"policy", "algorithm"},
    {"strategy", "algorithm"},
    {"backends", "target_groups"},
    {"upstreams", "target_groups"},
    {"pools", "target_groups"},
    {"clusters", "target_groups"},
    {"servers", "targets"},
    {"endpoints", "targets"},
    {"frontends", "load_balancers"},
    {"address", "ip"},
    {"addr", "ip"},
    {"health", "health_check"},
    {"checks", "health_check"},
    {"retries", "retry"},
    {"default_backend", "default_target_group"},
    {"routes", "rules"},
    {"bind", "vip"},
    {"interval", "interval_s"},
    {"threads", "workers"},
    {"prefix", "path_prefix"},
    {"regex", "path_regex"},
};

struct search {
    struct slice name;
    struct suggestion best;
    char where[128]; /* the section of the best one */
};

static void search_section(struct search *search, const struct schema_section *section, const char *where)
{
    for (const struct schema_key *key = section->keys; key->name; key++) {
        const char *before = search->best.name;
        unsigned distance = search->best.distance;
        suggest_offer(&search->best, search->name, key->name);
        if (search->best.name != before || search->best.distance != distance)
            snprintf(search->where, sizeof(search->where), "%s", where);
    }
}

/* Looks through the sections that are `depth` below this one. */
static void search_level(struct search *search, const struct schema_section *section, const char *where,
                         unsigned depth)
{
    if (depth == 0)
        search_section(search, section, where);
    for (const struct schema_key *key = section->keys; depth > 0 && key->name; key++) {
        if (!key->section)
            continue;
        char below[128];
        snprintf(below, sizeof(below), "%s%s%s%s", where, *where ? "." : "", key->name,
                 schema_is_list(key) ? "[]" : "");
        search_level(search, key->section, below, depth - 1);
    }
}

/* Looks through the whole schema, top first: of a key in two places the one nearer to the top is meant. */
static void search_all(struct search *search)
{
    for (unsigned depth = 0; depth <= SCHEMA_DEPTH_MAX; depth++)
        search_level(search, &schema_config, "", depth);
}

static const char *translate(struct slice name)
{
    struct suggestion best = {0};
    for (size_t i = 0; i < iso_countof(synonyms); i++)
        suggest_offer(&best, name, synonyms[i].theirs);
    for (size_t i = 0; best.name && i < iso_countof(synonyms); i++)
        if (strcmp(best.name, synonyms[i].theirs) == 0)
            return synonyms[i].ours;
    return NULL;
}

/* In order: a key of this section that looks alike, the same word elsewhere, another balancer's word, a word
 * that looks alike elsewhere; else the keys there are. */
static void report_unknown(struct decoder *decoder, const struct schema_section *section,
                           const struct doc_node *node)
{
    struct doc *doc = decoder->doc;
    const char *ours = translate(node->key);
    struct search here = {.name = node->key}, anywhere = {.name = node->key};
    search_section(&here, section, "");
    search_all(&anywhere);
    bool elsewhere = anywhere.best.name && (anywhere.best.distance == 0 || !ours);
    const char *where = *anywhere.where ? anywhere.where : "the top of the document";
    if (here.best.name && (!ours || here.best.distance < 2)) {
        doc_fault_key(doc, DIAG_ERROR, node, "is not a key of %s, did you mean \"%s\"?", section->item,
                      here.best.name);
    } else if (elsewhere && anywhere.best.distance == 0) {
        doc_fault_key(doc, DIAG_ERROR, node, "is not a key of %s, \"%s\" belongs in %s", section->item,
                      anywhere.best.name, where);
    } else if (ours && schema_find(section, slice_str(ours))) {
        doc_fault_key(doc, DIAG_ERROR, node, "is not a key of %s, did you mean \"%s\"?", section->item, ours);
    } else if (ours) {
        anywhere = (struct search){.name = slice_str(ours)};
        search_all(&anywhere);
        doc_fault_key(doc, DIAG_ERROR, node, "is not a key of %s, did you mean \"%s\", which belongs in %s?",
                      section->item, ours, *anywhere.where ? anywhere.where : "the top of the document");
    } else if (elsewhere) {
        doc_fault_key(doc, DIAG_ERROR, node, "is not a key of %s, did you mean \"%s\", which belongs in %s?",
                      section->item, anywhere.best.name, where);
    } else {
        struct text keys;
        text_init(&keys);
        list_keys(section, &keys);
        doc_fault_key(doc, DIAG_ERROR, node, "is not a key of %s, expected one of %.*s", section->item,
                      SLICE_ARG(text_slice(&keys)));
        text_fini(&keys);
    }
}

/* The default as a node: a scalar, or "[a, b]" as a list of texts. */
static const struct doc_node *make_default(struct decoder *decoder, const struct schema_key *key)
{
    struct doc *doc = &decoder->default_values;
    struct doc_node *node = doc_new(doc, DOC_STRING);
    struct slice rest = slice_str(key->default_text), part;
    if (rest.len < 2 || rest.ptr[0] != '[') {
        doc_set_scalar(doc, node, rest, true);
        return node;
    }
    node->kind = DOC_LIST;
    rest = slice_of(rest.ptr + 1, rest.len - 2);
    while (rest.len && slice_next(&rest, ',', &part)) {
        struct doc_node *item = doc_new(doc, DOC_STRING);
        doc_set_scalar(doc, item, slice_trim(part), true);
        doc_link_last(node, item);
    }
    return node;
}

static const struct doc_node *default_node(struct decoder *decoder, const struct schema_key *key)
{
    size_t at = hash_mix64((uintptr_t)key) % DECODE_DEFAULTS_MAX, probes = 0;
    while (decoder->defaults[at].key && decoder->defaults[at].key != key) {
        iso_assert(++probes < DECODE_DEFAULTS_MAX);
        at = (at + 1) % DECODE_DEFAULTS_MAX;
    }
    if (!decoder->defaults[at].key) {
        decoder->defaults[at].key = key;
        decoder->defaults[at].node = make_default(decoder, key);
    }
    return decoder->defaults[at].node;
}

/* What stands in place of a secret where the API shows one is no value; true when it was reported. */
static bool refuse_hidden(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node)
{
    static const char what[] = "has \"" SECRET_MARK "\", which stands for a secret that is not shown, and "
                               "there is none here to keep: write the secret itself";
    unsigned before = doc_faults(decoder->doc);
    if (secret_is_hidden(key, slice_str(key->name), node))
        doc_fault(decoder->doc, DIAG_ERROR, node, "%s", what);
    for (const struct doc_node *child = node->kind == DOC_MAP ? node->first : NULL; child;
         child = child->next)
        if (secret_is_hidden(key, child->key, child))
            doc_fault(decoder->doc, DIAG_ERROR, child, "%s", what);
    return doc_faults(decoder->doc) > before;
}

static void decode_key(struct decoder *decoder, const struct schema_key *key, const struct doc_node *map,
                       void *holder)
{
    const struct doc_node *node = doc_get(map, key->name);
    if (schema_is_section(key)) {
        key->type->decode(decoder, key, node, holder);
        return;
    }
    decoder->key = key;
    if (key->default_text) /* also when the key is there: what a faulty value leaves behind */
        key->type->decode(decoder, key, default_node(decoder, key), holder);
    if (node && key->secret && refuse_hidden(decoder, key, node))
        return;
    if (node)
        key->type->decode(decoder, key, node, holder);
    else if (key->required && map)
        doc_fault(decoder->doc, DIAG_ERROR, map, "has no \"%s\": %s", key->name, key->doc);
}

static void report_no_map(struct decoder *decoder, const struct schema_section *section,
                          const struct doc_node *node)
{
    struct text keys;
    text_init(&keys);
    list_keys(section, &keys);
    doc_fault(decoder->doc, DIAG_ERROR, node, "is %s, expected %s: a map (keys: %.*s)",
              doc_describe(node, &decoder->doc->arena), section->item, SLICE_ARG(text_slice(&keys)));
    text_fini(&keys);
}

void decode_section(struct decoder *decoder, const struct schema_section *section,
                    const struct doc_node *node, void *holder)
{
    if (node && node->kind != DOC_MAP) {
        report_no_map(decoder, section, node);
        node = NULL;
    }
    for (const struct schema_key *key = section->keys; key->name; key++)
        decode_key(decoder, key, node, holder);
    for (const struct doc_node *child = node ? node->first : NULL; child && !doc_is_full(decoder->doc);
         child = child->next)
        if (!schema_find(section, child->key))
            report_unknown(decoder, section, child);
}

void decode_config(struct doc *doc, const char *base_dir, const struct config *before, struct config *config)
{
    struct decoder decoder = {.doc = doc, .arena = &config->arena, .base_dir = base_dir, .before = before};
    doc_init(&decoder.default_values, "", doc->diag);
    if (!doc->root || doc->root->kind == DOC_NULL)
        doc_broken(doc, 1, 1, "is empty, expected %s: a map", schema_config.item);
    else
        decode_section(&decoder, &schema_config, doc->root, config);
    doc_fini(&decoder.default_values);
}
