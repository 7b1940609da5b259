/* SPDX-License-Identifier: Apache-2.0 */
/* The one table of what a configuration may say. Decoding, defaults, bounds, messages, the difference between
 * two configurations and docs/configuration.md all come from it, so a new key is one line in schema_*.c and
 * one field in model.h. Everything here is constant. */
#ifndef ISOBAR_CONFIG_SCHEMA_H
#define ISOBAR_CONFIG_SCHEMA_H

#include "config/model.h"
#include "core/text.h"

struct decoder;
struct doc_node;
struct schema_key;

/* For whom a value is printed. */
enum schema_view { SCHEMA_PLAIN, SCHEMA_HIDDEN };

/* A kind of value. Both functions get the struct that holds the key's field. */
struct schema_type {
    /* Puts the value of `node` into the struct, or reports through `decoder` and leaves the default. Sections
     * are also called with `node` NULL: defaults only. */
    void (*decode)(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                   void *holder);
    /* Writes the value as one would in the file, on one line; equal values print the same. Writes nothing
     * when the value is unset. Secrets are left as they are, or hidden. */
    void (*print)(const struct schema_key *key, const void *holder, enum schema_view view, struct text *out);
    /* What is expected, for messages and the reference. */
    void (*expect)(const struct schema_key *key, struct text *out);
};

struct schema_choice {
    const char *name;
    int32_t value; /* of the enum; for a set of switches: offset of its bool in the holder */
    const char *doc;
};

/* Looks at a text before it is stored and may change it (lower case). False after reporting. */
typedef bool schema_check_fn(struct decoder *decoder, const struct doc_node *node, struct slice *text);

/* Writes what is shown of a secret value, see secret.h. `name`: of the key, or of the value in a map of
 * texts. */
typedef void schema_mask_fn(struct slice name, struct slice value, struct text *out);

struct schema_section;

enum { SCHEMA_NO_OFFSET = 0xffffffffu };
enum { SCHEMA_DEPTH_MAX = 6 }; /* sections within sections: load_balancers.listeners.rules.rewrite... */

struct schema_key {
    const char *name;
    const struct schema_type *type;
    uint32_t offset;         /* of the field in the holder */
    uint32_t size;           /* of the field in bytes */
    uint32_t count_offset;   /* lists: of the number of elements */
    uint32_t present_offset; /* sections: of a bool that becomes true when the section is there */
    bool required;
    bool optional; /* sections: without it the fields stay zero instead of getting defaults */
    uint64_t min, max;
    const char *default_text;             /* as written in a file; NULL: none */
    schema_mask_fn *secret;               /* what is shown of its values; NULL: they are no secrets */
    schema_check_fn *check;               /* of each text */
    schema_check_fn *check_name;          /* of each name in a map of texts */
    const char *expected;                 /* of a text that has a check: "a path that begins with /" */
    const struct schema_choice *choices;  /* ends with name NULL */
    const struct schema_section *section; /* of a section or of each item of a list */
    const char *doc;
};

struct schema_section {
    const struct schema_key *keys; /* ends with name NULL */
    uint32_t bytes;                /* of the holder, for lists */
    uint32_t identity_offset;      /* of the slice that tells items of a list apart; SCHEMA_NO_OFFSET: none */
    bool is_object; /* of an item of a list: a change of one is told by itself, not as one of the whole */
    bool is_shared; /* of an item of a list at the top: its holder points to a config_part, see part.h */
    uint32_t part_offset; /* of that pointer */
    const char *item;     /* what one is called, with its article: "a target group" */
    const char *doc;
};

/* The top of the document; its holder is struct config. */
extern const struct schema_section schema_config;

/* The key of a section, or NULL. */
const struct schema_key *schema_find(const struct schema_section *section, struct slice name);
/* The key "match" of a rule, to compare matches by their text. */
const struct schema_key *schema_rule_match(void);
/* The key "rate_limit" of a rule, for the same. */
const struct schema_key *schema_rule_rate_limit(void);
bool schema_is_section(const struct schema_key *key);
bool schema_is_list(const struct schema_key *key); /* of sections */

#endif
