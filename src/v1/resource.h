/* SPDX-License-Identifier: Apache-2.0 */
/* Which parts of the document are resources of /v1: one table for create, read, change, delete, lists and the
 * OpenAPI description. A resource is an item of a list in the document; its id is what tells it from its
 * siblings, never its place, so that nobody changes another one than he means (C-146). */
#ifndef ISOBAR_V1_RESOURCE_H
#define ISOBAR_V1_RESOURCE_H

#include "config/schema.h"
#include "doc/doc_edit.h"

struct resource {
    const char *name;              /* "target-groups": in paths */
    const char *item;              /* "target_group": one of them, in parameters and answers */
    const char *key;               /* "target_groups": of the list in the document, or in the parent */
    const char *id_key;            /* "tg_id": what source 000 calls the id in answers; NULL: nothing more */
    const char *prefix;            /* of ids that are made up: "tg-"; NULL: a new one names itself */
    const struct resource *parent; /* NULL: the list is at the top of the document */
    bool is_ordered;               /* the order of the list has a meaning */
    const char *const *operate;    /* keys that the role operate may change, ends with NULL; NULL: none */
    struct slice (*identify)(const struct doc_node *item, const struct doc_node *parent, struct arena *arena);
    /* Makes the item say what its id says. False: the id cannot be that of such an item. NULL: its name. */
    bool (*name_it)(struct doc_edit *edit, struct doc_node *item, struct slice id);
};

#define RESOURCE(id, path, param, what) extern const struct resource resource_##id;
#include "v1/resources.def"
#undef RESOURCE

/* How its items are described: from the schema table. */
const struct schema_section *resource_section(const struct resource *resource);

/* The id of an item; ptr NULL: it has none, and cannot be addressed. In `arena`. */
struct slice resource_id(const struct resource *resource, const struct doc_node *item, struct arena *arena);

/* The list that ids lead to: ids[] are those of the parents, outermost first. NULL with `*exists` true: the
 * parent is there and has no list yet; false: it is not. `*parent` is the map that the list is or would be
 * in.
 */
const struct doc_node *resource_list(const struct resource *resource, const struct doc_node *root,
                                     const struct slice *ids, struct arena *arena,
                                     const struct doc_node **parent, bool *exists);
/* The item of that id; NULL: none. */
const struct doc_node *resource_find(const struct resource *resource, const struct doc_node *list,
                                     struct slice id, struct arena *arena);
/* How many ids lead to its items: 1 and that of its parents. */
unsigned resource_depth(const struct resource *resource);

/* A name that no item of the list has: "tg-7". */
const char *resource_new_name(const struct resource *resource, const struct doc_node *list,
                              struct arena *arena);

#endif
