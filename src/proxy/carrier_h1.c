/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt over an HTTP/1 connection of its own, lent from the pool or opened: its events, the request into
 * HTTP/1 framing, the answer out of it. The target is read only as fast as the client takes what it sends. */
#include "proxy/carrier.h"

#include "core/clock.h"
#include "core/fetch.h"
#include "proxy/announce.h"
#include "proxy/answer.h"
#include "proxy/exchange.h"
#include "proxy/forward.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/splice.h"
#include "proxy/tunnel.h"

#include <errno.h>
#include <sys/epoll.h>

enum {
    READS_PER_TURN = 16,
    FRAMED_READ_BYTES = 32 * 1024, /* waits in memory, for each stream of the client, until it has a window */
    FIRST_READ_BYTES =
        16 * 1024, /* of an answer whose length is not known yet: what follows may be spliced */
};

static struct target_counters *target_counters(struct exchange *x)
{
    return &x->backend->workers[x->worker->index].counters;
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct upstream *upstream = container_of(timer, struct upstream, conn.timer);
    forward_due(upstream->owner);
}

static bool finish_handshake(struct exchange *x, struct upstream *upstream)
{
    switch (conn_handshake(&upstream->conn, x->worker->pool.bufs)) {
    case CONN_OK:
        return true;
    case CONN_BLOCKED:
        return false;
    case CONN_EOF:
    case CONN_FAILED:
        break;
    }
    forward_tls_failed(x);
    return false;
}

/* True when the connection is open and the request on its way. */
static bool finish_connecting(struct exchange *x, struct upstream *upstream, uint32_t events)
{
    int err = 0;
    switch (pool_connect_check(upstream, events, &err)) {
    case POOL_CONNECT_WAITS:
        return false;
    case POOL_CONNECT_FAILED:
        forward_connect_failed(x, err);
        return false;
    case POOL_CONNECT_OPEN:
        break;
    }
    if (upstream->conn.layer && !finish_handshake(x, upstream))
        return false;
    if (x->group->http2 && slice_eq(tls_alpn(&upstream->conn), SLICE("h2"))) {
        upstream->backend->workers[x->worker->index].chose_http1 = false; /* it has changed its mind */
        forward_otherwise(x);
        return false;
    }
    upstream->conn.is_connecting = false;
    forward_opened(x);
    return true;
}

/* The target takes no more; what it has sent is still read. */
static void stop_writing(struct exchange *x)
{
    x->upstream_write_failed = true;
    buf_give(&x->worker->bufs, &x->upstream->conn.out);
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct upstream *upstream = container_of(io, struct upstream, conn.io);
    struct exchange *x = upstream->owner;
    fetch(x, sizeof(*x));
    conn_note_events(&upstream->conn, events);
    bool was_blocked = upstream->conn.out || upstream->conn.is_connecting;
    if (upstream->conn.is_connecting && !finish_connecting(x, upstream, events))
        return;
    if (conn_flush(&upstream->conn, x->worker->pool.bufs) == CONN_FAILED) {
        stop_writing(x);
        x->discard |= !x->request.is_done; /* a request that was queued whole may still be tried again */
    }
    if (x->is_tunnel) {
        tunnel_pump(x);
        return;
    }
    if (was_blocked && !upstream->conn.out && !x->request.is_done)
        request_pump(x);
    if (upstream->owner == x && upstream->conn.can_read)
        response_pump(x);
}

void carrier_h1_adopt(struct exchange *x, struct upstream *upstream)
{
    upstream->owner = x;
    upstream->conn.io.on_ready = on_ready;
    upstream->conn.timer.on_due = on_due;
    x->carrier = &carrier_h1;
    x->upstream = upstream;
    x->is_connecting = upstream->conn.is_connecting;
    x->is_reused = upstream->uses > 1;
}

