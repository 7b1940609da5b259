/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to a rule (A2, A10). A route table is compiled from one listener's rules when the snapshot
 * is built and immutable afterwards: a hash on the exact host, a list of wildcard hosts by length, under each
 * host a radix tree on the path. Precedence, highest first: host exact, longer wildcard, any; path exact,
 * longer prefix, regex in the file's order, any; more of the other conditions (methods, headers, cookies,
 * query, source); the file's order. The first rule in that order whose every condition holds is taken.
 * Nothing here allocates after compiling. */
#ifndef ISOBAR_ROUTE_ROUTE_H
#define ISOBAR_ROUTE_ROUTE_H

#include "config/model.h"
#include "core/diag.h"
#include "core/random.h"
#include "http/message.h"
#include "observe/counters.h"

struct route_table;
struct route_scratch; /* what matching a regex needs; one per worker */

/* Compiles; `listener` must outlive the table. ISO_ERR_INVALID and a diagnostic when a pattern does not
 * compile. Compiled patterns live outside the arena: route_table_fini() frees them. Threads: control. */
iso_err route_compile(const struct config_listener *listener, struct arena *arena, struct route_table **table,
                      struct iso_diag *diag) ISO_MUST_USE;
void route_table_fini(struct route_table *table); /* NULL does nothing */

/* Aborts when memory ends. */
struct route_scratch *route_scratch_new(void);
void route_scratch_free(struct route_scratch *scratch);
/* From now on counts patterns that gave up at their limit into `gave_up`, the owner worker's; NULL: nowhere.
 */
void route_scratch_count(struct route_scratch *scratch, counter *gave_up);

/* The rule to apply, or NULL when none matches (the listener's default target group then serves). The host is
 * compared in lower case without port and trailing dot; the path as received with its query cut off, not
 * decoded, dot segments not resolved: what is matched is what is forwarded. A path prefix matches whole
 * segments: "/v2" and "/v2/" both match "/v2", "/v2/" and "/v2/x", not "/v20". A pattern that reaches its
 * limit counts as no match, except in a rule that denies. Threads: any worker. */
const struct config_rule *route_match(const struct route_table *table, struct http_message *request,
                                      const struct ip_addr *client, struct route_scratch *scratch);

/* Why a rule did not take a request; ROUTE_HOLDS: it would. */
enum route_miss {
    ROUTE_HOLDS,
    ROUTE_MISS_HOST,
    ROUTE_MISS_PATH,
    ROUTE_MISS_METHOD,
    ROUTE_MISS_SOURCE,
    ROUTE_MISS_HEADER,
    ROUTE_MISS_COOKIE,
    ROUTE_MISS_QUERY,
    ROUTE_MISS_PATTERN,
    ROUTE_MISS_PATTERN_LIMIT, /* the pattern gave up */
};

struct route_verdict {
    const struct config_rule *rule;
    enum route_miss miss;
    uint32_t which; /* of the rule's headers, cookies or query parameters */
    bool was_tried; /* before the rule that was taken, or it is the one; false: it was not looked at */
};

/* route_match(), and into verdicts[the listener's n_rules] what each rule came to: first those that were
 * tried, in that order, then the others by precedence. Source: K3. */
const struct config_rule *route_explain(const struct route_table *table, struct http_message *request,
                                        const struct ip_addr *client, struct route_scratch *scratch,
                                        struct route_verdict *verdicts);

enum route_action { ROUTE_FORWARD, ROUTE_REDIRECT, ROUTE_RESPOND, ROUTE_DENY };

/* What becomes of a request that `rule` takes; NULL: none does, and the listener says. */
static inline enum route_action route_action(const struct config_listener *listener,
                                             const struct config_rule *rule)
{
    if (!rule)
        return listener->redirect.set ? ROUTE_REDIRECT : ROUTE_FORWARD;
    return rule->redirect.set  ? ROUTE_REDIRECT
           : rule->respond.set ? ROUTE_RESPOND
           : rule->deny_status ? ROUTE_DENY
                               : ROUTE_FORWARD;
}

/* Draws one of the rule's target groups by weight, as its index in the config; -1 when all weights are 0. */
int32_t route_forward(const struct config_rule *rule, struct rng *rng);

/* A path prefix without its last '/', as it is compared: "/" becomes "". */
static inline struct slice route_prefix_trim(struct slice prefix)
{
    return prefix.len && prefix.ptr[prefix.len - 1] == '/' ? slice_of(prefix.ptr, prefix.len - 1) : prefix;
}

/* Does the trimmed prefix cover whole segments of the path? */
static inline bool route_prefix_has(struct slice trimmed, struct slice path)
{
    return slice_starts(path, trimmed) && (path.len == trimmed.len || path.ptr[trimmed.len] == '/');
}

/* The host of an authority (or Host value): without port and one trailing dot; in the case received. */
static inline struct slice route_host(struct slice authority)
{
    bool bracketed = authority.len && authority.ptr[0] == '[';
    size_t end = slice_find(authority, bracketed ? ']' : ':');
    if (bracketed && end < authority.len)
        end++;
    if (end && authority.ptr[end - 1] == '.')
        end--;
    return slice_of(authority.ptr, end);
}

#endif
