/* SPDX-License-Identifier: Apache-2.0 */
/* Documents for tests of stores. */
#ifndef ISOBAR_TESTS_STORE_PRINTED_OF_H
#define ISOBAR_TESTS_STORE_PRINTED_OF_H

#include "doc/json.h"
#include "doc/printed.h"

/* Of valid JSON. Owns: the caller. */
static inline struct printed *printed_of(struct slice json)
{
    struct iso_diag diag;
    struct doc doc;
    diag_init(&diag);
    doc_init(&doc, "test.json", &diag);
    iso_err err = json_read(json, &doc);
    iso_assert(!err);
    struct printed *printed = printed_new(doc.root, NULL, NULL);
    doc_fini(&doc);
    diag_fini(&diag);
    return printed;
}

#endif
