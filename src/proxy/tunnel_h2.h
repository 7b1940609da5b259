/* SPDX-License-Identifier: Apache-2.0 */
/* A tunnel's end at a target over HTTP/2: an extended CONNECT (RFC 8441) on a stream of a shared connection,
 * as a connection without a socket, so that a tunnel moves bytes over it as over any other. Reading takes
 * what came in DATA frames, writing leaves bytes for DATA frames to come. */
#ifndef ISOBAR_PROXY_TUNNEL_H2_H
#define ISOBAR_PROXY_TUNNEL_H2_H

#include "proxy/exchange.h"

/* Does the exchange need an extended CONNECT of a target that speaks HTTP/2? Other upgrades are offers that
 * may be passed over, and are. */
bool tunnel_h2_is_wanted(const struct exchange *x);
/* Makes the request out of an upgrade's. `protocol` is what it asks for; empty: it is none. */
struct slice tunnel_h2_request(struct exchange *x, struct http_message *msg);
/* Makes the 101 that an upgrade is answered with out of a 2xx; `accept` lives until it has been written. */
bool tunnel_h2_answer(struct exchange *x, struct http_message *msg, char accept[WEBSOCKET_ACCEPT_BYTES]);

/* The stream of x as a connection, from the 2xx on; NULL: no memory. */
struct conn *tunnel_h2_open(struct exchange *x);
/* More came, or what was written has gone. */
void tunnel_h2_ready(struct exchange *x);
/* The stream is about to be released. */
void tunnel_h2_end(struct exchange *x);

void tunnel_h2_init(struct worker *worker);

#endif
