/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/json_write.h"

/* A scalar, or what opens a list or a map. */
static void write_begin(const struct doc_node *node, struct text *out)
{
    switch (node->kind) {
    case DOC_NULL:
        text_add(out, SLICE("null"));
        break;
    case DOC_BOOL:
        text_add(out, node->value.boolean ? SLICE("true") : SLICE("false"));
        break;
    case DOC_INTEGER:
    case DOC_REAL: /* only what JSON takes for a number becomes one, see doc_set_scalar() */
        text_add(out, node->text);
        break;
    case DOC_STRING:
        text_json(out, node->text);
        break;
    case DOC_LIST:
        text_add(out, SLICE("["));
        break;
    case DOC_MAP:
        text_add(out, SLICE("{"));
        break;
    }
}

static void write_end(const struct doc_node *node, struct text *out)
{
    if (node->kind == DOC_LIST)
        text_add(out, SLICE("]"));
    else if (node->kind == DOC_MAP)
        text_add(out, SLICE("}"));
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
            text_add(out, SLICE(","));
        if (node != root && node->key.ptr) {
            text_json(out, node->key);
            text_add(out, SLICE(":"));
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
