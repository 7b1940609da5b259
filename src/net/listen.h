/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets. */
#ifndef ISOBAR_NET_LISTEN_H
#define ISOBAR_NET_LISTEN_H

#include "net/addr.h"

#include <stdbool.h>

struct listen_options {
    bool reuse_port;   /* SO_REUSEPORT: one socket per worker on the same address */
    bool defer_accept; /* wake only when the client has sent something: only where the client speaks first */
    int backlog;
};

/* A bound, listening, non-blocking socket in *fd, or an errno value. TCP_NODELAY and SO_KEEPALIVE are set, so
 * that accepted connections inherit them. A stale unix socket file that nobody listens on is replaced.
 * Threads: any. */
int listen_open(const struct net_addr *addr, const struct listen_options *options, int *fd);
/* The port of a socket bound to port 0. */
uint16_t listen_port(int fd);

#endif
