/* SPDX-License-Identifier: Apache-2.0 */
/* How a document is kept in the table of versions. A small one is kept whole, and so is every one of which
 * the version before is not known to be what this node committed. Of a large one that is changed in one place
 * only the middle is kept: `head` bytes of the version before stand in front of it and `tail` bytes behind
 * it, so a change of one target among many thousands writes a few kilobytes. A chain of such rows begins with
 * a whole document, which retention keeps for as long as it is needed, and is short: after CHAIN_ROWS_MAX
 * rows, or when they have come to a part of the whole, it begins anew.
 *
 * That the version before is the very row that the middle was made for is a condition of the commit (its
 * token), not a matter of its number. */
#ifndef ISOBAR_STORE_CHAIN_H
#define ISOBAR_STORE_CHAIN_H

#include "doc/printed.h"

enum {
    CHAIN_ROWS_MAX = 64,
    CHAIN_PART_MAX = 4, /* the rows behind a whole document are together at most a quarter of it */
    CHAIN_DOCUMENT_BYTES_MIN = 65536 /* below, a row is as cheap whole, and other programs can read it */
};

/* The last version that was committed here and nothing came after it. */
struct chain {
    uint64_t version; /* 0: there is none */
    char token[33];
    struct printed *document; /* shared (counted) */
    uint32_t rows;            /* behind the whole document */
    size_t bytes;             /* of those rows */
};

/* What to write for the next version. */
struct chain_row {
    bool is_whole;
    struct printed_change change; /* unless it is whole */
};

void chain_fini(struct chain *chain);
void chain_plan(const struct chain *chain, uint64_t expected, const struct printed *document,
                struct chain_row *row);
/* It was committed. */
void chain_follow(struct chain *chain, uint64_t version, const char *token, const struct printed *document,
                  const struct chain_row *row);

/* Puts the next row behind the text of the version before; false: it does not fit there. */
bool chain_read(struct text *text, uint64_t head, uint64_t tail, struct slice middle);

#endif
