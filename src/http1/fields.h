/* SPDX-License-Identifier: Apache-2.0 */
/* Field lines, as heads and trailer sections share them. */
#ifndef ISOBAR_HTTP1_FIELDS_H
#define ISOBAR_HTTP1_FIELDS_H

#include "http1/parse.h"

/* token of RFC 9110 5.6.2. */
extern const bool h1_token_byte[256];

/* Appends the fields at *p..end to msg up to and with the empty line, behind which *p then stands. `floor` is
 * where the buffer begins (see scan.h), `max` the number of fields allowed. Errors: BAD_FIELD, OBS_FOLD,
 * BARE_LF, TOO_MANY_FIELDS. Source: RFC 9112 5. */
enum h1_result h1_parse_fields(const char *floor, const char **p, const char *end, uint32_t max,
                               struct http_message *msg, enum http_reject *why);

#endif
