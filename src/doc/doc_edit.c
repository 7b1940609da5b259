/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/doc_edit.h"

#include <stdlib.h>

void doc_edit_begin(struct doc_edit *edit, struct doc *doc)
{
    *edit = (struct doc_edit){.doc = doc};
}

struct doc_node *doc_new(struct doc *doc, enum doc_kind kind)
{
    struct doc_node *node = arena_new(&doc->arena, struct doc_node);
    node->kind = kind;
    node->stamp = doc_new_stamp(doc);
    return node;
}

static struct doc_node *copy_node(struct doc *doc, const struct doc_node *from, bool keeps_stamp)
{
    struct doc_node *node = doc_new(doc, from->kind);
    if (keeps_stamp)
        node->stamp = from->stamp;
    if (from->key.ptr)
        node->key = arena_slice(&doc->arena, from->key);
    if (from->text.ptr)
        node->text = arena_slice(&doc->arena, from->text);
    node->value = from->value;
    return node;
}

/* The next one in the order of the text, below `root`; *copy follows along its tree. */
static const struct doc_node *step_on(const struct doc_node *at, const struct doc_node *root,
                                      struct doc_node **copy)
{
    if (at->first)
        return at->first;
    while (at != root && !at->next) {
        at = at->parent;
        *copy = (*copy)->parent;
    }
    if (at == root)
        return NULL;
    *copy = (*copy)->parent;
    return at->next;
}

static struct doc_node *copy_tree(struct doc *doc, const struct doc_node *from, bool keeps_stamps)
{
    struct doc_node *root = copy_node(doc, from, keeps_stamps), *copy = root;
    uint32_t n = 1;
    for (const struct doc_node *at = step_on(from, from, &copy); at; at = step_on(at, from, &copy)) {
        if (doc->n_nodes + ++n > DOC_NODES_MAX) {
            doc_broken(doc, 0, 0, "has more than %d values", DOC_NODES_MAX);
            return NULL;
        }
        struct doc_node *child = copy_node(doc, at, keeps_stamps);
        doc_link_last(copy, child);
        copy = child;
    }
    doc->n_nodes += n;
    return root;
}

/* With stamps of its own: a patch may take something out of it before it is in the tree. */
struct doc_node *doc_copy(struct doc *doc, const struct doc_node *from)
{
    return copy_tree(doc, from, false);
}

/* Behind `after`, or first. */
static void put_in(struct doc_node *parent, struct doc_node *after, struct doc_node *node)
{
    node->parent = parent;
    node->next = after ? after->next : parent->first;
    if (after)
        after->next = node;
    else
        parent->first = node;
    if (parent->last == after)
        parent->last = node;
    parent->n++;
}

static void take_out(struct doc_node *parent, struct doc_node *after, struct doc_node *node)
{
    if (after)
        after->next = node->next;
    else
        parent->first = node->next;
    if (parent->last == node)
        parent->last = after;
    node->next = NULL;
    node->parent = NULL;
    parent->n--;
}

static void number_children(struct doc_node *parent)
{
    uint32_t index = 0;
    for (struct doc_node *child = parent ? parent->first : NULL; child; child = child->next)
        child->index = index++;
}

/* Makes the depths below `top` right; the largest of them. */
static uint32_t measure(struct doc_node *top)
{
    uint32_t deepest = top->depth;
    for (struct doc_node *at = top;;) {
        if (at->first) {
            at->first->depth = at->depth + 1;
            at = at->first;
        } else {
            while (at != top && !at->next)
                at = at->parent;
            if (at == top)
                return deepest;
            at->next->depth = at->depth;
            at = at->next;
        }
        deepest = at->depth > deepest ? at->depth : deepest;
    }
}

static void give_stamps(struct doc_edit *edit, struct doc_step *step)
{
    uint32_t n = 0;
    for (const struct doc_node *at = step->parent; at; at = at->parent)
        n++;
    step->stamp = doc_new_stamp(edit->doc);
    step->stamps_before = arena_array(&edit->doc->arena, uint64_t, n + 1);
    n = 0;
    for (struct doc_node *at = step->parent; at; at = at->parent) {
        step->stamps_before[n++] = at->stamp;
        at->stamp = step->stamp;
    }
}

static void give_stamps_again(const struct doc_step *step)
{
    for (struct doc_node *at = step->parent; at; at = at->parent)
        at->stamp = step->stamp;
}

