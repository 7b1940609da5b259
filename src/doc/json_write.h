/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a document as JSON, whatever it was read from. */
#ifndef ISOBAR_DOC_JSON_WRITE_H
#define ISOBAR_DOC_JSON_WRITE_H

#include "doc/doc.h"

/* Appends the value on one line, keys in their order. json_read() of it gives the same values; a real that
 * JSON cannot say (.inf, .nan) becomes null. `without`: keys of `root` itself to leave out, ends with NULL;
 * may be NULL. Threads: any. */
void json_write(const struct doc_node *root, const char *const *without, struct text *out);

#endif
