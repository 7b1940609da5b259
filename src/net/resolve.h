/* SPDX-License-Identifier: Apache-2.0 */
/* Names that are kept resolved: hosts (A, AAAA) and services (SRV, and the hosts they name). Each is asked
 * for again when its TTL has passed, within the operator's floor and ceiling; more often, at growing
 * distances, while nothing answers. What was known last is kept until an answer with addresses replaces it:
 * no failure of name servers, and no empty answer, takes a target away. A service changes when all hosts it
 * newly names have been asked, so that old targets do not go before new ones can come.
 *
 * Runs on one thread's loop and never waits but in resolve_settle(). Source: A11, H3, C-116, C-119; RFC 2782.
 */
#ifndef ISOBAR_NET_RESOLVE_H
#define ISOBAR_NET_RESOLVE_H

#include "core/err.h"
#include "core/ip.h"
#include "net/loop.h"

enum resolve_kind { RESOLVE_HOST, RESOLVE_SRV };

struct resolve_settings {
    const char *servers; /* as for dns_open(); NULL: the system's; copied */
    uint32_t min_ttl_ms, max_ttl_ms;
    bool with_ipv4, with_ipv6;
};

struct resolve_name {
    enum resolve_kind kind;
    const char *name; /* lower case, without the last dot */
};

struct resolve_addr {
    struct ip_addr ip;
    uint16_t port, priority, weight; /* of a service; 0 for a host */
};

/* What is known of a name; valid until the loop turns or a function below is called. */
struct resolve_view {
    const struct resolve_addr *addrs; /* [n], sorted, each (ip, port) once; weights of twins are added up */
    uint32_t n;
    bool has_failed; /* the last lookup brought no addresses: those of an earlier one are kept */
    const char *why; /* constant: of that failure, or "not asked yet" */
    uint64_t lookups, failures;
};

struct resolve; /* owner thread only */

/* Some name's addresses have changed since the last call. Not called from resolve_settle(). */
typedef void resolve_changed_fn(void *owner);

struct resolve *resolve_new(struct loop *loop, resolve_changed_fn *on_change, void *owner);
void resolve_free(struct resolve **resolve);

/* Takes new settings; with other servers everything is asked again, and kept meanwhile. */
iso_err resolve_configure(struct resolve *resolve, const struct resolve_settings *settings) ISO_MUST_USE;
/* Begins with those that are new. After resolve_configure(). */
void resolve_add(struct resolve *resolve, const struct resolve_name *names, uint32_t n);
/* Forgets all but these. */
void resolve_retain(struct resolve *resolve, const struct resolve_name *names, uint32_t n);
/* Waits until every name has been answered or has failed once, at most `timeout_ms`; true when it is so. */
bool resolve_settle(struct resolve *resolve, uint32_t timeout_ms);
/* False: it was not added. */
bool resolve_find(const struct resolve *resolve, enum resolve_kind kind, const char *name,
                  struct resolve_view *out);

/* Milliseconds until a name is asked for again: its TTL within bounds, or after `n_failures` in a row longer
 * each time. */
uint32_t resolve_next_ms(const struct resolve_settings *settings, uint32_t ttl_s, uint32_t n_failures);

#endif
