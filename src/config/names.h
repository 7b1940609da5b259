/* SPDX-License-Identifier: Apache-2.0 */
/* Names of things in a document: which are taken twice, which one a reference means. Sorted rather than
 * hashed, so that no choice of names makes it slow. */
#ifndef ISOBAR_CONFIG_NAMES_H
#define ISOBAR_CONFIG_NAMES_H

#include "doc/doc.h"

struct name {
    struct slice text;
    uint32_t index;              /* what the caller calls it */
    const struct doc_node *node; /* where it is said */
};

struct names {
    struct name *all; /* owns */
    uint32_t n, cap;
};

void names_init(struct names *names);
void names_fini(struct names *names);
void names_add(struct names *names, struct slice text, uint32_t index, const struct doc_node *node);
/* Orders by text, then by the order of adding; before find and after the last add. */
void names_sort(struct names *names);
/* The first of that name, or NULL. */
const struct name *names_find(const struct names *names, struct slice text);
/* Calls `report` for each later one of equal names, with the first of them. */
void names_each_twin(const struct names *names, struct doc *doc,
                     void (*report)(struct doc *doc, const struct name *twin, const struct name *first));

#endif
