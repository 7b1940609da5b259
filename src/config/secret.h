/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a document to those who must not see its secrets. Which values are secret, and what stands
 * in place of each, is in the schema (schema_key.secret); everything here walks a document along the schema
 * and knows no key by name. A value that stands in place of a secret can be told from one (secret_is_hidden),
 * so that it is never taken for one. Threads: any. */
#ifndef ISOBAR_CONFIG_SECRET_H
#define ISOBAR_CONFIG_SECRET_H

#include "config/schema.h"
#include "doc/doc.h"

/* In place of a secret, or of the part of a value that is one. Prometheus and its Alertmanager write the
 * same. */
#define SECRET_MARK "<secret>"

/* For the schema: the whole value; the password in a URL; private keys within PEM; values of fields, cookies
 * and parameters whose name says that they let somebody in ("*" only asks whether there is one). */
schema_mask_fn secret_whole, secret_in_url, secret_in_pem, secret_by_name;

/* The value of a key, or one of a map of texts, as it is shown. */
void secret_show(const struct schema_key *key, struct slice name, struct slice value, struct text *out);
/* Is a scalar what is shown of a secret, and so not the secret itself? `name`: as above. */
bool secret_is_hidden(const struct schema_key *key, struct slice name, const struct doc_node *value);
/* Does the section have a secret, in itself or below? */
bool secret_has(const struct schema_section *section);
/* Is something hidden in a map of the section, or in a list of them? */
bool secret_any_hidden(const struct schema_section *section, const struct doc_node *node);

/* As json_write(), with what is shown in place of secrets. `node` is a map of the section, or a list of
 * them. */
void secret_write(const struct schema_section *section, const struct doc_node *node, struct text *out);
/* A hash of what a map or list says. Of its secrets only 12 bits are in it: who knows the rest of the value
 * must not be able to try passwords against the hash. */
uint64_t secret_digest(const struct schema_section *section, const struct doc_node *node);

#endif