/* A target that might choose HTTP/2 must not, where the request is for HTTP/1.1 only. */
static bool wants_http1(const struct exchange *x)
{
    return x->wants_upgrade && x->group->http2 == SNAP_HTTP2_OFFERED;
}

static enum pool_open_result h1_open(struct exchange *x, struct backend *backend, bool must_be_fresh)
{
    struct pool *pool = &x->worker->pool;
    struct tls_client *tls = x->group->tls;
    struct upstream *upstream = x->wants_fresh ? NULL : announce_take(x, backend, must_be_fresh);
    if (!upstream) {
        enum pool_open_result opened =
            pool_open(pool, backend, tls, x->group->config->limits.connections, &upstream);
        if (opened != POOL_OPEN_STARTED)
            return opened;
        if (wants_http1(x))
            tls_offer_http1(&upstream->conn);
        if (!announce_client(x, upstream)) {
            int err = errno;
            pool_close(pool, &upstream);
            errno = err;
            return POOL_OPEN_FAILED;
        }
    }
    carrier_h1_adopt(x, upstream);
    return POOL_OPEN_STARTED;
}

/* A body goes as it is when the head says its length, else in chunks. False: the trailers are too large. */
static bool frame(struct exchange *x, struct slice body, const struct http_message *trailers,
                  struct transfer_pieces *pieces)
{
    struct scratch scratch = {x->worker->scratch, x->worker->scratch + WORKER_SCRATCH_BYTES};
    pieces->n = 0;
    pieces->body_len = 0;
    if (x->request_is_chunked)
        return transfer_put_chunked(pieces, body, x->request.is_done, trailers, &scratch);
    if (body.len) {
        pieces->iov[pieces->n++] = (struct iovec){(char *)body.ptr, body.len};
        pieces->body_len = body.len;
    }
    return true;
}

static enum conn_result h1_begin(struct exchange *x, struct slice body, const struct http_message *trailers)
{
    struct transfer_pieces pieces;
    struct iovec iov[1 + TRANSFER_PIECES];
    int n = 0;
    if (!frame(x, body, trailers, &pieces))
        return CONN_FAILED;
    iov[n++] = (struct iovec){x->head->data + x->head->start, x->head_len};
    for (int i = 0; i < pieces.n; i++)
        iov[n++] = pieces.iov[i];
    counter_add(&target_counters(x)->sent_bytes, x->head_len + pieces.body_len);
    return conn_write(&x->upstream->conn, &x->worker->bufs, iov, n);
}

static enum conn_result h1_send(struct exchange *x, struct slice body, const struct http_message *trailers)
{
    struct transfer_pieces pieces;
    enum conn_result result = CONN_FAILED;
    if (frame(x, body, trailers, &pieces)) {
        if (pieces.n == 0)
            return CONN_OK;
        counter_add(&target_counters(x)->sent_bytes, pieces.body_len);
        result = conn_write(&x->upstream->conn, &x->worker->bufs, pieces.iov, pieces.n);
    }
    if (result == CONN_FAILED)
        stop_writing(x);
    return result;
}

static bool h1_is_full(const struct exchange *x)
{
    return x->upstream->conn.out != NULL;
}

/* Heads in data[0..len): interim ones, then the final one. False: x has ended or changed its way of reading.
 */
static bool read_head(struct exchange *x, char *data, size_t len)
{
    struct upstream *upstream = x->upstream;
    struct buf_pool *bufs = &x->worker->bufs;
    struct http_message *msg = x->worker->msg;
    while (len > 0) {
        enum http_reject why = HTTP_REJECT_NONE;
        size_t used;
        switch (
            h1_parse_response(data, len, &response_limits, (enum http_method)x->method, msg, &used, &why)) {
        case H1_INCOMPLETE: {
            struct buf *old = upstream->in;
            upstream->in = NULL;
            bool ok = len < WORKER_HEAD_BYTES && buf_append(bufs, &upstream->in, slice_of(data, len));
            buf_give(bufs, &old);
            if (!ok)
                exchange_fail(x, END_RESPONSE_HEAD_TOO_LARGE);
            return ok;
        }
        case H1_REJECTED:
            response_reject(x, why);
            return false;
        case H1_COMPLETE:
            break;
        }
        buf_give(bufs, &upstream->in);
        data += used;
        len -= used;
        if (msg->status >= 200 || msg->status == 101)
            return response_head(x, msg, data, len);
        if (!response_interim(x, msg))
            return false;
    }
    return true;
}

