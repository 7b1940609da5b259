/* SPDX-License-Identifier: Apache-2.0 */
/* A client's HTTP/1 connection: reads request heads, hands each to an exchange, goes on to the next when that
 * has ended. An idle connection is this struct and its descriptor, nothing else. A connection is registered
 * in epoll only when a read has to wait or it outlives its first exchange: one request on one connection
 * costs no epoll_ctl. */
#ifndef ISOBAR_DOWNSTREAM_CLIENT_H1_H
#define ISOBAR_DOWNSTREAM_CLIENT_H1_H

#include "proxy/client.h"

/* Takes the accepted descriptor (and facts->proxied) over and reads at once. Threads: the worker. */
void client_open(struct worker_listener *listener, int fd, struct arrival_facts *facts);
/* Ends the connection at once, whatever it does. */
void client_close(struct client *client);
/* The same for a client that does not take what was sent: the kernel does not keep it for delivery. */
void client_drop(struct client *client);

/* The connection ends as soon as nothing is lost by that: at once when it is idle, else with what it is
 * doing. */
void client_wind_down(struct client *client);
/* The connection and whatever it does end at once: the process ends. */
void client_cut(struct client *client);

/* The exchange has ended (its memory is gone): the next request, or the end of the connection. */
void client_next(struct client *client);

#endif
