/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker's muxes tell the exchanges that wait for them. */
#ifndef ISOBAR_PROXY_CARRIER_H2_H
#define ISOBAR_PROXY_CARRIER_H2_H

#include "upstream/mux.h"

extern const struct mux_events carrier_h2_mux_events;

#endif
