/* SPDX-License-Identifier: Apache-2.0 */
/* The answer on its way from the target to the client: interim answers, the final head, the body. The target
 * is read only as fast as the client takes it. How heads and bodies come from the target is its carrier's
 * business. */
#ifndef ISOBAR_PROXY_RESPONSE_H
#define ISOBAR_PROXY_RESPONSE_H

#include "proxy/exchange.h"

/* Of heads and trailers that targets send. */
extern const struct h1_limits response_limits;
/* Reads the answer as long as the client takes it. */
void response_pump(struct exchange *x);
/* The carrier has read the head of an interim answer (1xx without 101). False: x has ended. */
bool response_interim(struct exchange *x, struct http_message *msg);
/* The same of the final answer, or a 101, and of the bytes that came with it. False: x has ended or its
 * attempt has. */
bool response_head(struct exchange *x, struct http_message *msg, char *data, size_t len);
/* Then what follows, in the target's framing; changed in place. False: x has ended. */
bool response_body(struct exchange *x, char *data, size_t len);
/* The target's side has ended, or broken, before the answer was complete as far as its framing tells; with
 * answer_has_end in any case. `trailers` (NULL: none) came with an end in order. */
void response_end(struct exchange *x, bool in_order, const struct http_message *trailers);
/* The head is not valid HTTP. */
void response_reject(struct exchange *x, enum http_reject why);
void response_due(struct exchange *x);
/* How long the answer may stop, once it has begun or not. */
uint32_t response_patience_ms(const struct exchange *x);

#endif
