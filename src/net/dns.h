/* SPDX-License-Identifier: Apache-2.0 */
/* Asks name servers, on one thread's loop and without ever waiting: c-ares does the protocol, this file gives
 * it sockets and time. It remembers nothing of what was asked before; net/resolve keeps names resolved. */
#ifndef ISOBAR_NET_DNS_H
#define ISOBAR_NET_DNS_H

#include "core/err.h"
#include "core/ip.h"
#include "net/loop.h"

enum {
    DNS_NAME_MAX = 253,    /* characters of a name (RFC 1035 2.3.4), without the last dot */
    DNS_RECORDS_MAX = 512, /* of one answer that are used; a server can send some thousand over TCP */
};

enum dns_type { DNS_A, DNS_AAAA, DNS_SRV };

/* EMPTY: the server says that there is nothing (no such name, or none of this type); FAILED: nothing is
 * known. */
enum dns_status { DNS_OK, DNS_EMPTY, DNS_FAILED };

struct dns_record {
    struct ip_addr ip;               /* A, AAAA */
    uint16_t port, priority, weight; /* SRV */
    char host[DNS_NAME_MAX + 1];     /* SRV; lower case, without the last dot */
};

struct dns_answer {
    enum dns_status status;
    const char *why; /* constant; of one that is not OK */
    uint32_t ttl_s;  /* the shortest of its records */
    uint32_t n;
    const struct dns_record *records; /* [n]; valid during the call */
};

/* Called once per question, maybe before dns_ask() returns. */
typedef void dns_done_fn(void *arg, const struct dns_answer *answer);

struct dns; /* owner thread only */

/* `servers`: "10.0.0.2,10.0.0.3:5353,[::1]:53"; NULL: those of the system, after its hosts file. */
iso_err dns_open(struct loop *loop, const char *servers, struct dns **out) ISO_MUST_USE;
/* Questions that are open end as FAILED first. */
void dns_close(struct dns **dns);
/* `name` is taken as it stands: no search list is tried. */
void dns_ask(struct dns *dns, enum dns_type type, const char *name, dns_done_fn *fn, void *arg);
/* Takes what has come, waiting for it at most `timeout_ms`; for a start that wants its first answers before
 * it turns the loop. */
void dns_wait(struct dns *dns, uint32_t timeout_ms);

#endif
