/* SPDX-License-Identifier: Apache-2.0 */
/* After a 101 (WebSocket and other upgrades): bytes both ways, unchanged. Each side may end its direction
 * alone (half-close); the tunnel is over when both have, when either breaks, or after tunnel_ms without a
 * byte. */
#ifndef ISOBAR_PROXY_TUNNEL_H
#define ISOBAR_PROXY_TUNNEL_H

#include "proxy/exchange.h"

/* The 101 has been sent: both connections become one tunnel. */
void tunnel_start(struct exchange *x, struct slice from_upstream);
void tunnel_pump(struct exchange *x);
void tunnel_due(struct exchange *x);
/* A WebSocket tunnel that will be cut says so: a close frame (1001) to each side, between two frames. */
void tunnel_say_going_away(struct exchange *x);

#endif
