/* SPDX-License-Identifier: Apache-2.0 */
/* The reference of every key, as Markdown, from the schema: a part of docs/configuration.md (a test compares
 * them) and what `isobar check --reference` prints. */
#ifndef ISOBAR_CONFIG_DOCS_H
#define ISOBAR_CONFIG_DOCS_H

#include "core/text.h"

void config_write_reference(struct text *out);

#endif
