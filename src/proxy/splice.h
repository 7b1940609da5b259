/* SPDX-License-Identifier: Apache-2.0 */
/* A large body of known length that nothing needs to look at goes from the target to the client through a
 * pipe and never enters our memory. Only between two plain connections. */
#ifndef ISOBAR_PROXY_SPLICE_H
#define ISOBAR_PROXY_SPLICE_H

#include "proxy/exchange.h"

/* The body may go through a pipe from here on, if it is worth it: x->is_spliced. All sent so far has gone. */
void splice_begin(struct exchange *x);
void splice_pump(struct exchange *x);
/* Gives the pipe of a spliced answer back, or closes it when bytes are left in it. */
void splice_drop(struct exchange *x);

#endif
