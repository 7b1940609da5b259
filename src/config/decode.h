/* SPDX-License-Identifier: Apache-2.0 */
/* From a document to a config, guided by the schema table. Every fault is reported and decoding goes on with
 * the default in its place, so that one run shows them all. Recursion follows the schema, never the input. */
#ifndef ISOBAR_CONFIG_DECODE_H
#define ISOBAR_CONFIG_DECODE_H

#include "config/schema.h"
#include "doc/doc.h"

enum { DECODE_DEFAULTS_MAX = 256 }; /* a power of two, well above the number of keys with a default */

struct decoder {
    struct doc *doc;              /* borrows */
    struct arena *arena;          /* borrows: the config's, owns what is decoded */
    const char *base_dir;         /* borrows: where relative paths begin */
    const struct schema_key *key; /* at hand */
    const struct config *before;  /* borrows: whose parts are taken where they are the same; NULL: nothing */
    struct doc default_values;    /* owns the nodes below */
    /* Nodes of defaults made so far, by an open hash of their keys: a document may have very many sections.
     */
    struct {
        const struct schema_key *key; /* NULL: free */
        const struct doc_node *node;
    } defaults[DECODE_DEFAULTS_MAX];
};

/* Decodes the whole document into `config`, whose arena is ready; faults are in doc->diag. `before`: an
 * earlier state of the document with the same base_dir; NULL: none. */
void decode_config(struct doc *doc, const char *base_dir, const struct config *before, struct config *config);

/* Decodes one section into its holder; `node` NULL: defaults only. */
void decode_section(struct decoder *decoder, const struct schema_section *section,
                    const struct doc_node *node, void *holder);
/* A relative path made absolute by the folder of the document. Owns: the config's arena. */
struct slice decode_absolute(struct decoder *decoder, struct slice path);
/* What a value is, for messages, as doc_describe() says it; of a secret only that it is one. Owns: the
 * document's arena. */
const char *decode_describe(struct decoder *decoder, const struct doc_node *node);
/* "is the text "x", expected ...", by the key's type. */
void decode_mismatch(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node);

#endif
