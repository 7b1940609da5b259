/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/doc.h"

#include "core/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE_MAX = 900, DESCRIBE_BYTES = 60, STAMPS_AT_ONCE = 1 << 20 };

void doc_init(struct doc *doc, const char *name, struct iso_diag *diag)
{
    *doc = (struct doc){
        .name = name, .diag = diag, .errors_before = diag->errors, .warnings_before = diag->warnings};
    arena_init(&doc->arena);
}

void doc_fini(struct doc *doc)
{
    arena_fini(&doc->arena);
    *doc = (struct doc){0};
}

unsigned doc_faults(const struct doc *doc)
{
    return doc->diag->errors - doc->errors_before;
}

bool doc_is_full(const struct doc *doc)
{
    return doc_faults(doc) >= DOC_FAULTS_MAX;
}

unsigned doc_said(const struct doc *doc)
{
    return doc->diag->errors + doc->diag->warnings + doc->unsaid;
}

/* A document takes many at once, so that reading a large one is no contest for a cache line. */
uint64_t doc_new_stamp(struct doc *doc)
{
    static _Atomic uint64_t taken = STAMPS_AT_ONCE;
    if (doc->last_stamp % STAMPS_AT_ONCE == 0)
        doc->last_stamp = atomic_fetch_add_explicit(&taken, STAMPS_AT_ONCE, memory_order_relaxed);
    return ++doc->last_stamp;
}

void doc_close_faults(struct doc *doc)
{
    if (doc->unsaid || doc_is_full(doc))
        diag_add(doc->diag, doc_is_full(doc) ? DIAG_ERROR : DIAG_WARNING, doc->name, 0, 0, "",
                 "has more faults than these; they show when these are mended");
}

void doc_link_last(struct doc_node *parent, struct doc_node *node)
{
    node->parent = parent;
    node->index = parent->n++;
    if (parent->last)
        parent->last->next = node;
    else
        parent->first = node;
    parent->last = node;
}

struct doc_node *doc_add(struct doc *doc, struct doc_node *parent, struct slice key, enum doc_kind kind,
                         uint32_t line, uint32_t column)
{
    uint32_t depth = parent ? parent->depth + 1 : 1;
    if (depth > DOC_DEPTH_MAX) {
        doc_broken(doc, line, column, "is nested deeper than %d levels", DOC_DEPTH_MAX);
        return NULL;
    }
    if (doc->n_nodes >= DOC_NODES_MAX) {
        doc_broken(doc, line, column, "has more than %d values", DOC_NODES_MAX);
        return NULL;
    }
    struct doc_node *node = arena_new(&doc->arena, struct doc_node);
    *node = (struct doc_node){.kind = kind,
                              .depth = depth,
                              .line = line,
                              .column = column,
                              .key_line = line,
                              .key_column = column,
                              .stamp = doc_new_stamp(doc),
                              .parent = parent};
    if (key.ptr)
        node->key = arena_slice(&doc->arena, key);
    doc->n_nodes++;
    if (!parent) {
        iso_assert(!doc->root);
        doc->root = node;
        return node;
    }
    doc_link_last(parent, node);
    return node;
}

static size_t count_digits(const char *at)
{
    size_t n = 0;
    while (at[n] >= '0' && at[n] <= '9')
        n++;
    return n;
}

/* The numbers of JSON (RFC 8259 6), in YAML too: a leading zero, a plus sign, hexadecimal or octal mean
 * different things to different readers and stay texts, which a key that wants a number then refuses. */
