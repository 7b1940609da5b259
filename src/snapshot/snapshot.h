/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled configuration that workers read: immutable but for each worker's own corner, built on the
 * control thread and handed to every worker through a mailbox. A snapshot lives until the last worker has
 * finished the last exchange that began under it. Everything that can be computed before a request comes is
 * computed here. */
#ifndef ISOBAR_SNAPSHOT_SNAPSHOT_H
#define ISOBAR_SNAPSHOT_SNAPSHOT_H

#include "balance/method.h"
#include "config/model.h"
#include "core/diag.h"
#include "http1/write.h"
#include "observe/accesslog.h"
#include "route/route.h"
#include "route/sni.h"
#include "shared/state.h"
#include "snapshot/shape.h"
#include "tls/client.h"
#include "tls/server.h"
#include "transform/forwarded.h"
#include "upstream/backend.h"

/* A worker's moving state of one group under one snapshot: only that worker touches it. */
struct snap_group_worker {
    uint32_t epoch_seen; /* of the runtime; differs: look at the targets' health again */
    uint32_t n_usable;
    uint32_t n_weightless; /* usable but for their weight of 0 */
    uint32_t retry_tokens; /* hundredths of a retry that the budget allows */
    struct balance_state *state;
    uint64_t *eligible;   /* bitmap of the targets of the first rank that may take work: backups when no other
                             is usable */
    uint16_t *ramp;       /* slow start: each target's part of its weight, while any is ramping */
    uint64_t ramp_due_ns; /* when to work it out again; 0: nobody is ramping */
    bool is_panicking;    /* eligible ignores health (D5) */
    uint64_t *attempt;    /* bitmap for a retry: eligible without those tried */
} ISO_CACHE_ALIGN;

enum snap_http2 {
    SNAP_HTTP2_NONE,
    SNAP_HTTP2_OFFERED, /* by ALPN, beside HTTP/1.1 */
    SNAP_HTTP2_ONLY,
};

struct snap_group {
    const struct config_target_group *config; /* borrows from the snapshot's config */
    struct group_runtime *runtime;            /* shared (counted) */
    struct snap_shape *shape;                 /* shared (counted); owns targets and table */
    uint64_t same_as; /* stamp of the snapshot before, when all that checks of health look at is the same */
    struct backend **targets; /* [n_targets] */
    /* [n_targets], the same indexes: the config's own, or with names resolved */
    const struct config_target *settings;
    uint32_t n_targets;
    struct tls_client *tls; /* shared (counted); NULL: plain */
    enum snap_http2 http2;  /* what targets speak */
    struct balance_pool pool;
    const struct balance_method *method;
    struct balance_table *table;
    struct shared_state *shared;       /* borrows: the process's; NULL: sessions are this process's alone */
    struct affinity_id *affinity;      /* [n_targets], sorted; NULL: no affinity */
    struct siphash_key affinity_key;   /* signs cookies */
    struct snap_group_worker *workers; /* [n_workers] */
};

/* The rate limit of one rule. */
struct snap_limit {
    const struct config_rate_limit *config;
    struct limit_runtime *runtime;      /* shared (counted) */
    struct shared_state *shared;        /* borrows: the process's; NULL: this node counts alone */
    uint64_t fleet_id;                  /* the same on every node with the same rule and limit */
    const struct ratelimit_part *parts; /* what tells clients apart */
    uint32_t n_parts;
    struct slice label;  /* the rule's name, or its place: "rules/3" */
    struct slice policy; /* value of RateLimit-Policy */
};

struct snap_listener {
    struct snapshot *snapshot; /* borrows: the one it is part of */
    const struct config_listener *config;
    struct listener_runtime *runtime; /* shared (counted) */
    struct route_table *routes;
    struct tls_server *tls;    /* shared (counted); NULL: plain */
    struct snap_limit *limits; /* of the rules that have one, in their order */
    uint32_t n_limits;
    const struct snap_limit **rule_limits; /* [rules]; NULL: that rule has none */
    const struct sni_table *names;         /* of a TLS listener; NULL otherwise */
    struct h1_pair *security;              /* fields of every answer */
    uint32_t n_security;
    const struct sources *sources;          /* NULL: all may connect */
    struct limit_runtime *connection_limit; /* shared (counted); NULL: none */
    struct jwt_verifier **rule_jwt;         /* [rules]; shared (counted); NULL: that rule has none */
    struct passwords **rule_passwords;      /* the same */
    const struct sources **rule_sources;    /* [rules]; NULL: all */
    bool keeps_headers; /* a target group wants to be told of clients: PROXY headers are kept */
};

