/* SPDX-License-Identifier: Apache-2.0 */
/* The radix tree on the path that each host of a route table has: exact paths and path prefixes, found in one
 * walk over the path's bytes. Immutable; nodes live in the snapshot's arena. Private to route*.c. */
#ifndef ISOBAR_ROUTE_ROUTE_TREE_H
#define ISOBAR_ROUTE_ROUTE_TREE_H

#include "core/arena.h"
#include "route/route_rule.h"

/* Neighbouring rules in the table's array. */
struct route_range {
    const struct route_rule *rules; /* borrows */
    uint32_t n;
};

struct route_node {
    const char *label; /* borrows from the config: the bytes between the parent and this node */
    uint32_t label_len;
    uint32_t depth;      /* bytes from the root to the end of the label */
    uint32_t n_children; /* at most 256 */
    char *first_bytes;   /* of the children's labels, ascending */
    struct route_node *children;
    struct route_range exact, prefix; /* of rules whose path ends here */
    const struct route_node *shorter; /* the longest shorter prefix that also matches; NULL: none */
};

/* Builds the tree of rules[0..n): all exact or prefix, sorted by path, then exact before prefix, then
 * precedence. NULL when n is 0. */
const struct route_node *route_tree_build(const struct route_rule *rules, uint32_t n, struct arena *arena);

/* The rules whose exact path is `path` go to *exact; returns the node of the longest matching prefix or NULL;
 * shorter ones follow through shorter. */
const struct route_node *route_tree_find(const struct route_node *root, struct slice path,
                                         struct route_range *exact);

#endif
