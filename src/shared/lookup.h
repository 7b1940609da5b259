/* SPDX-License-Identifier: Apache-2.0 */
/* A host name's address without waiting for it: getaddrinfo() on a thread of its own, the result by a call on
 * the asking loop. For the few names that the process asks for itself. */
#ifndef ISOBAR_SHARED_LOOKUP_H
#define ISOBAR_SHARED_LOOKUP_H

#include "net/addr.h"
#include "net/loop.h"

struct lookup;

/* `addr` NULL: there is none, `why` says so in words. Called once, on the loop of lookup_start(). */
typedef void lookup_done_fn(void *owner, const struct net_addr *addr, const char *why);

/* Asks for `host` (a name or an address); `owner` is told later, never inside this call. Aborts when memory
 * ends. */
struct lookup *lookup_start(struct loop *loop, const char *host, uint16_t port, lookup_done_fn *done,
                            void *owner);
/* The owner no longer wants to be told; never waits. Threads: the loop's. */
void lookup_end(struct lookup **lookup);

#endif
