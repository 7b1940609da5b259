/* SPDX-License-Identifier: Apache-2.0 */
/* For tests of yaml and json: a document as one line that shows kinds, texts and places. */
#ifndef ISOBAR_TESTS_DOC_READERS_H
#define ISOBAR_TESTS_DOC_READERS_H

#include "doc/doc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

typedef iso_err reader_fn(struct slice text, struct doc *doc);

static inline void show_node(const struct doc_node *node, bool places, struct text *out)
{
    static const char *const kinds[] = {"null", "bool", "int", "real", "", "list", "map"};
    if (node->key.ptr)
        text_printf(out, "%.*s=", SLICE_ARG(node->key));
    if (node->kind == DOC_LIST || node->kind == DOC_MAP) {
        text_printf(out, node->kind == DOC_LIST ? "[" : "{");
        for (const struct doc_node *child = node->first; child; child = child->next) {
            show_node(child, places, out);
            text_printf(out, child->next ? " " : "");
        }
        text_printf(out, node->kind == DOC_LIST ? "]" : "}");
    } else {
        text_printf(out, "%s'%.*s'", kinds[node->kind], SLICE_ARG(node->text));
    }
    if (places)
        text_printf(out, "@%u:%u", node->line, node->column);
}

/* What the reader makes of the text, or its faults. */
static inline void expect_read_of(reader_fn *read, struct slice text, bool places, const char *expected)
{
    struct iso_diag diag;
    struct doc doc;
    struct text out;
    diag_init(&diag);
    doc_init(&doc, "", &diag);
    text_init(&out);
    iso_err err = read(text, &doc);
    assert_int_equal(err != ISO_OK, doc.failed);
    if (!err && !diag.errors && doc.root)
        show_node(doc.root, places, &out);
    for (const struct diag_entry *entry = diag.first; entry; entry = entry->next) {
        text_printf(&out, "%s", out.len ? "\n" : "");
        struct text line;
        text_init(&line);
        diag_format(entry, &line);
        text_add(&out, text_slice(&line));
        text_fini(&line);
    }
    assert_string_equal(out.len ? out.data : "", expected);
    text_fini(&out);
    doc_fini(&doc);
    diag_fini(&diag);
}

#endif