static void take_stamps_back(const struct doc_step *step)
{
    uint32_t n = 0;
    for (struct doc_node *at = step->parent; at; at = at->parent)
        at->stamp = step->stamps_before[n++];
}

static void do_step(struct doc *doc, const struct doc_step *step, struct doc_node *out, struct doc_node *in)
{
    if (!step->parent) {
        doc->root = in;
    } else {
        if (out)
            take_out(step->parent, step->after, out);
        if (in)
            put_in(step->parent, step->after, in);
    }
    number_children(step->parent);
}

static void take_step(struct doc_edit *edit, struct doc_node *parent, struct doc_node *after,
                      struct doc_node *out, struct doc_node *in)
{
    struct doc_step *step = arena_new(&edit->doc->arena, struct doc_step);
    *step = (struct doc_step){.before = edit->last, .parent = parent, .out = out, .in = in, .after = after};
    edit->last = step;
    give_stamps(edit, step);
    do_step(edit->doc, step, out, in);
    if (!in)
        return;
    in->depth = parent ? parent->depth + 1 : 1;
    edit->is_too_deep |= measure(in) > DOC_DEPTH_MAX;
}

static struct doc_node *sibling_before(const struct doc_node *node)
{
    struct doc_node *before = NULL;
    if (node->parent)
        for (struct doc_node *at = node->parent->first; at != node; at = at->next)
            before = at;
    return before;
}

static void key_of(struct doc *doc, struct doc_node *value, struct slice key)
{
    value->key = key.ptr ? arena_slice(&doc->arena, key) : (struct slice){0};
}

void doc_edit_set(struct doc_edit *edit, struct doc_node *map, const char *key, struct doc_node *value)
{
    struct doc_node *old = (struct doc_node *)doc_get(map, key);
    iso_assert(map->kind == DOC_MAP);
    if (value)
        key_of(edit->doc, value, slice_str(key));
    if (old)
        take_step(edit, map, sibling_before(old), old, value);
    else if (value)
        take_step(edit, map, map->last, NULL, value);
}

void doc_edit_replace(struct doc_edit *edit, struct doc_node *old, struct doc_node *value)
{
    key_of(edit->doc, value, old->key);
    take_step(edit, old->parent, sibling_before(old), old, value);
}

void doc_edit_append(struct doc_edit *edit, struct doc_node *list, struct doc_node *value)
{
    iso_assert(list->kind == DOC_LIST);
    value->key = (struct slice){0};
    take_step(edit, list, list->last, NULL, value);
}

void doc_edit_remove(struct doc_edit *edit, struct doc_node *node)
{
    take_step(edit, node->parent, sibling_before(node), node, NULL);
}

/* As deep as a document is. */
static void drop_nulls(struct doc_node *map)
{
    struct doc_node *before = NULL;
    for (struct doc_node *at = map->first, *next; at; at = next) {
        next = at->next;
        if (at->kind == DOC_NULL) {
            take_out(map, before, at);
            continue;
        }
        if (at->kind == DOC_MAP)
            drop_nulls(at);
        before = at;
    }
    number_children(map);
}

/* A value of a patch that has nothing to merge with: without what it would remove. */
static struct doc_node *copy_without_nulls(struct doc_edit *edit, const struct doc_node *patch)
{
    struct doc_node *copy = doc_copy(edit->doc, patch);
    if (copy && copy->kind == DOC_MAP)
        drop_nulls(copy);
    return copy;
}

bool doc_edit_merge(struct doc_edit *edit, struct doc_node *map, const struct doc_node *patch)
{
    struct {
        struct doc_node *map;
        const struct doc_node *at;
    } open[DOC_DEPTH_MAX];
    size_t n = 0;
    open[n].map = map;
    open[n++].at = patch->first;
    while (n > 0) {
        const struct doc_node *part = open[n - 1].at;
        struct doc_node *into = open[n - 1].map;
        if (!part) {
            n--;
            continue;
        }
        open[n - 1].at = part->next;
        struct doc_node *old = (struct doc_node *)doc_get(into, part->key.ptr);
        if (part->kind == DOC_MAP && old && old->kind == DOC_MAP) {
            iso_assert(n < DOC_DEPTH_MAX);
            open[n].map = old;
            open[n++].at = part->first;
            continue;
        }
        struct doc_node *value = NULL;
        if (part->kind != DOC_NULL && !(value = copy_without_nulls(edit, part)))
            return false;
        doc_edit_set(edit, into, part->key.ptr, value);
    }
    return true;
}

