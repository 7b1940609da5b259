/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a document as JSON, in pieces that its versions share: an item of a list at the top of the
 * document is a piece when it is a map, and so is what stands between two such items. The text of a changed
 * document is made from that of the one before: only items whose nodes have new stamps (doc/doc_edit.h)
 * are printed, and what two versions differ in is found by comparing pointers. Immutable once made. Threads:
 * any; counted atomically. */
#ifndef ISOBAR_DOC_PRINTED_H
#define ISOBAR_DOC_PRINTED_H

#include "core/text.h"
#include "doc/doc.h"

struct printed_piece;

struct printed {
    _Atomic uint32_t refs;
    uint32_t n;
    size_t bytes;                   /* of the text */
    size_t new_bytes;               /* of pieces that the one before did not have */
    struct printed_piece *pieces[]; /* [n]; shared (counted) */
};

/* The text is that of json_write(). `without`: keys of the root to leave out, ends with NULL; may be NULL.
 * `before`: of an earlier state of the document; NULL: none. Owns: the caller, one reference. */
struct printed *printed_new(const struct doc_node *root, const char *const *without,
                            const struct printed *before);
struct printed *printed_ref(const struct printed *printed);
void printed_unref(struct printed **printed);

void printed_write(const struct printed *printed, struct text *out);
bool printed_is(const struct printed *printed, struct slice text);

/* Where two texts differ: `to` is the first `head` bytes of `from`, then `middle`, then the last `tail` bytes
 * of `from`. */
struct printed_change {
    size_t head, tail;
    size_t middle_bytes;
    uint32_t first, n; /* pieces of `to` that are the middle */
};

void printed_compare(const struct printed *from, const struct printed *to, struct printed_change *change);
void printed_write_middle(const struct printed *to, const struct printed_change *change, struct text *out);

#endif
