/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked list; a list is a node that points to itself when empty. Nothing is allocated. */
#ifndef ISOBAR_CORE_LIST_H
#define ISOBAR_CORE_LIST_H

#include "core/check.h"

#include <stdbool.h>

struct list {
    struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
    l->prev = l->next = l;
}

static inline bool list_is_empty(const struct list *l)
{
    return l->next == l;
}

static inline void list_push_front(struct list *l, struct list *n)
{
    n->prev = l;
    n->next = l->next;
    l->next->prev = n;
    l->next = n;
}

static inline void list_push_back(struct list *l, struct list *n)
{
    list_push_front(l->prev, n);
}

/* Leaves the node as an empty list, so that removing it twice is harmless. */
static inline void list_remove(struct list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    list_init(n);
}

#define list_for_each(it, l) for (struct list *it = (l)->next; it != (l); it = it->next)
#define list_for_each_safe(it, after, l)                                                                     \
    for (struct list *it = (l)->next, *after = it->next; it != (l); it = after, after = it->next)

#endif