static bool parse_number(struct doc_node *node)
{
    const char *at = node->text.ptr, *end = at + node->text.len;
    bool whole = true;
    at += *at == '-';
    size_t digits = count_digits(at);
    if (digits == 0 || (digits > 1 && *at == '0'))
        return false;
    at += digits;
    if (*at == '.') {
        whole = false;
        digits = count_digits(++at);
        if (digits == 0)
            return false;
        at += digits;
    }
    if (*at == 'e' || *at == 'E') {
        whole = false;
        at += at[1] == '+' || at[1] == '-' ? 2 : 1;
        digits = count_digits(at);
        if (digits == 0)
            return false;
        at += digits;
    }
    if (at != end)
        return false;

    uint64_t magnitude;
    bool negative = *node->text.ptr == '-';
    if (whole && slice_u64(slice_of(node->text.ptr + negative, node->text.len - negative), &magnitude) &&
        magnitude <= INT64_MAX) {
        node->kind = DOC_INTEGER;
        node->value.integer = negative ? -(int64_t)magnitude : (int64_t)magnitude;
    } else { /* also 2^63 and beyond: larger than any key allows */
        node->kind = DOC_REAL;
        node->value.real = strtod(node->text.ptr, NULL);
    }
    return true;
}

void doc_set_scalar(struct doc *doc, struct doc_node *node, struct slice text, bool plain)
{
    node->text = arena_slice(&doc->arena, text);
    node->kind = DOC_STRING;
    if (!plain)
        return;
    if (text.len == 0 || slice_eq(text, SLICE("~")) || slice_eq(text, SLICE("null"))) {
        node->kind = DOC_NULL;
    } else if (slice_eq(text, SLICE("true")) || slice_eq(text, SLICE("false"))) {
        node->kind = DOC_BOOL;
        node->value.boolean = text.ptr[0] == 't';
    } else {
        parse_number(node);
    }
}

static int compare_keys(const void *a, const void *b)
{
    const struct doc_node *x = *(const struct doc_node *const *)a, *y = *(const struct doc_node *const *)b;
    size_t common = x->key.len < y->key.len ? x->key.len : y->key.len;
    int order = memcmp(x->key.ptr, y->key.ptr, common);
    if (order == 0)
        order = x->key.len < y->key.len ? -1 : x->key.len > y->key.len;
    return order ? order : x->index < y->index ? -1 : 1;
}

/* Sorts a copy instead of comparing all pairs: a map may have as many keys as a document has values. */
void doc_check_keys(struct doc *doc, const struct doc_node *map)
{
    if (map->n < 2)
        return;
    struct doc_node **nodes = calloc(map->n, sizeof(*nodes));
    iso_assert(nodes != NULL);
    uint32_t n = 0;
    for (struct doc_node *child = map->first; child; child = child->next)
        nodes[n++] = child;
    qsort(nodes, n, sizeof(*nodes), compare_keys);
    for (uint32_t i = 1; i < n; i++)
        if (slice_eq(nodes[i]->key, nodes[i - 1]->key))
            doc_fault_key(doc, DIAG_ERROR, nodes[i], "is given twice; the first is on line %u",
                          nodes[i - 1]->key_line);
    free(nodes);
}

bool doc_check_text(struct doc *doc, struct slice text)
{
    if (text.len > DOC_BYTES_MAX) {
        doc_broken(doc, 0, 0, "is longer than %d bytes", DOC_BYTES_MAX);
        return false;
    }
    size_t line = 1, line_start = 0, at = 0;
    while (at < text.len) {
        unsigned char c = (unsigned char)text.ptr[at];
        size_t len = utf8_len(text.ptr + at, text.len - at);
        if (len == 0 || c == 0) {
            doc_broken(doc, line, at - line_start + 1,
                       len ? "the byte 0x%02x has no place in a text" : "the byte 0x%02x is not UTF-8", c);
            return false;
        }
        if (c == '\n') {
            line++;
            line_start = at + 1;
        }
        at += len;
    }
    return true;
}

const struct doc_node *doc_get(const struct doc_node *map, const char *key)
{
    struct slice wanted = slice_str(key);
    if (map && map->kind == DOC_MAP)
        for (const struct doc_node *child = map->first; child; child = child->next)
            if (slice_eq(child->key, wanted))
                return child;
    return NULL;
}

