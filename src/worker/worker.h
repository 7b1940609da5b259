/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: one thread, one loop, its own listening sockets, connections, pools and counters. Workers share
 * nothing but the snapshot and one cache line of atomics per target. Here is what the stages of its work have
 * in common; its thread, and what the control thread tells it, are serve/thread.h. */
#ifndef ISOBAR_WORKER_WORKER_H
#define ISOBAR_WORKER_WORKER_H

#include "core/buf.h"
#include "core/scratch.h"
#include "core/slab.h"
#include "http1/parse.h"
#include "net/pipe.h"
#include "snapshot/snapshot.h"
#include "tls/memory.h"
#include "tls/tls_layer.h"
#include "upstream/mux.h"

#include <pthread.h>

enum {
    WORKER_READ_BYTES =
        128 * 1024, /* larger reads gained nothing for 100 KB answers, smaller ones cost 13 % */
    WORKER_HEAD_BYTES = 64 * 1024, /* the largest head either side may send */
    WORKER_SCRATCH_BYTES = 192 * 1024,
};

struct worker;

/* One listener as this worker serves it; lives until its last connection has ended. */
struct worker_listener {
    struct loop_io io;
    struct loop_timer retry_timer; /* accept() again after a lack of descriptors */
    struct worker *worker;
    struct listener_runtime *runtime;    /* shared: the snapshot keeps it */
    const struct snap_listener *current; /* of the worker's snapshot, or of `holds` */
    struct snapshot *holds; /* set once it left the configuration: keeps `current` for its last connections */
    struct listener_counters *counters; /* the runtime's, this worker's */
    struct h1_limits limits;
    uint64_t accepted_turn; /* of the loop, when it last had something to accept */
    uint32_t burst;         /* connections to take in this turn */
    struct list clients;    /* of struct client */
    struct list relays;     /* of struct relay: a TCP listener's connections */
    struct udp_port *udp;   /* owns: a UDP listener's sessions; NULL otherwise */
    struct list arrivals;   /* of struct arrival: connections whose protocol has not begun */
    struct list node;       /* in worker->listeners */
    struct loop_deferred deferred;
    /* A connection of it has ended: whoever ends one calls this, last. */
    void (*connection_gone)(struct worker_listener *listener);
};

/* What is known of a connection when its protocol begins. */
struct arrival_facts {
    const struct net_addr *peer; /* whom it is from: as a PROXY header says, else the socket's */
    struct buf *proxied;         /* owns: that header, where a target group may want it; else NULL */
    /* Of a TLS listener; borrow for the call. */
    struct slice server_name;       /* ptr NULL: none was asked for */
    const struct config_rule *rule; /* NULL: the listener's default */
};

struct worker {
    struct loop loop;
    uint32_t index;
    pthread_t thread;

    struct snapshot *snapshot; /* the one in force */
    struct list listeners;     /* of struct worker_listener */
    struct buf_pool bufs;
    struct slab clients, exchanges, relays, arrivals, streams;
    struct slab far_ends;    /* tunnel_h2.c's */
    struct slab auth_calls;  /* basic_auth.c's */
    struct slab names;       /* that relayed TLS clients ask for */
    struct slab reports;     /* ratelimit.c's */
    struct slab share_calls; /* affinity_share.c's */
    struct udp_memory *udp;  /* owns; NULL until there is a UDP listener */
    struct pool pool;
    struct muxes muxes;
    struct tls_thread *tls; /* owns */
    struct pieces pieces;   /* OpenSSL's */
    struct rng rng;
    struct route_scratch *route_scratch;
    char *rbuf;    /* owns; HEAD_BYTES + READ_BYTES: what was kept of a head, then what was read */
    char *scratch; /* owns; heads are put together here */
    char *token;   /* owns; JWT_ROOM_BYTES: what the token of a request holds, until its head is made */
    struct jwt_cache *tokens;      /* owns; NULL: every token is verified */
    struct http_message *msg;      /* owns; the head being handled */
    struct http_message *trailers; /* owns; the trailer section being handled */
    struct pipes pipes;
    struct list pending; /* exchanges that wait for a connection, oldest first */
    struct loop_timer pending_timer;
    struct loop_later pending_later;
    struct list backing_off; /* exchanges that wait for their next attempt */
    struct loop_timer backoff_timer;
    char date[32]; /* IMF-fixdate of date_s */
    uint64_t date_s;
    uint32_t n_clients;   /* open connections */
    struct list draining; /* exchanges on targets that drain */
    struct loop_timer drain_timer;
    bool says_close; /* every answer is the last of its connection */
    bool is_stopping;
    struct loop_timer stop_timer;
    struct worker_counters counters;
    counter counted_elsewhere; /* bytes of streams, see client_received() */

    /* any thread: atomic */
    _Atomic(struct snapshot *) incoming; /* mailbox: exchange, acq_rel */
    _Atomic uint64_t version_in_force;   /* release by the worker */
    _Atomic bool has_ended;
    struct loop_call wake_call;
    _Atomic bool wake_queued;
    struct loop_call stop_call, wind_down_call;
    bool wind_down_closes; /* set before wind_down_call is posted */
    _Atomic uint64_t stop_within_ns;
    _Atomic bool stop_queued;
};

/* Keeps a snapshot for as long as something that began under it lasts; counted by this worker alone. A
 * listener that is leaving still begins things under its last snapshot. Threads: the worker. */
static inline void worker_pin(struct worker *worker, struct snapshot *snapshot)
{
    if (snapshot->workers[worker->index].uses++ == 0 && snapshot != worker->snapshot)
        snapshot_ref(snapshot);
}

static inline void worker_unpin(struct worker *worker, struct snapshot *snapshot)
{
    if (--snapshot->workers[worker->index].uses == 0 && snapshot != worker->snapshot)
        snapshot_unref(snapshot);
}

/* IMF-fixdate of this turn. Threads: the worker. */
struct slice worker_date(struct worker *worker);

#endif
