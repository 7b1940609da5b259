/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to a message between its two sides, as a rule asks for them (A3): path prefix, host, fields to set,
 * add and remove; and what a redirect or a fixed answer looks like. New bytes are made in the caller's
 * scratch; false means that they did not fit, and the request is then refused as too large. */
#ifndef ISOBAR_TRANSFORM_REWRITE_H
#define ISOBAR_TRANSFORM_REWRITE_H

#include "config/model.h"
#include "core/scratch.h"
#include "http/message.h"

/* Applies rule->rewrite to a request that the rule matched: msg->target with path and query, msg->authority
 * with its Host field, request fields. The path keeps whole segments: "/v2/" to "/" makes "/x" of "/v2/x" and
 * "/" of
 * "/v2"; without a match.path_prefix the new prefix is put in front. Order of fields: remove, set, add.
 * Fields that carry framing (Content-Length, Transfer-Encoding, Connection...) cannot be changed by a rule:
 * validation refuses them. */
bool rewrite_request(const struct config_rule *rule, struct http_message *msg, struct scratch *scratch);
bool rewrite_response(const struct config_rule *rule, struct http_message *msg, struct scratch *scratch);

/* The Location value of a redirect for this request; `tls` is whether the client came over TLS. What the
 * redirect leaves open is as requested; the port that the client used stays only when scheme and host do. "?"
 * before {query} goes when there is no query. No path can lead to a host that it names itself. */
bool rewrite_redirect(const struct config_redirect *redirect, const struct http_message *request, bool tls,
                      struct scratch *scratch, struct slice *location);

#endif
