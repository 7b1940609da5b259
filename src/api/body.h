/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a call as a document. */
#ifndef ISOBAR_API_BODY_H
#define ISOBAR_API_BODY_H

#include "api/api.h"
#include "doc/doc.h"

/* Reads the call's body into `doc` (to be ended by doc_fini() in any case; its faults are in `diag`): JSON,
 * and YAML too with `or_yaml`. False with 400 or 415 in the call. */
bool api_read_body(struct api_call *call, bool or_yaml, struct doc *doc, struct iso_diag *diag);

#endif
