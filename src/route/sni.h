/* SPDX-License-Identifier: Apache-2.0 */
/* Routing of TLS connections that pass through undecrypted (A6): from what a ClientHello says to a rule of
 * the listener. Precedence, highest first: name exact, longer wildcard, any; more of the other conditions
 * (ALPN, source); the file's order. A table is compiled from one listener's rules when the snapshot is built,
 * is immutable afterwards, and is searched without allocating. */
#ifndef ISOBAR_ROUTE_SNI_H
#define ISOBAR_ROUTE_SNI_H

#include "config/model.h"
#include "tls/clienthello.h"

struct sni_table;

/* `listener` must outlive the table, which lives in the arena. Threads: control. */
const struct sni_table *sni_compile(const struct config_listener *listener, struct arena *arena);

/* The rule to apply, or NULL when none matches. The name is compared without regard to case and to one dot at
 * its end; "*.rest" stands for one label or more in front of the rest. Of the client's ALPN names any may
 * match. Threads: any worker. */
const struct config_rule *sni_match(const struct sni_table *table, const struct client_hello *hello,
                                    const struct ip_addr *client);

#endif