void doc_edit_undo(struct doc_edit *edit)
{
    iso_assert(!edit->is_undone);
    for (const struct doc_step *step = edit->last; step; step = step->before) {
        do_step(edit->doc, step, step->in, step->out);
        take_stamps_back(step);
    }
    edit->is_undone = true;
}

void doc_edit_redo(struct doc_edit *edit)
{
    size_t n = 0;
    iso_assert(edit->is_undone);
    for (const struct doc_step *step = edit->last; step; step = step->before)
        n++;
    const struct doc_step **steps = calloc(n + 1, sizeof(*steps));
    iso_assert(steps != NULL);
    size_t at = n;
    for (const struct doc_step *step = edit->last; step; step = step->before)
        steps[--at] = step;
    for (size_t i = 0; i < n; i++) {
        do_step(edit->doc, steps[i], steps[i]->out, steps[i]->in);
        give_stamps_again(steps[i]);
    }
    free(steps);
    edit->is_undone = false;
}

static bool scalar_eq(const struct doc_node *a, const struct doc_node *b)
{
    switch (a->kind) {
    case DOC_NULL:
        return true;
    case DOC_BOOL:
        return a->value.boolean == b->value.boolean;
    case DOC_INTEGER:
        return a->value.integer == b->value.integer;
    case DOC_REAL:
    case DOC_STRING:
        return slice_eq(a->text, b->text);
    case DOC_LIST:
    case DOC_MAP:
        return a->n == b->n;
    }
    iso_unreachable("kind of a node");
}

/* As deep as the document, which is DOC_DEPTH_MAX at most. */
bool doc_eq(const struct doc_node *a, const struct doc_node *b)
{
    if (a->kind != b->kind || !scalar_eq(a, b))
        return false;
    const struct doc_node *other = b->first;
    for (const struct doc_node *child = a->first; child; child = child->next) {
        if (a->kind == DOC_MAP && !(other && slice_eq(other->key, child->key)))
            other = doc_get(b, child->key.ptr);
        if (!other || !doc_eq(child, other))
            return false;
        other = other->next;
    }
    return true;
}

/* Also in the order of keys. As deep as the document. */
static bool is_word_for_word(const struct doc_node *a, const struct doc_node *b)
{
    if (a->kind != b->kind || a->n != b->n || !slice_eq(a->text, b->text))
        return false;
    const struct doc_node *y = b->first;
    for (const struct doc_node *x = a->first; x; x = x->next, y = y->next)
        if (!slice_eq(x->key, y->key) || !is_word_for_word(x, y))
            return false;
    return true;
}

static struct doc_node **children_of(const struct doc_node *list)
{
    struct doc_node **all = calloc(list->n + 1, sizeof(*all));
    iso_assert(all != NULL);
    uint32_t n = 0;
    for (struct doc_node *child = list->first; child; child = child->next)
        all[n++] = child;
    return all;
}

static void take_stamps_of_items(struct doc_node *to, const struct doc_node *from)
{
    struct doc_node **now = children_of(to), **old = children_of(from);
    uint32_t n = to->n < from->n ? to->n : from->n, first = 0, last = 0;
    for (; first < n && is_word_for_word(now[first], old[first]); first++)
        now[first]->stamp = old[first]->stamp;
    for (; last < n - first && is_word_for_word(now[to->n - 1 - last], old[from->n - 1 - last]); last++)
        now[to->n - 1 - last]->stamp = old[from->n - 1 - last]->stamp;
    free(now);
    free(old);
}

void doc_take_stamps(struct doc_node *to, const struct doc_node *from)
{
    for (struct doc_node *child = to->kind == DOC_MAP ? to->first : NULL; child; child = child->next) {
        const struct doc_node *other = doc_get(from, child->key.ptr);
        if (other && child->kind == DOC_LIST && other->kind == DOC_LIST)
            take_stamps_of_items(child, other);
    }
}

void doc_compact(struct doc *doc)
{
    struct doc fresh = *doc;
    arena_init(&fresh.arena);
    fresh.n_nodes = 0;
    fresh.root = copy_tree(&fresh, doc->root, true);
    fresh.root->depth = 1;
    measure(fresh.root);
    arena_fini(&doc->arena);
    *doc = fresh;
}
