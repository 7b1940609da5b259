/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's muxes tell the exchanges that wait for them. */
#ifndef ISOBAR_PROXY_CARRIER_H2_H
#define ISOBAR_PROXY_CARRIER_H2_H

#include "upstream/mux.h"

struct exchange;
struct http_message;

extern const struct mux_events carrier_h2_mux_events;

/* The head that was put together for the target, as a message again. False: it has more than a head may. */
bool carrier_h2_read_head(struct exchange *x, struct http_message *msg);

#endif
