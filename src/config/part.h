/* SPDX-License-Identifier: Apache-2.0 */
/* A part of a configuration that others share: an item of a list at the top of the document (a target group)
 * with all that it points to, as it was decoded and found valid. When a document is decoded again after a
 * change, items whose nodes have kept their stamps (doc/doc_edit.h) are taken from the configuration
 * before, so that a change costs what it touches. Every configuration has the struct of the item itself for
 * its own; the texts and lists below it belong to the part. Two items with the same part say the same.
 * Threads: one at a time; shared ones the control thread only. */
#ifndef ISOBAR_CONFIG_PART_H
#define ISOBAR_CONFIG_PART_H

#include "config/schema.h"
#include "doc/stamps.h"

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

/* The settled parts of a list in the configuration before, for those that are the same now. `before` NULL:
 * there are none. */
void config_parts_collect(struct stamps *stamps, const struct schema_key *key, const struct config *before);
/* One of them, with a reference for the caller; NULL: there is none with that stamp. */
struct config_part *config_parts_take(struct stamps *stamps, uint64_t stamp);

#endif
