/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: one thread, one loop, its own listening sockets, connections, pools and counters. Workers share
 * nothing but the snapshot and one cache line of atomics per target. The control thread talks to a worker
 * only through its mailbox (worker_publish, worker_stop). */
#ifndef ISOBAR_PROXY_WORKER_H
#define ISOBAR_PROXY_WORKER_H

#include "core/buf.h"
#include "core/scratch.h"
#include "core/slab.h"
#include "http1/parse.h"
#include "proxy/pipe.h"
#include "proxy/snapshot.h"
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
};

struct worker {
    struct loop loop;
    uint32_t index;
    pthread_t thread;

    struct snapshot *snapshot; /* the one in force */
    struct list listeners;     /* of struct worker_listener */
    struct buf_pool bufs;
    struct slab clients, exchanges, relays, arrivals, streams;
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

/* Makes the worker and starts its thread, which serves nothing until a snapshot is published. Threads:
 * control. */
iso_err worker_start(struct worker **out, uint32_t index) ISO_MUST_USE;

/* Hands the worker a snapshot to serve from now on (the caller keeps its own reference). Returns at once;
 * worker_version() tells when it is in force. Threads: control. */
void worker_publish(struct worker *worker, struct snapshot *snapshot);
/* The version that this worker serves. Threads: any. */
uint64_t worker_version(const struct worker *worker);

/* From now on every answer ends its connection (Connection: close), so that clients go elsewhere without
 * being cut (E3); with `stop_accepting` no new ones are taken either. Returns at once. Threads: control,
 * once. */
void worker_wind_down(struct worker *worker, bool stop_accepting);
/* Asks the worker to end: no new connections, idle ones close, exchanges have `within_ms` to finish, the rest
 * is cut. Returns at once. Threads: control. */
void worker_stop(struct worker *worker, uint32_t within_ms);
/* Has the thread done its work? Threads: any. */
bool worker_has_ended(const struct worker *worker);
/* Waits for the thread and frees the worker. Threads: control. */
void worker_join(struct worker **worker);

/* IMF-fixdate of this turn. Threads: the worker. */
struct slice worker_date(struct worker *worker);

/* Brings the worker's listeners in line with its snapshot. Threads: the worker. */
void accept_adopt(struct worker *worker);
/* Takes what still waits in the accept queues, then closes every listening socket. Threads: the worker. */
void accept_stop(struct worker *worker);
/* The protocol of a connection begins: a client or a relay takes the descriptor over. Threads: the worker. */
struct arrival_facts;
void accept_hand_over(struct worker_listener *listener, int fd, struct arrival_facts *facts);
/* A connection of the listener has ended. Threads: the worker. */
void accept_client_gone(struct worker_listener *listener);

#endif
