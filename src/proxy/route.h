/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to a rule (A2, A10). A route table is compiled from one listener's rules when the snapshot
 * is built and immutable afterwards: a hash on the exact host, a list of wildcard hosts by length, under each
 * host a radix tree on the path. Precedence, highest first: host exact, longer wildcard, any; path exact,
 * longer prefix, regex in the file's order, any; more of the other conditions (methods, headers, cookies,
 * query, source); the file's order. The first rule in that order whose every condition holds is taken.
 * Nothing here allocates after compiling. */
#ifndef ISOBAR_PROXY_ROUTE_H
#define ISOBAR_PROXY_ROUTE_H

#include "config/model.h"
#include "core/diag.h"
#include "core/random.h"
#include "http/message.h"

struct route_table;
struct route_scratch; /* what matching a regex needs; one per worker */

/* Compiles; `listener` must outlive the table. ISO_ERR_INVALID and a diagnostic when a pattern does not
 * compile. Compiled patterns live outside the arena: route_table_fini() frees them. Threads: control. */
iso_err route_compile(const struct config_listener *listener, struct arena *arena, struct route_table **table,
                      struct iso_diag *diag) ISO_MUST_USE;
void route_table_fini(struct route_table *table);

struct route_scratch *route_scratch_new(void);
void route_scratch_free(struct route_scratch *scratch);

/* The rule to apply, or NULL when none matches (the listener's default target group then serves). The host is
 * compared in lower case without port and trailing dot; the path as received with its query cut off, not
 * decoded, dot segments not resolved: what is matched is what is forwarded. Threads: any worker. */
const struct config_rule *route_match(const struct route_table *table, struct http_message *request,
                                      const struct ip_addr *client, struct route_scratch *scratch);

/* Draws one of the rule's target groups by weight; -1 when all weights are 0. */
int32_t route_forward(const struct config_rule *rule, struct rng *rng);

#endif