/* As much as can be handed on at once. */
static size_t read_bytes(const struct exchange *x)
{
    const struct client *client = x->client;
    if (client->downstream->has_frames) {
        size_t room = x->has_answer_head ? client->downstream->room(client) : 0;
        return room <= FRAMED_READ_BYTES  ? FRAMED_READ_BYTES
               : room < WORKER_READ_BYTES ? room
                                          : WORKER_READ_BYTES;
    }
    bool may_splice = !x->has_answer_head && !client->conn.layer && !x->upstream->conn.layer;
    return may_splice ? FIRST_READ_BYTES : WORKER_READ_BYTES;
}

static void h1_read(struct exchange *x)
{
    struct worker *worker = x->worker;
    struct client *client = x->client;
    struct upstream *upstream = x->upstream;
    for (int reads = 0; !x->is_spliced && upstream->conn.can_read && !client->conn.out; reads++) {
        size_t kept = upstream->in ? buf_len(upstream->in) : 0, n;
        char *data = worker->rbuf;
        if (reads == READS_PER_TURN) {
            exchange_resume(x);
            return;
        }
        enum conn_result result = conn_read(&upstream->conn, data + kept, read_bytes(x), &n);
        if (result == CONN_BLOCKED)
            return;
        if (result != CONN_OK) {
            response_end(x, result == CONN_EOF, NULL);
            return;
        }
        counter_add(&target_counters(x)->received_bytes, n);
        loop_timer_set(&worker->loop, &upstream->conn.timer,
                       worker->loop.now_ns + x->group->config->timeouts.response_ms * NS_PER_MS);
        if (kept)
            memcpy(data, upstream->in->data + upstream->in->start, kept);
        bool goes_on = x->has_answer_head ? response_body(x, data, n) : read_head(x, data, kept + n);
        if (!goes_on || client->exchange != x || x->upstream != upstream)
            return;
        if (x->has_answer_head)
            splice_begin(x);
    }
    if (x->is_spliced)
        splice_pump(x);
}

static void h1_end(struct exchange *x, bool reuse)
{
    struct worker *worker = x->worker;
    struct snap_group *group = x->group;
    uint32_t cap = group->config->limits.connections, idle_cap = cap / x->snapshot->n_workers;
    uint32_t waiting = atomic_load_explicit(&group->runtime->pending, memory_order_relaxed);
    struct upstream *upstream = x->upstream;
    upstream->conn.is_cut = !x->request.is_done;
    if (reuse && cap)
        reuse = waiting == 0 && upstream->backend->workers[worker->index].n_idle < idle_cap;
    reuse = reuse && !upstream->conn.out && !upstream->in;
    if (reuse && x->snapshot != worker->snapshot)
        reuse = snapshot_serves_backend(worker->snapshot, upstream->backend);
    if (reuse && !worker->is_stopping)
        announce_give(x);
    else
        pool_close(&worker->pool, &x->upstream);
}

static struct conn *h1_tunnel(struct exchange *x)
{
    return &x->upstream->conn;
}

static struct loop_timer *h1_timer(struct exchange *x)
{
    return &x->upstream->conn.timer;
}

const struct carrier carrier_h1 = {
    .open = h1_open,
    .begin = h1_begin,
    .send = h1_send,
    .is_full = h1_is_full,
    .read = h1_read,
    .end = h1_end,
    .tunnel = h1_tunnel,
    .timer = h1_timer,
};
