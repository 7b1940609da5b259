/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON into a document. */
#ifndef ISOBAR_DOC_JSON_H
#define ISOBAR_DOC_JSON_H

#include "doc/doc.h"

/* Fills `doc`; ISO_ERR_INVALID after the fault was reported. Strictly RFC 8259: no comments, no trailing
 * commas, no NaN. A text that is in a file may as well be read by yaml_read(), which is more lenient.
 * Threads: any. */
iso_err json_read(struct slice text, struct doc *doc) ISO_MUST_USE;

#endif
