/* SPDX-License-Identifier: Apache-2.0 */
#include "doc/printed.h"

#include "doc/json_write.h"
#include "doc/stamps.h"

#include <stdatomic.h>
#include <stdlib.h>

struct printed_piece {
    _Atomic uint32_t refs;
    uint64_t stamp; /* of the item; 0: it is none */
    size_t len;
    char text[]; /* of an item that is not the first, with a comma before it */
};

static struct printed_piece *new_piece(uint64_t stamp, struct slice text)
{
    struct printed_piece *piece = malloc(sizeof(*piece) + text.len);
    iso_assert(piece != NULL);
    *piece = (struct printed_piece){.refs = 1, .stamp = stamp, .len = text.len};
    memcpy(piece->text, text.ptr, text.len);
    return piece;
}

static void unref_piece(struct printed_piece *piece)
{
    if (atomic_fetch_sub_explicit(&piece->refs, 1, memory_order_acq_rel) == 1)
        free(piece);
}

/* ---- making one ---- */

struct printing {
    struct printed *made;
    uint32_t cap;
    struct text between; /* what comes before the next item */
    struct stamps before;
};

static void add(struct printing *printing, struct printed_piece *piece)
{
    struct printed *made = printing->made;
    if (!made || made->n == printing->cap) {
        printing->cap = printing->cap ? printing->cap * 2 : 16;
        made = realloc(made, sizeof(*made) + printing->cap * sizeof(struct printed_piece *));
        iso_assert(made != NULL);
        if (!printing->made)
            *made = (struct printed){.refs = 1};
        printing->made = made;
    }
    made->pieces[made->n++] = piece;
    made->bytes += piece->len;
}

static void add_new(struct printing *printing, uint64_t stamp, struct text *text)
{
    if (text->len == 0)
        return;
    struct printed_piece *piece = new_piece(stamp, text_slice(text));
    add(printing, piece);
    printing->made->new_bytes += piece->len;
    text->len = 0;
}

static void add_item(struct printing *printing, const struct doc_node *item, bool is_first)
{
    struct printed_piece *old = stamps_find(&printing->before, item->stamp);
    if (old && (old->text[0] == ',') != is_first) {
        atomic_fetch_add_explicit(&old->refs, 1, memory_order_relaxed);
        add(printing, old);
        return;
    }
    struct text text;
    text_init(&text);
    if (!is_first)
        text_add(&text, SLICE(","));
    json_write(item, NULL, &text);
    add_new(printing, item->stamp, &text);
    text_fini(&text);
}

static bool is_left_out(const struct doc_node *node, const char *const *without)
{
    for (; without && *without; without++)
        if (slice_eq(node->key, slice_str(*without)))
            return true;
    return false;
}

static void add_value(struct printing *printing, const struct doc_node *value)
{
    if (value->kind != DOC_LIST) {
        json_write(value, NULL, &printing->between);
        return;
    }
    text_add(&printing->between, SLICE("["));
    for (const struct doc_node *item = value->first; item; item = item->next) {
        if (item->kind == DOC_MAP) {
            add_new(printing, 0, &printing->between);
            add_item(printing, item, item == value->first);
            continue;
        }
        text_add(&printing->between, item == value->first ? SLICE("") : SLICE(","));
        json_write(item, NULL, &printing->between);
    }
    text_add(&printing->between, SLICE("]"));
}

struct printed *printed_new(const struct doc_node *root, const char *const *without,
                            const struct printed *before)
{
    struct printing printing = {0};
    struct text *between = &printing.between;
    const char *joint = "{";
    text_init(between);
    stamps_init(&printing.before);
    for (uint32_t i = 0; before && i < before->n; i++)
        if (before->pieces[i]->stamp)
            stamps_add(&printing.before, before->pieces[i]->stamp, before->pieces[i]);
    if (root->kind != DOC_MAP)
        json_write(root, NULL, between);
    for (const struct doc_node *child = root->kind == DOC_MAP ? root->first : NULL; child;
         child = child->next) {
        if (is_left_out(child, without))
            continue;
        text_printf(between, "%s", joint);
        text_json(between, child->key);
        text_add(between, SLICE(":"));
        add_value(&printing, child);
        joint = ",";
    }
    if (root->kind == DOC_MAP)
        text_printf(between, *joint == '{' ? "{}" : "}");
    add_new(&printing, 0, between);
    stamps_fini(&printing.before);
    text_fini(between);
    return printing.made;
}

struct printed *printed_ref(const struct printed *printed)
{
    struct printed *counted = (struct printed *)printed;
    atomic_fetch_add_explicit(&counted->refs, 1, memory_order_relaxed);
    return counted;
}

void printed_unref(struct printed **taken)
{
    struct printed *printed = *taken;
    *taken = NULL;
    if (!printed || atomic_fetch_sub_explicit(&printed->refs, 1, memory_order_acq_rel) > 1)
        return;
    for (uint32_t i = 0; i < printed->n; i++)
        unref_piece(printed->pieces[i]);
    free(printed);
}

/* ---- reading ---- */

static struct slice text_of(const struct printed_piece *piece)
{
    return slice_of(piece->text, piece->len);
}

static void write_pieces(const struct printed *printed, uint32_t first, uint32_t n, size_t bytes,
                         struct text *out)
{
    text_reserve(out, bytes);
    for (uint32_t i = first; i < first + n; i++)
        text_add(out, text_of(printed->pieces[i]));
}

void printed_write(const struct printed *printed, struct text *out)
{
    write_pieces(printed, 0, printed->n, printed->bytes, out);
}

bool printed_is(const struct printed *printed, struct slice text)
{
    size_t at = 0;
    if (text.len != printed->bytes)
        return false;
    for (uint32_t i = 0; i < printed->n; at += printed->pieces[i++]->len)
        if (memcmp(printed->pieces[i]->text, text.ptr + at, printed->pieces[i]->len) != 0)
            return false;
    return true;
}

static bool is_same(const struct printed_piece *a, const struct printed_piece *b)
{
    return a == b || (a->len == b->len && memcmp(a->text, b->text, a->len) == 0);
}

void printed_compare(const struct printed *from, const struct printed *to, struct printed_change *change)
{
    uint32_t n = from->n < to->n ? from->n : to->n, first = 0, last = 0;
    *change = (struct printed_change){0};
    while (first < n && is_same(from->pieces[first], to->pieces[first]))
        change->head += to->pieces[first++]->len;
    while (last < n - first && is_same(from->pieces[from->n - 1 - last], to->pieces[to->n - 1 - last]))
        change->tail += to->pieces[to->n - 1 - last++]->len;
    change->first = first;
    change->n = to->n - first - last;
    change->middle_bytes = to->bytes - change->head - change->tail;
}

void printed_write_middle(const struct printed *to, const struct printed_change *change, struct text *out)
{
    write_pieces(to, change->first, change->n, change->middle_bytes, out);
}
