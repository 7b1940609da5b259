/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a configuration that others share: an item of a list at the top of the document (a target group)
 * with all that it points to, as it was decoded and found valid. When a document is decoded again after a
 * change, items whose nodes have kept their stamps (config/doc_edit.h) are taken from the configuration
 * before, so that a change costs what it touches. Every configuration has the struct of the item itself for
 * its own; the texts and lists below it belong to the part. Two items with the same part say the same.
 * Threads: one at a time; shared ones the control thread only. */
#ifndef ISOBAR_CONFIG_PART_H
#define ISOBAR_CONFIG_PART_H

#include "config/schema.h"

struct config_part {
    struct arena arena; /* owns what the item points to */
    uint64_t stamp;     /* of the node that it was decoded from */
    uint32_t refs;      /* configurations */
    bool is_quiet;      /* nothing was said about it so far: neither fault nor warning */
    void *item;         /* in the arena: as it is after validation; NULL: not to be taken again */
};

/* Owns: the caller, one reference. */
struct config_part *config_part_new(uint64_t stamp);
void config_part_unref(struct config_part **part);
/* The item is valid and stays as it is: others may take it. */
void config_part_settle(struct config_part *part, const struct schema_section *section, const void *item);
/* The part of an item; NULL: it has none, or the section's items never have. */
struct config_part *config_part_of(const struct schema_section *section, const void *item);
/* Both have one, and it is the same. */
bool config_part_is_same(const struct schema_section *section, const void *a, const void *b);

/* Items to take over, of the configuration before. */
struct config_part_search {
    const struct schema_section *section;
    const char *items; /* borrows; [n] */
    uint32_t n;
    uint32_t next;               /* mostly items are where they were */
    struct config_part **sorted; /* owns; [n_sorted]; made when that does not hold */
    uint32_t n_sorted;
};

/* `before` NULL: there is nothing to be found. */
void config_part_search_init(struct config_part_search *search, const struct schema_key *key,
                             const struct config *before);
void config_part_search_fini(struct config_part_search *search);
/* The settled part with that stamp, with a reference for the caller; NULL: there is none. */
struct config_part *config_part_search_take(struct config_part_search *search, uint64_t stamp);

#endif
