/* SPDX-License-Identifier: Apache-2.0 */
/* Between resolve.c, which holds the entries and asks, and resolve_judge.c, which decides what an answer
 * changes. One entry a name. A lookup is one question (SRV) or one per address family; it is judged when all
 * of them have ended. Entries of hosts may be wanted by the owner and used by services; they go when neither
 * holds. */
#ifndef ISOBAR_NET_RESOLVE_INTERNAL_H
#define ISOBAR_NET_RESOLVE_INTERNAL_H

#include "net/dns.h"
#include "net/resolve.h"

enum {
    RESOLVE_HASH_SLOTS = 1024,
    RESOLVE_ADDRS_MAX = 4096, /* of a service; records times addresses could be more than anybody means */
    FAMILIES = 2,
};

/* What one question has brought. */
struct result {
    enum dns_status status;
    const char *why;
    uint32_t ttl_s;
    struct resolve_addr *addrs; /* owns; of a host */
    uint32_t n;
};

/* One record of a service; the host is another entry. */
struct service_record {
    struct entry *host; /* shared (counted) */
    uint16_t port, priority, weight;
};

struct service {
    struct service_record *records; /* owns */
    uint32_t n;
};

struct entry {
    struct list node;    /* in its hash slot */
    struct list waiting; /* in resolve->waiting while its lookup has not begun */
    struct resolve *resolve;
    enum resolve_kind kind;
    char *name;          /* owns */
    bool is_wanted;      /* by the owner */
    bool is_settled;     /* has been answered or has failed once */
    bool is_abandoned;   /* goes when its lookup ends */
    uint32_t n_users;    /* records of services that name it */
    uint32_t n_open;     /* questions of the lookup under way */
    uint32_t n_failures; /* in a row */
    uint64_t lookups, failures;
    const char *why; /* NULL: the last lookup was good */
    struct loop_timer again;
    struct result results[FAMILIES];      /* of the lookup under way */
    struct resolve_addr *addrs[FAMILIES]; /* owns: of a host, in force */
    uint32_t n_addrs[FAMILIES];
    struct service now, next; /* of a service: in force; waiting for its hosts */
    bool has_next;
    struct resolve_addr *view; /* owns: what resolve_find() shows, sorted */
    uint32_t n_view;
};

struct resolve {
    struct loop *loop; /* borrows */
    resolve_changed_fn *on_change;
    void *owner;
    struct dns *dns; /* owns; NULL until it is configured */
    char *servers;   /* owns; NULL: the system's */
    struct resolve_settings settings;
    struct list entries[RESOLVE_HASH_SLOTS], waiting;
    uint32_t n_lookups; /* under way */
    bool is_pumping, is_settling, is_closing, has_changed;
    struct loop_timer told; /* on_change at the end of what changes now */
};

/* One user of the entry less: out of the table when there is none, its memory when its lookup has ended. */
void resolve_drop_unused(struct entry *entry);
void resolve_release_service(struct service *service);

/* The lookup has ended and entry->results, or entry->next, say how. */
void resolve_judge(struct entry *entry);

#endif
