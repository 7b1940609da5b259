/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of types share. */
#ifndef ISOBAR_CONFIG_TYPES_INTERNAL_H
#define ISOBAR_CONFIG_TYPES_INTERNAL_H

#include "config/decode.h"
#include "config/types.h"

/* A text by the key's check, copied; false after reporting. */
bool types_read_text(struct decoder *decoder, const struct schema_key *key, const struct doc_node *node,
                     struct slice *out);
/* As it could stand in a file: in quotes where YAML would read something else. */
void types_print_word(struct slice word, struct text *out);
/* The same of a value, or of what is shown of it. `name`: as schema_mask_fn has it. */
void types_print_value(const struct schema_key *key, struct slice name, struct slice value,
                       enum schema_view view, struct text *out);
/* The choice a node names; NULL after reporting. */
const struct schema_choice *types_find_choice(struct decoder *decoder, const struct schema_key *key,
                                              const struct doc_node *node);
void types_expect_choices(const struct schema_choice *choices, struct text *out);

#endif
