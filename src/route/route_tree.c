/* SPDX-License-Identifier: Apache-2.0 */
/* A prefix is kept without its last '/', and matches where the path ends or goes on with '/'. Whether a
 * shorter prefix on the way matches too is known when the tree is built, since the byte behind it is part of
 * the longer one: shorter names the next that does, and finding needs no stack. */
#include "route/route_tree.h"

/* How many bytes all of rules[0..n) have in common from `depth` on: the first and the last do. */
static uint32_t common_length(const struct route_rule *rules, uint32_t n, uint32_t depth)
{
    struct slice first = rules[0].path, last = rules[n - 1].path;
    size_t at = depth;
    while (at < first.len && at < last.len && first.ptr[at] == last.ptr[at])
        at++;
    return (uint32_t)(at - depth);
}

/* The length of the run of rules at the beginning with the same path (and class), or with the same next byte.
 */
static uint32_t run_here(const struct route_rule *rules, uint32_t n, size_t depth, uint8_t path_class)
{
    uint32_t i = 0;
    while (i < n && rules[i].path.len == depth && rules[i].path_class == path_class)
        i++;
    return i;
}

static uint32_t run_below(const struct route_rule *rules, uint32_t n, size_t depth)
{
    uint32_t i = 1;
    while (i < n && rules[i].path.ptr[depth] == rules[0].path.ptr[depth])
        i++;
    return i;
}

static const struct route_node *next_shorter(const struct route_node *above, struct slice path)
{
    while (above && path.ptr[above->depth] != '/')
        above = above->shorter;
    return above;
}

/* Fills `node` with rules[0..n), which agree in their first `depth` bytes; `above` is the nearest node over
 * it that ends a prefix. Recursion is as deep as paths branch. */
static void build(struct route_node *node, const struct route_rule *rules, uint32_t n, uint32_t depth,
                  const struct route_node *above, struct arena *arena)
{
    node->label_len = common_length(rules, n, depth);
    node->label = rules[0].path.len ? rules[0].path.ptr + depth : "";
    node->depth = depth += node->label_len;

    node->exact = (struct route_range){rules, run_here(rules, n, depth, ROUTE_PATH_EXACT)};
    rules += node->exact.n, n -= node->exact.n;
    node->prefix = (struct route_range){rules, run_here(rules, n, depth, ROUTE_PATH_PREFIX)};
    if (node->prefix.n)
        node->shorter = next_shorter(above, rules[0].path);
    rules += node->prefix.n, n -= node->prefix.n;

    for (uint32_t at = 0; at < n; at += run_below(rules + at, n - at, depth))
        node->n_children++;
    node->children = arena_array(arena, struct route_node, node->n_children);
    node->first_bytes = arena_array(arena, char, node->n_children);
    for (uint32_t i = 0, at = 0, run; i < node->n_children; i++, at += run) {
        run = run_below(rules + at, n - at, depth);
        node->first_bytes[i] = rules[at].path.ptr[depth];
        build(&node->children[i], rules + at, run, depth, node->prefix.n ? node : above, arena);
    }
}

const struct route_node *route_tree_build(const struct route_rule *rules, uint32_t n, struct arena *arena)
{
    if (n == 0)
        return NULL;
    struct route_node *root = arena_new(arena, struct route_node);
    build(root, rules, n, 0, NULL, arena);
    return root;
}

static const struct route_node *child_at(const struct route_node *node, char byte)
{
    const char *hit = node->n_children ? memchr(node->first_bytes, byte, node->n_children) : NULL;
    return hit ? &node->children[hit - node->first_bytes] : NULL;
}

const struct route_node *route_tree_find(const struct route_node *root, struct slice path,
                                         struct route_range *exact)
{
    const struct route_node *longest = NULL;
    *exact = (struct route_range){0};
    for (const struct route_node *node = root; node; node = child_at(node, path.ptr[node->depth])) {
        if (path.len < node->depth ||
            memcmp(path.ptr + node->depth - node->label_len, node->label, node->label_len) != 0)
            break;
        bool at_end = path.len == node->depth;
        if (node->prefix.n && (at_end || path.ptr[node->depth] == '/'))
            longest = node;
        if (at_end) {
            *exact = node->exact;
            break;
        }
    }
    return longest;
}