static void add_step(struct text *path, const struct doc_node *node)
{
    if (!node->key.ptr) {
        text_printf(path, "/%u", node->index);
        return;
    }
    char step[DESCRIBE_BYTES * 2];
    size_t n = json_escape(step, sizeof(step), node->key);
    text_add(path, SLICE("/"));
    for (size_t i = 0; i < n; i++)
        text_add(path, step[i] == '~' ? SLICE("~0") : step[i] == '/' ? SLICE("~1") : slice_of(&step[i], 1));
}

const char *doc_path(const struct doc_node *node, struct arena *arena)
{
    const struct doc_node *way[DOC_DEPTH_MAX];
    size_t n = 0;
    for (const struct doc_node *at = node; at; at = at->parent)
        if (at->label && (at == node || !node->key.ptr))
            return at->label;
        else if (at->label)
            return arena_printf(arena, "%s (%.*s)", at->label, SLICE_ARG(node->key));
    for (; node && node->parent; node = node->parent)
        way[n++] = node;
    struct text path;
    text_init(&path);
    while (n > 0)
        add_step(&path, way[--n]);
    const char *copy = arena_slice(arena, text_slice(&path)).ptr;
    text_fini(&path);
    return copy;
}

const char *doc_place(const struct doc_node *node, struct arena *arena)
{
    return node->line ? arena_printf(arena, "on line %u", node->line)
                      : arena_printf(arena, "at %s", doc_path(node, arena));
}

const char *doc_describe(const struct doc_node *node, struct arena *arena)
{
    char shown[DESCRIBE_BYTES];
    size_t n = json_escape(shown, sizeof(shown), node->text);
    const char *more = node->text.len > DESCRIBE_BYTES ? "..." : "";
    switch (node->kind) {
    case DOC_NULL:
        return "empty";
    case DOC_BOOL:
        return node->value.boolean ? "true" : "false";
    case DOC_INTEGER:
    case DOC_REAL:
        return arena_printf(arena, "the number %.*s%s", (int)n, shown, more);
    case DOC_STRING:
        return arena_printf(arena, "the text \"%.*s%s\"", (int)n, shown, more);
    case DOC_LIST:
        return node->n ? "a list" : "an empty list";
    case DOC_MAP:
        return node->n ? "a map" : "an empty map";
    }
    iso_unreachable("kind of a node");
}

static void add_fault(struct doc *doc, enum diag_severity severity, const struct doc_node *node,
                      unsigned line, unsigned column, const char *fmt, va_list args)
{
    char message[MESSAGE_MAX];
    unsigned warnings = doc->diag->warnings - doc->warnings_before;
    if (severity == DIAG_ERROR ? doc_is_full(doc) : warnings >= DOC_FAULTS_MAX) {
        doc->unsaid++;
        return;
    }
    vsnprintf(message, sizeof(message), fmt, args);
    diag_add(doc->diag, severity, doc->name, line, column, node ? doc_path(node, &doc->arena) : "", "%s",
             message);
}

void doc_fault(struct doc *doc, enum diag_severity severity, const struct doc_node *node, const char *fmt,
               ...)
{
    va_list args;
    va_start(args, fmt);
    add_fault(doc, severity, node, node ? node->line : 0, node ? node->column : 0, fmt, args);
    va_end(args);
}

void doc_fault_key(struct doc *doc, enum diag_severity severity, const struct doc_node *node, const char *fmt,
                   ...)
{
    va_list args;
    va_start(args, fmt);
    add_fault(doc, severity, node, node->key_line, node->key_column, fmt, args);
    va_end(args);
}

void doc_broken(struct doc *doc, size_t line, size_t column, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    add_fault(doc, DIAG_ERROR, NULL, (unsigned)line, (unsigned)column, fmt, args);
    va_end(args);
    doc->failed = true;
}
