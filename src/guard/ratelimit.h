/* SPDX-License-Identifier: Apache-2.0 */
/* A rule's rate limit (F1): who the client is, by what the configuration names, and whether it may make one
 * more request now. Asked before a target is chosen. What each client has used is in shared/limiter, exact
 * over all workers; it outlives a snapshot as long as the rule and its limit stay the same. */
#ifndef ISOBAR_GUARD_RATELIMIT_H
#define ISOBAR_GUARD_RATELIMIT_H

#include "core/err.h"
#include "http/message.h"
#include "http1/write.h"
#include "observe/ends.h"
#include "shared/limiter.h"

struct ip_addr;
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

/* Takes one request from the client's share. END_NORMAL: there was something left. END_RATE_LIMITED and
 * END_RATE_UNKNOWN: the request is to be refused. END_WOULD_RATE_LIMIT: it would be, but for the limit's
 * dry_run. `verdict` is not set with END_RATE_UNKNOWN. */
enum exchange_end ratelimit_take(const struct snap_limit *limit, struct worker *worker,
                                 struct http_message *msg, const struct ip_addr *client,
                                 struct limiter_verdict *verdict) ISO_MUST_USE;
/* How long until `ns` are over, at least 1. */
uint32_t ratelimit_seconds(uint64_t ns);

/* Fields that tell a client of its limit; `texts` are their values. Units: `next_s` until something remains,
 * `reset_s` until all of it does. */
enum { RATELIMIT_FIELDS = 5, RATELIMIT_VALUE_MAX = 80 };
void ratelimit_print(const struct snap_limit *limit, uint32_t remaining, uint32_t next_s, uint32_t reset_s,
                     char texts[RATELIMIT_FIELDS][RATELIMIT_VALUE_MAX],
                     struct h1_pair fields[RATELIMIT_FIELDS]);
/* What ratelimit_take() would say of a request that is not made; takes nothing. `scratch` has room for the
 * query. Units: `now_ns` as the workers'. Threads: any. */
enum exchange_end ratelimit_peek(const struct snap_limit *limit, struct http_message *msg,
                                 const struct ip_addr *client, char *scratch, uint64_t now_ns,
                                 struct limiter_verdict *verdict);

#endif
