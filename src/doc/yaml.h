/* SPDX-License-Identifier: Apache-2.0 */
/* Reads YAML, and hence JSON, into a document. */
#ifndef ISOBAR_DOC_YAML_H
#define ISOBAR_DOC_YAML_H

#include "doc/doc.h"

/* Fills `doc`; ISO_ERR_INVALID after the fault was reported. One document, no anchors, no tags: what is left
 * is the same tree that JSON has. Threads: any. */
iso_err yaml_read(struct slice text, struct doc *doc) ISO_MUST_USE;

#endif
