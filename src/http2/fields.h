/* SPDX-License-Identifier: Apache-2.0 */
/* A message on its way out as a header list. As with HTTP/1 only the decision about framing is written, never
 * the sender's own framing fields; names become lower case, and what belongs to a connection stays behind.
 * Only files of this folder include this one: it shows nghttp2's types. Source: RFC 9113 8.2 and 8.3. */
#ifndef ISOBAR_HTTP2_FIELDS_H
#define ISOBAR_HTTP2_FIELDS_H

#include "core/scratch.h"
#include "http/message.h"

#include <nghttp2/nghttp2.h>

/* A list borrows from the message and from itself until it has been submitted. */
struct http2_fields {
    size_t n, bytes; /* fields; what they would take as lines */
    char status[3], length[20];
    nghttp2_nv nv[HTTP_FIELDS_MAX + 8];
};

/* False: `scratch` has no room for the names in lower case. */
bool http2_fields_of_response(struct http2_fields *list, const struct http_message *msg,
                              struct scratch *scratch);
/* `scheme` is that of the connection; Host becomes :authority. With `protocol` (empty: none) it is an
 * extended CONNECT (RFC 8441); an Upgrade is not passed on otherwise. */
bool http2_fields_of_request(struct http2_fields *list, const struct http_message *msg, struct slice scheme,
                             struct slice protocol, struct scratch *scratch);
bool http2_fields_of_trailers(struct http2_fields *list, const struct http_message *msg,
                              struct scratch *scratch);

#endif
