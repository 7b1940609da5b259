/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a connection may come in at all: by the lists of its listener (`sources`) and by how many
 * connections its address has made lately (`connection_rate`). Asked once, before a byte of its protocol is
 * read, of the address that the connection comes from, or that a PROXY header gives. Over TLS a connection is
 * a handshake, so the rate bounds those too. An IPv6 client counts by its /64. */
#ifndef ISOBAR_GUARD_ADMIT_H
#define ISOBAR_GUARD_ADMIT_H

#include "worker/worker.h"

struct registry;
struct snap_listener;
struct snapshot;

/* Compiles what a listener asks for. Threads: control. */
void admit_build(struct snapshot *snapshot, struct registry *registry, struct snap_listener *listener);

/* False: it is not to come in, which has been counted. Takes one from the address's share. */
bool admit(struct worker_listener *listener, const struct ip_addr *addr);
/* What connection_rate would say of one more connection; takes nothing. False: it says nothing of the
 * address. Units: `now_ns` as the workers'. Threads: any. */
bool admit_peek_rate(const struct snap_listener *listener, const struct ip_addr *addr, uint64_t now_ns,
                     struct limiter_verdict *verdict);

#endif
