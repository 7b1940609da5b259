/* SPDX-License-Identifier: Apache-2.0 */
/* The request target taken apart. */
#ifndef ISOBAR_HTTP1_TARGET_H
#define ISOBAR_HTTP1_TARGET_H

#include "http1/parse.h"

/* Reads the target at *p..end, behind which one space must stand, into msg->target, scheme, authority, path
 * and query; *p then stands behind the space. msg->method is known already. Errors: BAD_TARGET, URI_TOO_LONG,
 * BAD_START_LINE, BARE_LF. Source: RFC 9112 3.2. */
enum h1_result h1_parse_target(const char *floor, const char **p, const char *end, uint32_t uri_bytes,
                               struct http_message *msg, enum http_reject *why);

#endif
