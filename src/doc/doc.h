/* SPDX-License-Identifier: Apache-2.0 */
/* A document: the tree that YAML, JSON and command lines are read into before the schema looks at it. Every
 * node knows where it stood in the text and its way to the root, so that a message can name both. Readers
 * (yaml, json) build one with the functions below, which also enforce the limits that keep hostile input
 * harmless: depth, number of values, duplicate keys. Nothing here recurses. A document belongs to one thread.
 */
#ifndef ISOBAR_DOC_DOC_H
#define ISOBAR_DOC_DOC_H

#include "core/diag.h"
#include "core/err.h"

enum {
    DOC_BYTES_MAX = 16 << 20, /* 70,000 targets written one key a line are 8 MiB */
    DOC_DEPTH_MAX = 32,       /* the schema needs 9 */
    DOC_NODES_MAX = 1000000,  /* about 120 bytes each */
    DOC_FAULTS_MAX = 100,     /* and as many warnings; more are counted only: nobody reads them */
};

enum doc_kind { DOC_NULL, DOC_BOOL, DOC_INTEGER, DOC_REAL, DOC_STRING, DOC_LIST, DOC_MAP };

struct doc_node {
    enum doc_kind kind;
    uint32_t depth;        /* of the root: 1 */
    uint32_t line, column; /* from 1; 0: unknown */
    uint32_t key_line, key_column;
    const char *label; /* borrows: stands for the path of the node and of all below it ("--to HOST:PORT") */
    struct slice key;  /* name in the parent's map; ptr NULL: an item of a list, or the root */
    struct slice text; /* a scalar as written, without quotes */
    union {
        bool boolean;
        int64_t integer;
        double real;
    } value;
    uint64_t stamp; /* of what it says, all below included: where two nodes have the same, the same is said.
                       doc_edit.h keeps it */
    uint32_t index; /* among the children of its parent */
    uint32_t n;     /* children */
    struct doc_node *parent, *next, *first, *last;
};

struct doc {
    struct arena arena;    /* owns the nodes and their texts */
    const char *name;      /* borrows: stands in messages */
    struct iso_diag *diag; /* borrows */
    struct doc_node *root; /* NULL: nothing was read */
    uint32_t n_nodes;
    uint64_t last_stamp;
    unsigned errors_before, warnings_before; /* those that diag had already */
    unsigned unsaid;                         /* faults beyond the limit */
    bool failed;                             /* a limit was hit or the text is broken: reading ends */
};

void doc_init(struct doc *doc, const char *name, struct iso_diag *diag);
void doc_fini(struct doc *doc);
/* One that no node of any document has. Threads: any. */
uint64_t doc_new_stamp(struct doc *doc);
/* Errors found in this document, and whether that is enough of them. */
unsigned doc_faults(const struct doc *doc);
bool doc_is_full(const struct doc *doc);
/* Faults and warnings found in it so far, those beyond the limits included. */
unsigned doc_said(const struct doc *doc);
/* Says how many faults were left out, if any were. */
void doc_close_faults(struct doc *doc);

/* Adds a child at the end of `parent` (a list when key.ptr is NULL, else a map), or the root when `parent` is
 * NULL. The texts are copied. NULL when a limit was hit, which has then been reported. */
struct doc_node *doc_add(struct doc *doc, struct doc_node *parent, struct slice key, enum doc_kind kind,
                         uint32_t line, uint32_t column);
/* Makes `node`, which is in no tree, the last child; what a map's or list's depth and count allow is the
 * caller's to see to. */
void doc_link_last(struct doc_node *parent, struct doc_node *node);
/* Makes `node` the scalar `text`. A plain one (not quoted) is null, true, false, an integer or a real where
 * it looks like one in YAML 1.2's core schema; everything else is a string. */
void doc_set_scalar(struct doc *doc, struct doc_node *node, struct slice text, bool plain);
/* Reports keys that occur twice in a finished map. */
void doc_check_keys(struct doc *doc, const struct doc_node *map);
/* Reports a text that is too long, and the first byte that is not UTF-8 or is NUL. True when nothing is
 * wrong. */
bool doc_check_text(struct doc *doc, struct slice text);

/* The value under a key of a map; NULL when there is none or `map` is no map. */
const struct doc_node *doc_get(const struct doc_node *map, const char *key);
/* "/target_groups/0/port", as JSON pointers have it (RFC 6901); "" for the root; the label of the node or of
 * the nearest one above it that has one. Owns: the arena. */
const char *doc_path(const struct doc_node *node, struct arena *arena);
/* Where a node is, for messages about another one: "on line 7", or "at" its label. Owns: the arena. */
const char *doc_place(const struct doc_node *node, struct arena *arena);
/* What a node is, for messages: `the text "abc"`, `the number 5`, `a list`. Owns: the arena. */
const char *doc_describe(const struct doc_node *node, struct arena *arena);

/* Reports a fault at a node's value, or at its key. */
void doc_fault(struct doc *doc, enum diag_severity severity, const struct doc_node *node, const char *fmt,
               ...) ISO_PRINTF(4, 5);
void doc_fault_key(struct doc *doc, enum diag_severity severity, const struct doc_node *node, const char *fmt,
                   ...) ISO_PRINTF(4, 5);
/* Reports that the text itself is broken and ends the reading. */
void doc_broken(struct doc *doc, size_t line, size_t column, const char *fmt, ...) ISO_PRINTF(4, 5);

#endif
