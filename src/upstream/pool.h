/* SPDX-License-Identifier: Apache-2.0 */
/* Connections to backends, one pool per worker, so that a request can reuse one without a lock. A connection
 * is in exactly one place: lent to an exchange, which owns it and gets its events, or idle here, where the
 * pool owns it, watches for the peer's close and ends it when it has been idle too long. The most recently
 * used is lent first, so that the cold end of the list ages out. */
#ifndef ISOBAR_UPSTREAM_POOL_H
#define ISOBAR_UPSTREAM_POOL_H

#include "core/slab.h"
#include "net/conn.h"
#include "tls/tls_layer.h"
#include "upstream/backend.h"

struct pool {
    struct loop *loop;      /* borrows: the worker's */
    struct buf_pool *bufs;  /* borrows: the worker's */
    struct tls_thread *tls; /* borrows: the worker's; NULL: no TLS */
    uint32_t worker;
    struct slab slab; /* of struct upstream */
};

struct upstream {
    struct conn conn;
    struct pool *pool;       /* borrows: the worker's */
    struct backend *backend; /* shared: the snapshots that name it outlive its connections */
    void *owner;             /* the exchange it is lent to; NULL: idle */
    struct buf *in;          /* owns: the beginning of an answer's head */
    uint64_t idle_since_ns;
    uint64_t tls_id;         /* of the tls_client that it was opened with; 0: plain */
    uint32_t uses;           /* requests sent on it */
    struct list node;        /* while idle: in backend->workers[worker].idle or .kept */
    struct upstream **place; /* kept for one client: where that finds it; NULL: anybody's */
    struct buf *preface;     /* owns: goes out before anything else */
    struct loop_deferred deferred;
};

void pool_init(struct pool *pool, struct loop *loop, struct buf_pool *bufs, struct tls_thread *tls,
               uint32_t worker);
/* Every connection must have been closed. */
void pool_fini(struct pool *pool);

/* The idle connection used last, or NULL; lent to the caller until pool_give() or pool_close(). Those opened
 * under other TLS settings than `tls` (NULL: plain) end. With
 * `must_be_fresh` (the request cannot be replayed) one that has been idle for a while is asked whether its
 * peer has closed it. Source: A1; RFC 9112 9.3. */
struct upstream *pool_take(struct pool *pool, struct backend *backend, const struct tls_client *tls,
                           bool must_be_fresh);

enum pool_open_result {
    POOL_OPEN_STARTED, /* *upstream is connecting (or connected: a unix socket) */
    POOL_OPEN_FULL,    /* `limit` connections exist already */
    POOL_OPEN_FAILED,  /* the system refused; errno says why */
};
/* Opens a new one, lent to the caller. `limit` counts over all workers; 0: none. Output may be written at
 * once: it is queued until the handshakes are done (that of `tls` by conn_handshake(); NULL: plain). */
enum pool_open_result pool_open(struct pool *pool, struct backend *backend, struct tls_client *tls,
                                uint32_t limit, struct upstream **upstream);

/* What a new connection says before anything else, before its TLS handshake too (a PROXY header); to be
 * called before anything is written. False: no memory, or the target took it not; the connection is of no
 * use. */
bool pool_preface(struct upstream *upstream, struct slice bytes) ISO_MUST_USE;

enum pool_connect_result { POOL_CONNECT_WAITS, POOL_CONNECT_OPEN, POOL_CONNECT_FAILED };
/* What an event on a connecting socket says. *err is an errno value with FAILED; the caller clears
 * is_connecting when its layer, if any, is ready too. */
enum pool_connect_result pool_connect_check(struct upstream *upstream, uint32_t events, int *err);

/* Returns a connection that is between two exchanges; it is closed after idle_ms without use. Takes
 * *upstream. */
void pool_give(struct pool *pool, struct upstream **upstream, uint32_t idle_ms);
/* The same for a connection that speaks for one client and must not serve another: it waits at *place, which
 * is NULL again when it has ended. One that waited there ends. Takes *upstream. */
void pool_keep(struct pool *pool, struct upstream **upstream, uint32_t idle_ms, struct upstream **place);
/* The connection at *place when it leads to the backend, as by pool_take(); any other that waits there ends.
 */
struct upstream *pool_take_kept(struct pool *pool, struct upstream **place, struct backend *backend,
                                const struct tls_client *tls, bool must_be_fresh);
/* Takes *upstream. */
void pool_close(struct pool *pool, struct upstream **upstream);
/* Closes this worker's idle connections to a backend. Threads: the worker. */
void pool_retire(struct pool *pool, struct backend *backend);

#endif
