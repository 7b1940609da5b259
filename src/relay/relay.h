/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of TCP listeners (A9): bytes both ways between a client and one target, chosen by the same
 * balancing and health as requests. The target is connected at once, since in many protocols the server
 * speaks first. Each side may end its direction alone; the relay is over when both have, when either breaks,
 * or after timeouts.tunnel_ms without a byte. */
#ifndef ISOBAR_RELAY_RELAY_H
#define ISOBAR_RELAY_RELAY_H

#include "worker/worker.h"

struct arrival_facts;

/* The worker's memory for relays. */
void relay_init(struct worker *worker);
/* Takes the accepted descriptor (and facts->proxied) over. Threads: the worker. */
void relay_open(struct worker_listener *listener, int fd, struct arrival_facts *facts);
/* Ends every relay of the listener at once: the worker ends. */
void relay_cut_all(struct worker_listener *listener);
/* A snapshot was adopted: relays to targets that it does not serve get a deadline. */
void relay_drain(struct worker_listener *listener);

#endif
