/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON object whose members are read one by one where they stand, without building anything: what a token
 * holds (RFC 7519). Nothing is allocated; texts are brought out of their escapes into the caller's room. */
#ifndef ISOBAR_GUARD_CLAIMS_H
#define ISOBAR_GUARD_CLAIMS_H

#include "core/scratch.h"
#include "core/slice.h"

enum claim_kind { CLAIM_TEXT, CLAIM_NUMBER, CLAIM_LIST, CLAIM_OTHER };

struct claim {
    enum claim_kind kind;
    struct slice raw; /* as it stands, a text with its quotes */
};

/* Is it one object and nothing else, nested no deeper than 16? */
bool claims_are_valid(struct slice json);
/* The member of a valid object; false: there is none. Of several the last one counts. */
bool claims_find(struct slice json, struct slice name, struct claim *out);
/* The text of a claim of kind TEXT; false when there is no room. */
bool claim_text(const struct claim *claim, struct scratch *scratch, struct slice *out);
/* Whole seconds of a claim of kind NUMBER, 0 to 2^53; a fraction is cut off. False: it is another number. */
bool claim_seconds(const struct claim *claim, uint64_t *out);
/* Is the claim that text, or a list with it? */
bool claim_has_text(const struct claim *claim, struct slice wanted, struct scratch scratch);

/* Base64 without padding, in the alphabet of URLs (RFC 4648 5), strictly. False: it is no such text, or there
 * is no room. */
bool claims_decode64(struct slice text, struct scratch *scratch, struct slice *out);

#endif
