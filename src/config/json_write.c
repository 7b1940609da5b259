/* SPDX-License-Identifier: Apache-2.0 */
#include "config/json_write.h"

#include <inttypes.h>
#include <math.h>

/* RFC 8259 6: what YAML takes for a real may begin with a sign or a point. */
static bool is_json_number(struct slice s)
{
    size_t at = s.len && s.ptr[0] == '-';
    size_t from = at;
    while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9')
        at++;
    if (at == from || (s.ptr[from] == '0' && at > from + 1))
        return false;
    if (at < s.len && s.ptr[at] == '.') {
        from = ++at;
        while (at < s.len && s.ptr[at] >= '0' && s.ptr[at] <= '9')
            at++;
        if (at == from)
            return false;
    }
    return at == s.len;
}

static void write_real(const struct doc_node *node, struct text *out)
{
    if (is_json_number(node->text))
        text_add(out, node->text);
    else if (isfinite(node->value.real))
        text_printf(out, "%.17g", node->value.real);
    else
        text_printf(out, "null");
}

/* A scalar, or what opens a list or a map. */
static void write_begin(const struct doc_node *node, struct text *out)
{
    switch (node->kind) {
    case DOC_NULL:
        text_printf(out, "null");
        break;
    case DOC_BOOL:
        text_printf(out, node->value.boolean ? "true" : "false");
        break;
    case DOC_INTEGER:
        text_printf(out, "%" PRId64, node->value.integer);
        break;
    case DOC_REAL:
        write_real(node, out);
        break;
    case DOC_STRING:
        text_json(out, node->text);
        break;
    case DOC_LIST:
        text_printf(out, "[");
        break;
    case DOC_MAP:
        text_printf(out, "{");
        break;
    }
}

static void write_end(const struct doc_node *node, struct text *out)
{
    if (node->kind == DOC_LIST)
        text_printf(out, "]");
    else if (node->kind == DOC_MAP)
        text_printf(out, "}");
}

static bool is_left_out(const struct doc_node *node, const char *const *without)
{
    for (; without && *without; without++)
        if (slice_eq(node->key, slice_str(*without)))
            return true;
    return false;
}

static const struct doc_node *next_of(const struct doc_node *node, const struct doc_node *root,
                                      const char *const *without)
{
    while (node && node->parent == root && is_left_out(node, without))
        node = node->next;
    return node;
}

void json_write(const struct doc_node *root, const char *const *without, struct text *out)
{
    const struct doc_node *node = root;
    bool is_first = true;
    while (node) {
        if (!is_first)
            text_printf(out, ",");
        if (node != root && node->key.ptr) {
            text_json(out, node->key);
            text_printf(out, ":");
        }
        write_begin(node, out);
        const struct doc_node *child = next_of(node->first, root, without);
        is_first = child != NULL;
        if (child) {
            node = child;
            continue;
        }
        write_end(node, out);
        while (node != root && !next_of(node->next, root, without)) {
            node = node->parent;
            write_end(node, out);
        }
        node = node == root ? NULL : next_of(node->next, root, without);
    }
}
