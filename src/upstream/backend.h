/* SPDX-License-Identifier: Apache-2.0 */
/* What outlives a snapshot: a target's runtime (counters, health, idle connections), a group's and a
 * listener's. The registry, on the control thread, finds each by a stable name, so that a reload keeps
 * counters, health and connections of everything that did not change (E5). Snapshots hold counted references;
 * an object that no snapshot names any more is freed with the last one that did. */
#ifndef ISOBAR_UPSTREAM_BACKEND_H
#define ISOBAR_UPSTREAM_BACKEND_H

#include "core/hash.h"
#include "core/list.h"
#include "core/slice.h"
#include "health/passive.h"
#include "health/status.h"
#include "net/addr.h"
#include "observe/counters.h"
#include "shared/limiter.h"
#include "shared/local.h"
#include "tls/client.h"

/* One worker's part of a backend: only that worker writes here. */
struct backend_worker {
    struct target_counters counters;
    struct tls_session_slot session; /* the last one with the target */
    struct list idle;                /* of upstream connections, most recently used first; the worker's */
    struct list kept;                /* the same, each for one client */
    uint32_t n_idle;
    struct list muxes;    /* of struct mux: shared HTTP/2 connections; the worker's */
    uint32_t max_streams; /* that the target allowed on the last of them; 0: not known */
    bool chose_http1;     /* the target was offered HTTP/2 and did not take it */
    bool takes_connect;   /* it took extended CONNECTs when it was last asked */
    struct passive_worker passive;
} ISO_CACHE_ALIGN;

struct backend {
    /* set once before publishing */
    char *group_name, *name; /* owns; name is the endpoint: "10.0.0.1:80", "unix:/run/x" */
    struct net_addr addr;
    uint32_t n_workers;
    struct backend_worker *workers; /* owns; [n_workers] */

    /* any thread: atomic, relaxed; a line of their own */
    struct {
        _Atomic uint32_t in_flight;   /* requests being worked on, over all workers */
        _Atomic uint32_t connections; /* open or opening, over all workers, idle ones included */
        struct passive_runs runs;     /* of failures of real requests */
        /* The snapshot from which on it gets no new work: removed or disabled; 0: it gets work. Written by
         * the control thread before that snapshot is published. */
        _Atomic uint64_t left_version;
    } ISO_CACHE_ALIGN;
    struct health_status health ISO_CACHE_ALIGN;

    /* control thread only */
    uint32_t refs;
    uint64_t stamp;               /* of the last snapshot built that names it */
    uint64_t drain_until_wall_ns; /* when what it still does is cut; 0: it was not told to leave */
    struct list node;             /* in the registry */
};

/* One more of what is counted over all workers; false when there are `limit` already (0: there is none). */
static inline bool backend_reserve(_Atomic uint32_t *count, uint32_t limit)
{
    uint32_t before = atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
    if (limit == 0 || before < limit)
        return true;
    atomic_fetch_sub_explicit(count, 1, memory_order_relaxed);
    return false;
}

/* What a target group keeps beyond snapshots. */
struct group_runtime {
    char *name; /* owns */
    uint32_t n_workers;
    struct group_counters *workers;  /* owns; [n_workers] */
    struct local_sessions *sessions; /* owns; NULL: no affinity that needs it. Set once before publishing */
    struct siphash_key session_salt; /* so that clients cannot aim at each other's entries */
    struct {
        _Atomic uint32_t epoch;   /* raised whenever a target's usability changed; release after the change */
        _Atomic uint32_t pending; /* requests waiting for a connection, over all workers */
        struct health_group health;
    } ISO_CACHE_ALIGN;
    /* control thread only */
    uint32_t refs;
    uint32_t index; /* of the group in the last snapshot built */
    struct list node;
};

/* What a listener keeps beyond snapshots: its sockets, one per worker, and counters. */
struct listener_runtime {
    char *name;     /* owns; the configured name, label of the metrics */
    char *endpoint; /* owns; identity: "0.0.0.0:80" */
    struct net_addr addr;
    uint32_t n_workers;
    struct listener_counters *workers; /* owns; [n_workers] */
    bool datagrams;                    /* UDP; part of the identity */
    int *fds;                          /* owns; bound sockets, one per worker; a worker takes its own over */
    struct {
        _Atomic uint32_t connections; /* open over all workers, for limits.connections */
    } ISO_CACHE_ALIGN;
    /* control thread only */
    uint64_t last_version; /* of a snapshot that names it; its sockets close once one in force does not */
    uint32_t refs;
    struct list node;
};

/* What a rule's rate limit keeps beyond snapshots: how much of it each client has used. */
struct limit_runtime {
    char *name; /* owns; says the listener, the rule and the limit: another limit begins anew */
    uint32_t n_workers;
    struct limit_counters *workers; /* owns; [n_workers] */
    struct limiter *limiter;        /* owns */
    struct siphash_key salt;        /* so that clients cannot aim at each other's entries */
    uint32_t refs;                  /* control thread only */
    struct list node;
};

struct registry; /* control thread only */

struct registry *registry_new(uint32_t n_workers);
/* A number that no snapshot had before: it marks what a snapshot names. */
uint64_t registry_stamp(struct registry *registry);
/* One whose listeners get no sockets: to compile a configuration without serving it. */
struct registry *registry_new_detached(uint32_t n_workers);
void registry_free(struct registry *registry);

/* Found by name or made; the caller owns one reference. Threads: control. */
struct backend *registry_backend(struct registry *registry, struct slice group, struct slice name,
                                 const struct net_addr *addr, struct group_runtime *runtime);
struct group_runtime *registry_group(struct registry *registry, struct slice name);
struct limit_runtime *registry_limit(struct registry *registry, struct slice name,
                                     const struct limiter_policy *policy, uint32_t clients);
enum listener_kind {
    LISTENER_STREAM,              /* the server may speak first */
    LISTENER_STREAM_CLIENT_FIRST, /* connections are taken when the client has sent something */
    LISTENER_DATAGRAMS,
};
/* For the snapshot `version`, which is to follow version - 1. Binds the sockets when the listener is new;
 * NULL and `*why` (errno) when that fails. */
struct listener_runtime *registry_listener(struct registry *registry, struct slice name,
                                           struct slice endpoint, const struct net_addr *addr,
                                           uint64_t version, enum listener_kind kind, int *why);
struct backend *registry_backend_ref(struct backend *backend);
/* Its name is free for a new one from now on; it lives as long as it is held. */
void registry_backend_forget(struct registry *registry, struct backend *backend);
void registry_backend_unref(struct registry *registry, struct backend **backend);
void registry_group_unref(struct registry *registry, struct group_runtime **group);
void registry_limit_unref(struct registry *registry, struct limit_runtime **limit);
void registry_listener_unref(struct registry *registry, struct listener_runtime **listener);

#endif
