/* SPDX-License-Identifier: Apache-2.0 */
/* The request's body on its way from the client to the target. It is read only as fast as the target takes
 * it; what no target will take any more (we answered ourselves, or the target answered early) is read and
 * thrown away, within a limit. */
#ifndef ISOBAR_PROXY_REQUEST_H
#define ISOBAR_PROXY_REQUEST_H

#include "proxy/exchange.h"

/* Takes body bytes that were read: framing off and on again, limits. False: the request was refused, x has
 * ended or its answer is on the way. */
bool request_take(struct exchange *x, char *data, size_t len, size_t *used, struct transfer_pieces *pieces);
/* The same and hands them to the target, or throws them away; returns how many belong to the request. */
size_t request_feed(struct exchange *x, char *data, size_t len);
/* Body bytes of a stream, to be handed on at once. False: the target is not ready, they have to wait. x may
 * have ended. */
bool request_push(struct exchange *x, char *data, size_t len);
/* The same of the body's end, with trailers (NULL: none). */
bool request_push_end(struct exchange *x, const struct http_message *trailers);
/* Reads the request's body from the client as long as the target takes it. */
void request_pump(struct exchange *x);
/* The client's deadline has come while its body was awaited. */
void request_due(struct exchange *x);

#endif