/* The access log that a snapshot writes to; several may share one. Control thread only, but for the two
 * pointers. */
struct snapshot_log {
    struct accesslog *log;           /* owns */
    struct accesslog_format *format; /* owns */
    struct slice file, format_text;  /* owns: as configured */
    uint32_t refs;                   /* snapshots */
};

/* How many exchanges of one worker run under a snapshot. */
struct snap_worker {
    uint32_t uses;
} ISO_CACHE_ALIGN;

struct resolve;

/* What was read of certificate files; snapshots of one configuration share it. Control thread only. */
struct snap_certs {
    uint32_t refs;
    uint32_t n;
    struct tls_cert *certs[]; /* owns */
};

struct snapshot {
    struct config *config; /* shared (counted) */
    struct arena arena;    /* owns what is compiled */
    uint64_t version;      /* counts up with every snapshot in force */
    uint64_t stamp;        /* on what it names; no two snapshots have the same */
    uint32_t n_workers;
    struct forwarded_trust trust;
    struct snap_listener *listeners;
    uint32_t n_listeners;
    struct snap_certs *cert_set; /* shared (counted) */
    struct tls_cert **certs;     /* [n_certs]; of the set; same indexes as config->certificates */
    uint32_t n_certs;
    struct tls_client *shared_tls; /* owns one reference; of shared_state; NULL: plain */
    struct snap_group *groups;     /* same indexes as config->target_groups */
    uint32_t n_groups;
    struct snap_worker *workers;    /* [n_workers] */
    const struct snapshot_log *log; /* NULL: off; set before it is published */
    /* any thread: atomic, acq_rel. Held by: the control thread for the current one, each worker, the health
     * thread */
    _Atomic uint32_t refs;
    struct snapshot *next; /* control thread: list of those not freed yet */
};

/* A fresh corner of moving state, as each worker has one; `mine` is zeroed. Threads: control. */
void snapshot_corner_init(const struct snap_group *group, struct snap_group_worker *mine,
                          struct arena *arena);

/* Where an endpoint of the configuration is. */
void snapshot_endpoint_addr(const struct config_endpoint *endpoint, struct net_addr *addr);

static inline void snapshot_ref(struct snapshot *snapshot)
{
    atomic_fetch_add_explicit(&snapshot->refs, 1, memory_order_relaxed);
}

/* Gives one reference back; whoever gives the last one back leaves the snapshot to snapshot_free() on the
 * control thread, which finds it by refs == 0. Threads: any. */
static inline void snapshot_unref(struct snapshot *snapshot)
{
    atomic_fetch_sub_explicit(&snapshot->refs, 1, memory_order_acq_rel);
}

/* Would a snapshot of the same configuration, built now, have the same targets? Threads: control. */
bool snapshot_is_current(const struct snapshot *snapshot, const struct resolve *resolve);

/* Are the group's targets in the snapshot too, unchanged? Of the newest snapshot built only. Threads:
 * control.
 */
static inline bool snapshot_has_shape(const struct snapshot *snapshot, const struct snap_group *group)
{
    return group->shape->stamp == snapshot->stamp;
}

/* Is the backend one of its targets, in a group that has changed? Of the newest snapshot built only. Threads:
 * control. */
static inline bool snapshot_has_backend(const struct snapshot *snapshot, const struct backend *backend)
{
    return backend->stamp == snapshot->stamp;
}

/* And enabled: neither removed nor disabled, so not draining? One that gets work again in a newer snapshot
 * counts as serving already. Threads: any that has the snapshot in force, or had. */
static inline bool snapshot_serves_backend(const struct snapshot *snapshot, const struct backend *backend)
{
    uint64_t left = atomic_load_explicit(&((struct backend *)backend)->left_version, memory_order_relaxed);
    return left == 0 || left > snapshot->version;
}

/* Notes which backends get no more work once `now` is in force, and which do, to be called before it is
 * published. `old` is what was in force; NULL: nothing. Threads: control. */
void snapshot_mark_leaving(const struct snapshot *now, const struct snapshot *old);

#endif
