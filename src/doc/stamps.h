/* SPDX-License-Identifier: Apache-2.0 */
/* Things by the stamps of the nodes that they were made of. Whoever makes them anew asks in the order in
 * which they were added, so mostly the next one is it; when not, a sorted index is made. */
#ifndef ISOBAR_DOC_STAMPS_H
#define ISOBAR_DOC_STAMPS_H

#include <stdbool.h>
#include <stdint.h>

struct stamp_entry {
    uint64_t stamp;
    void *thing; /* borrows */
};

struct stamps {
    struct stamp_entry *all; /* owns; [n] */
    uint32_t n, cap;
    uint32_t next;
    bool is_sorted;
};

void stamps_init(struct stamps *stamps);
void stamps_fini(struct stamps *stamps);
/* Before the first search. */
void stamps_add(struct stamps *stamps, uint64_t stamp, void *thing);
/* NULL: none has it. */
void *stamps_find(struct stamps *stamps, uint64_t stamp);

#endif
