/* SPDX-License-Identifier: Apache-2.0 */
/* Shared connections to backends that speak HTTP/2, per worker: a mux is one connection that carries many
 * requests. A new request goes to the one with the fewest; another is opened when all have their limit (ours
 * or the peer's). Requests may join while a mux connects: they are told when it is open. A mux that must not
 * go on (GOAWAY, other TLS settings, its backend is not served any more) takes no more requests and ends with
 * its last one. A peer that is silent while requests wait is asked for a sign of life (PING) and given up
 * without one. */
#ifndef ISOBAR_UPSTREAM_MUX_H
#define ISOBAR_UPSTREAM_MUX_H

#include "http2/client.h"
#include "upstream/pool.h"

struct muxes;

/* What becomes of the streams that wait for a mux to open (or for its SETTINGS, where they want them): each
 * is told once, and may be released then. */
struct mux_events {
    void (*on_open)(struct http2_stream *stream);
    void (*on_connect_failed)(struct http2_stream *stream, int err); /* an errno value */
    void (*on_tls_failed)(struct http2_stream *stream);
    /* The peer chose HTTP/1.1. One of the streams is given the connection, open, for itself; the others get
     * NULL and go elsewhere. */
    void (*on_http1)(struct http2_stream *stream, struct upstream *upstream);
    /* The mux has ended; `keeper` is its own. */
    void (*on_gone)(struct muxes *muxes, void *keeper);
};

/* One worker's. */
struct muxes {
    struct pool *pool;                 /* borrows */
    struct http2_client_thread *http2; /* owns */
    const struct mux_events *events;
    char *read_buf; /* borrows: the worker's */
    size_t read_bytes;
    struct slab slab; /* of struct mux */
};

struct mux {
    struct muxes *muxes;
    struct backend *backend;   /* shared: as upstream->backend */
    struct upstream *upstream; /* owns: lent by the pool; NULL once closed */
    struct http2_client client;
    uint64_t heard_ns; /* the peer last said something */
    uint64_t asked_ns; /* a sign of life was asked for, while client.awaits_pong */
    uint64_t used_ns;  /* a request began, or something came */
    uint64_t tls_id;
    uint32_t idle_ms;
    uint32_t n_pings; /* since the last answer */
    bool is_open;
    bool is_retired;  /* takes no new requests */
    bool has_ended;   /* the peer has closed it, or it broke */
    bool is_due;      /* tend is */
    bool is_gone;     /* its memory goes when tend is through */
    void *keeper;     /* NULL, or what keeps the backend until on_gone() */
    struct list node; /* in backend->workers[worker].muxes */
    struct loop_later resume;
    struct loop_deferred tend;
};

/* What a group wants of its muxes. */
struct mux_wish {
    struct tls_client *tls; /* NULL: plain */
    uint32_t connections;   /* to a backend over all workers; 0: no limit */
    uint32_t streams;       /* on one of them */
    uint32_t idle_ms;
};

/* `growth`: as of http2_client_thread_new(). */
void muxes_init(struct muxes *muxes, struct pool *pool, const struct mux_events *events, char *read_buf,
                size_t read_bytes, counter *growth);
/* Every mux must have ended. */
void muxes_fini(struct muxes *muxes);

/* A mux with room for one more request, connecting or open. Results and errno as of pool_open(). */
enum pool_open_result mux_take(struct muxes *muxes, struct backend *backend, const struct mux_wish *wish,
                               struct mux **out);
/* Something is to be sent, or a stream was released: looked after at the end of this turn. */
void mux_touch(struct mux *mux);
/* This worker's muxes of a backend end, now or with their last request. Threads: the worker. */
void mux_retire(struct muxes *muxes, struct backend *backend);

static inline struct mux *mux_of(struct http2_stream *stream)
{
    return container_of(stream->client, struct mux, client);
}

#endif
