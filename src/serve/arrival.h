/* SPDX-License-Identifier: Apache-2.0 */
/* A connection before its protocol begins, on listeners where its first bytes decide what it is: a PROXY
 * header says whom it is from (A12), a ClientHello where it is to go (A6). Both are looked at where they wait
 * in the kernel (MSG_PEEK): a header is taken out once it is whole, a hello stays for the target, and whoever
 * serves the connection then finds it as if nothing had been before it. Listeners without such wishes hand
 * their connections over at once. Cases C-086 C-089. */
#ifndef ISOBAR_SERVE_ARRIVAL_H
#define ISOBAR_SERVE_ARRIVAL_H

#include "worker/worker.h"

/* The worker's memory for arrivals. */
void arrival_init(struct worker *worker);
/* Does the listener look at first bytes? */
static inline bool arrival_is_wanted(const struct config_listener *config)
{
    return config->proxy_protocol.set || config->protocol == CONFIG_TLS;
}
/* Takes the accepted descriptor over. Threads: the worker. */
void arrival_open(struct worker_listener *listener, int fd, const struct net_addr *peer);
/* Ends every arrival of the listener at once. */
void arrival_cut_all(struct worker_listener *listener);

#endif
