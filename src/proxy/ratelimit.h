/* SPDX-License-Identifier: Apache-2.0 */
/* A rule's rate limit (F1): who the client is, by what the configuration names, and whether it may make one
 * more request now. Asked before a target is chosen. What each client has used is in shared/limiter, exact
 * over all workers; it outlives a snapshot as long as the rule and its limit stay the same. */
#ifndef ISOBAR_PROXY_RATELIMIT_H
#define ISOBAR_PROXY_RATELIMIT_H

#include "core/scratch.h"
#include "http/message.h"

#include <stdbool.h>

struct exchange;
struct ip_addr;
struct limiter_verdict;
struct registry;
struct snap_limit;
struct snap_listener;
struct snapshot;
struct worker;

void ratelimit_init(struct worker *worker);
/* The thread of the shared state must have ended. */
void ratelimit_fini(struct worker *worker);

/* Finds or makes the limits of a listener's rules. Threads: control. */
void ratelimit_build(struct snapshot *snapshot, struct registry *registry, struct snap_listener *listener);

/* Takes one request from its client's share under the exchange's rule, which has a limit. True: there was
 * none left and the request has been answered with 429. */
bool ratelimit_refuses(struct exchange *x, struct http_message *msg);

/* Tells a client that was let pass what remains, in the answer of a target (x->limit_told). False: no room.
 */
bool ratelimit_note_answer(struct exchange *x, struct http_message *msg, struct scratch *scratch);

/* What it would say of a request that is not made; takes nothing. `scratch` has room for the query. Units:
 * `now_ns` as the workers'. Threads: any. */
void ratelimit_peek(const struct snap_limit *limit, struct http_message *msg, const struct ip_addr *client,
                    char *scratch, uint64_t now_ns, struct limiter_verdict *verdict);

#endif
