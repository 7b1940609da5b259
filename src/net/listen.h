/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets, and handing them to a new process (E5): the new one is started with the open sockets and
 * takes each over by its address, so that no connection that waits in an accept queue is lost. */
#ifndef ISOBAR_NET_LISTEN_H
#define ISOBAR_NET_LISTEN_H

#include "net/addr.h"

#include <stdbool.h>

struct listen_options {
    bool reuse_port;   /* SO_REUSEPORT: one socket per worker on the same address */
    bool defer_accept; /* wake only when the client has sent something: only where the client speaks first */
    bool datagrams;    /* UDP: bound, and nothing of the others but reuse_port has a meaning */
    int backlog;
};

/* A bound, listening, non-blocking socket in *fd, or an errno value. TCP_NODELAY and SO_KEEPALIVE are set, so
 * that accepted connections inherit them. A stale unix socket file that nobody listens on is replaced.
 * Threads: any. */
int listen_open(const struct net_addr *addr, const struct listen_options *options, int *fd);
/* Changes that option of an open socket; nothing for unix sockets. Threads: any. */
void listen_defer_accept(int fd, bool yes);
/* The file of a unix socket goes with it, unless another process has it now. */
void listen_remove_file(const struct net_addr *addr);

/* Takes note of the sockets that an earlier process left in the environment (LISTEN_HANDOVER_ENV);
 * listen_open() then uses one where its address is asked for. Threads: main, once, before the first
 * listen_open(). */
void listen_inherit(void);
/* Is one of them bound to this address and not used yet? */
bool listen_is_inherited(const struct net_addr *addr, bool datagrams);
/* How many there are for one address at most: the number of workers of the earlier process. 0: none. */
uint32_t listen_inherited_workers(void);
/* Closes those that nobody asked for. */
void listen_close_unused(void);

#define LISTEN_HANDOVER_ENV "ISOBAR_LISTEN_FDS"
enum { LISTEN_HANDOVER_MAX = 4096 };
/* Every listening socket of this process, those for datagrams included, into fds[LISTEN_HANDOVER_MAX];
 * returns how many. Threads: control.
 */
uint32_t listen_list(int *fds);
/* The sockets belong to another process from now on: their files are not removed. */
void listen_handed_over(bool yes);

/* The port of a socket bound to port 0. */
uint16_t listen_port(int fd);

#endif
