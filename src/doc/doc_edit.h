/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a document that is in use: a log of steps that can be taken back and taken again, so that a change
 * costs what it touches and not what the document holds. A step gives a new stamp to the value it changes and
 * to all above it, and none to others; taken back, it gives the old stamps back, and taken again, its own. So
 * whoever keeps what was made of a node knows by its stamp whether that still holds. Nodes that were taken
 * out stay in the arena until doc_compact(). One edit at a time is open on a document. */
#ifndef ISOBAR_DOC_DOC_EDIT_H
#define ISOBAR_DOC_DOC_EDIT_H

#include "doc/doc.h"

/* One step: in `parent`, `out` made way for `in`, behind `after`. */
struct doc_step {
    struct doc_step *before;   /* the step taken earlier */
    struct doc_node *parent;   /* NULL: the root was replaced */
    struct doc_node *out, *in; /* NULL: nothing was taken out, put in */
    struct doc_node *after;    /* the sibling in front; NULL: the first */
    uint64_t stamp;            /* of `parent` and all above it, from this step on */
    uint64_t *stamps_before;   /* the same nodes, from `parent` up */
};

struct doc_edit {
    struct doc *doc;
    struct doc_step *last; /* NULL: nothing was done */
    bool is_undone;
    bool is_too_deep; /* something is now deeper than DOC_DEPTH_MAX: only undo is allowed */
};

void doc_edit_begin(struct doc_edit *edit, struct doc *doc);

/* A copy of a value and all below it, in the arena of `doc` but not yet in its tree; places in texts are not
 * kept. NULL when a limit was hit, which has then been reported in doc->diag. */
struct doc_node *doc_copy(struct doc *doc, const struct doc_node *from);
/* A value that is in no tree yet. */
struct doc_node *doc_new(struct doc *doc, enum doc_kind kind);

/* Puts `value` (in no tree) under a key, in place of what is there; NULL takes it out. `map` is in the tree
 * or will be: a step of a value that is not yet in the tree may as well be logged. */
void doc_edit_set(struct doc_edit *edit, struct doc_node *map, const char *key, struct doc_node *value);
/* The item of a list, or a value of a map, in place of which `value` stands from now on. */
void doc_edit_replace(struct doc_edit *edit, struct doc_node *old, struct doc_node *value);
void doc_edit_append(struct doc_edit *edit, struct doc_node *list, struct doc_node *value);
void doc_edit_remove(struct doc_edit *edit, struct doc_node *node);
/* A merge patch (RFC 7396): maps are merged, null removes, everything else replaces. Lists are replaced as a
 * whole. False when a limit was hit. */
bool doc_edit_merge(struct doc_edit *edit, struct doc_node *map, const struct doc_node *patch);

/* Takes all steps back, and takes them again. Each may follow the other only. */
void doc_edit_undo(struct doc_edit *edit);
void doc_edit_redo(struct doc_edit *edit);

/* Is the value the same, the order of keys in maps aside? As deep as documents are. */
bool doc_eq(const struct doc_node *a, const struct doc_node *b);
/* For a document `to` that replaces another one, `from`, as a whole: items of the lists at its top that say
 * word for word what those of the other one say get their stamps, so that what was made of them still holds.
 * Items are compared from both ends of a list. */
void doc_take_stamps(struct doc_node *to, const struct doc_node *from);
/* A document whose arena has nothing but its tree, in place of `doc`, whose nodes end. Stamps stay. */
void doc_compact(struct doc *doc);

#endif
