/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing ends a mux but tend(), at the end of a turn: what exchanges do while they are told of their streams
 * may come back here at any time. One write a turn then carries what all of them had to say. */
#include "upstream/mux.h"

#include "core/clock.h"

#include <errno.h>

enum { READS_PER_TURN = 16, PONG_MS = 10000 };

/* How long a peer that owes answers may be silent until it is asked for a sign of life, the first time, the
 * second and so on. gRPC servers take more than two that are less than five minutes apart for an attack. */
static const uint32_t silence_ms[] = {10000, 60000, 310000};

static struct loop *loop_of(const struct mux *mux)
{
    return mux->muxes->pool->loop;
}

static struct backend_worker *mine(const struct mux *mux)
{
    return &mux->backend->workers[mux->muxes->pool->worker];
}

void muxes_init(struct muxes *muxes, struct pool *pool, const struct mux_events *events, char *read_buf,
                size_t read_bytes, counter *growth)
{
    *muxes = (struct muxes){.pool = pool, .events = events, .read_buf = read_buf, .read_bytes = read_bytes};
    muxes->http2 = http2_client_thread_new(pool->bufs, growth);
    slab_init(&muxes->slab, sizeof(struct mux));
}

void muxes_fini(struct muxes *muxes)
{
    http2_client_thread_free(muxes->http2);
    slab_fini(&muxes->slab);
}

/* ---- its end ---- */

static void close_connection(struct mux *mux)
{
    list_remove(&mux->node);
    loop_cancel_later(&mux->resume);
    if (mux->upstream)
        pool_close(mux->muxes->pool, &mux->upstream);
    mux->has_ended = true;
    if (mux->is_open)
        http2_client_close(&mux->client); /* streams that have their answer whole live on */
    mux->is_open = false;
}

static void say_goodbye(struct mux *mux)
{
    http2_client_say_goodbye(&mux->client);
    http2_client_flush(&mux->client);
}

static uint64_t silence_ns(const struct mux *mux)
{
    uint32_t last = iso_countof(silence_ms) - 1;
    return silence_ms[mux->n_pings < last ? mux->n_pings : last] * NS_PER_MS;
}

/* An idle mux ends some time after its last request. */
static void set_timer(struct mux *mux)
{
    uint64_t due_ns = mux->heard_ns + silence_ns(mux);
    if (mux->client.n_streams == 0)
        due_ns = mux->used_ns + mux->idle_ms * NS_PER_MS;
    else if (mux->client.awaits_pong)
        due_ns = mux->asked_ns + PONG_MS * NS_PER_MS;
    loop_timer_set(loop_of(mux), &mux->upstream->conn.timer, due_ns);
}

static void flush(struct mux *mux)
{
    uint64_t before = mux->client.sent_bytes;
    if (!http2_client_flush(&mux->client))
        mux->has_ended = true;
    counter_add(&mine(mux)->counters.sent_bytes, mux->client.sent_bytes - before);
}

/* Brings the mux in line with what has happened in this turn. */
static void look_after(struct mux *mux)
{
    if (mux->is_open && !mux->has_ended)
        flush(mux);
    if (mux->upstream && (mux->has_ended || mux->client.is_broken))
        close_connection(mux);
    bool is_idle = mux->client.n_streams == 0;
    if (mux->upstream && is_idle && (!mux->is_open || mux->is_retired || mux->client.is_leaving)) {
        if (mux->is_open)
            say_goodbye(mux);
        close_connection(mux);
    }
    if (mux->upstream && mux->is_open)
        set_timer(mux);
    mux->is_gone = !mux->upstream && mux->client.n_streams == 0;
}

static void give_back(struct mux *mux)
{
    struct muxes *muxes = mux->muxes;
    void *keeper = mux->keeper;
    if (!mux->is_gone || mux->is_due)
        return;
    slab_give(&muxes->slab, mux);
    if (keeper)
        muxes->events->on_gone(muxes, keeper);
}

static void tend(struct loop *loop, struct loop_deferred *deferred)
{
    struct mux *mux = container_of(deferred, struct mux, tend);
    if (!mux->is_gone)
        look_after(mux);
    mux->is_due = false;
    give_back(mux);
}

void mux_touch(struct mux *mux)
{
    if (mux->is_due)
        return;
    mux->is_due = true;
    mux->tend.release = tend;
    loop_defer(loop_of(mux), &mux->tend);
}

/* ---- its beginning ---- */

/* False: no memory. */
static bool begin(struct mux *mux)
{
    if (!http2_client_open(&mux->client, mux->muxes->http2, &mux->upstream->conn))
        return false;
    mux->is_open = true;
    mux->heard_ns = loop_of(mux)->now_ns;
    return true;
}

static void connect_failed(struct mux *mux, int err)
{
    struct http2_stream *stream;
    mux->has_ended = true;
    while ((stream = http2_client_next_waiting(&mux->client)) != NULL)
        mux->muxes->events->on_connect_failed(stream, err);
}

/* The peer speaks HTTP/1.1: the connection goes to the first that waits. */
static void become_http1(struct mux *mux)
{
    struct upstream *upstream = mux->upstream;
    struct http2_stream *stream;
    mine(mux)->chose_http1 = true;
    mux->upstream = NULL;
    mux->has_ended = true;
    list_remove(&mux->node);
    while ((stream = http2_client_next_waiting(&mux->client)) != NULL) {
        struct upstream *given = upstream;
        upstream = NULL;
        mux->muxes->events->on_http1(stream, given);
    }
    if (upstream)
        pool_close(mux->muxes->pool, &upstream);
}

/* True when the mux is open. */
static bool finish_handshake(struct mux *mux)
{
    struct conn *conn = &mux->upstream->conn;
    struct http2_stream *stream;
    enum conn_result result = conn_handshake(conn, mux->muxes->pool->bufs);
    if (result == CONN_BLOCKED)
        return false;
    if (result != CONN_OK) {
        mux->has_ended = true;
        while ((stream = http2_client_next_waiting(&mux->client)) != NULL)
            mux->muxes->events->on_tls_failed(stream);
        return false;
    }
    if (!slice_eq(tls_alpn(conn), SLICE("h2"))) {
        become_http1(mux);
        return false;
    }
    mine(mux)->chose_http1 = false;
    return true;
}

static void tell_open(struct mux *mux)
{
    struct http2_stream *stream;
    while ((stream = http2_client_next_waiting(&mux->client)) != NULL)
        mux->muxes->events->on_open(stream);
}

static bool finish_connecting(struct mux *mux, uint32_t events)
{
    int err = 0;
    switch (pool_connect_check(mux->upstream, events, &err)) {
    case POOL_CONNECT_WAITS:
        return false;
    case POOL_CONNECT_FAILED:
        connect_failed(mux, err);
        return false;
    case POOL_CONNECT_OPEN:
        break;
    }
    if (mux->upstream->conn.layer && !finish_handshake(mux))
        return false;
    mux->upstream->conn.is_connecting = false;
    if (!begin(mux)) {
        connect_failed(mux, ENOMEM);
        return false;
    }
    tell_open(mux);
    return true;
}

/* ---- its life ---- */

static void note_settings(struct mux *mux)
{
    mux->client.got_settings = false;
    mine(mux)->max_streams = mux->client.max_streams;
    mine(mux)->takes_connect = mux->client.takes_connect;
    tell_open(mux);
}

static void read_all(struct mux *mux)
{
    struct conn *conn = &mux->upstream->conn;
    for (int reads = 0; conn->can_read; reads++) {
        size_t n = 0;
        if (reads == READS_PER_TURN) {
            loop_later(loop_of(mux), &mux->resume);
            return;
        }
        enum conn_result result = conn_read(conn, mux->muxes->read_buf, mux->muxes->read_bytes, &n);
        if (result == CONN_BLOCKED)
            return;
        if (result != CONN_OK) {
            mux->has_ended = true;
            return;
        }
        mux->heard_ns = mux->used_ns = loop_of(mux)->now_ns;
        counter_add(&mine(mux)->counters.received_bytes, n);
        if (!http2_client_feed(&mux->client, mux->muxes->read_buf, n, mux->heard_ns)) {
            mux->has_ended = true;
            return;
        }
        if (mux->client.had_answers)
            mux->n_pings = 0;
        if (mux->client.got_settings)
            note_settings(mux);
        mux->client.had_answers = false;
    }
}

static void on_resume(struct loop *loop, struct loop_later *later)
{
    struct mux *mux = container_of(later, struct mux, resume);
    read_all(mux);
    mux_touch(mux);
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct upstream *upstream = container_of(io, struct upstream, conn.io);
    struct mux *mux = upstream->owner;
    conn_note_events(&upstream->conn, events);
    mux_touch(mux);
    if (!mux->is_open && !finish_connecting(mux, events))
        return;
    if (conn_flush(&upstream->conn, mux->muxes->pool->bufs) == CONN_FAILED)
        buf_give(mux->muxes->pool->bufs, &upstream->conn.out); /* what it said last is still read */
    read_all(mux);
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct upstream *upstream = container_of(timer, struct upstream, conn.timer);
    struct mux *mux = upstream->owner;
    if (mux->client.n_streams == 0) {
        mux->is_retired |= loop->now_ns >= mux->used_ns + mux->idle_ms * NS_PER_MS;
    } else if (mux->client.awaits_pong) {
        mux->has_ended = mux->heard_ns <= mux->asked_ns;
        mux->client.awaits_pong = false;
    } else if (loop->now_ns >= mux->heard_ns + silence_ns(mux)) {
        http2_client_ping(&mux->client);
        mux->asked_ns = loop->now_ns;
        mux->n_pings++;
    }
    mux_touch(mux);
}

static bool has_room(const struct mux *mux, const struct mux_wish *wish)
{
    const struct http2_client *client = &mux->client;
    uint32_t most = wish->streams < client->max_streams ? wish->streams : client->max_streams;
    return client->n_streams < most && !mux->is_retired && !mux->has_ended && !client->is_leaving &&
           !client->is_broken;
}

static enum pool_open_result open_new(struct muxes *muxes, struct backend *backend,
                                      const struct mux_wish *wish, struct mux **out)
{
    struct mux *mux = slab_try_take(&muxes->slab);
    if (!mux) {
        errno = ENOMEM;
        return POOL_OPEN_FAILED;
    }
    *mux = (struct mux){.muxes = muxes,
                        .backend = backend,
                        .tls_id = tls_client_id(wish->tls),
                        .idle_ms = wish->idle_ms,
                        .heard_ns = muxes->pool->loop->now_ns,
                        .used_ns = muxes->pool->loop->now_ns};
    enum pool_open_result opened =
        pool_open(muxes->pool, backend, wish->tls, wish->connections, &mux->upstream);
    if (opened != POOL_OPEN_STARTED) {
        int err = errno;
        slab_give(&muxes->slab, mux);
        errno = err;
        return opened;
    }
    mux->upstream->owner = mux;
    mux->upstream->conn.io.on_ready = on_ready;
    mux->upstream->conn.timer.on_due = on_due;
    http2_client_init(&mux->client, muxes->http2);
    if (mine(mux)->max_streams) /* until it says something else */
        mux->client.max_streams = mine(mux)->max_streams;
    loop_later_init(&mux->resume, on_resume);
    list_push_front(&mine(mux)->muxes, &mux->node);
    mux_touch(mux);
    if (!mux->upstream->conn.is_connecting && !begin(mux)) {
        mux->has_ended = true;
        errno = ENOMEM;
        return POOL_OPEN_FAILED;
    }
    *out = mux;
    return POOL_OPEN_STARTED;
}

enum pool_open_result mux_take(struct muxes *muxes, struct backend *backend, const struct mux_wish *wish,
                               struct mux **out)
{
    struct list *all = &backend->workers[muxes->pool->worker].muxes;
    struct mux *best = NULL;
    list_for_each (node, all) {
        struct mux *mux = container_of(node, struct mux, node);
        if (mux->tls_id != tls_client_id(wish->tls)) {
            mux->is_retired = true;
            mux_touch(mux);
        }
        if (has_room(mux, wish) && (!best || mux->client.n_streams < best->client.n_streams))
            best = mux;
    }
    if (!best)
        return open_new(muxes, backend, wish, out);
    if (best->is_open)
        counter_add(&mine(best)->counters.pool_hits, 1);
    best->idle_ms = wish->idle_ms;
    best->used_ns = muxes->pool->loop->now_ns;
    *out = best;
    return POOL_OPEN_STARTED;
}

void mux_retire(struct muxes *muxes, struct backend *backend)
{
    list_for_each_safe (node, after, &backend->workers[muxes->pool->worker].muxes) {
        struct mux *mux = container_of(node, struct mux, node);
        mux->is_retired = true;
        look_after(mux);
        give_back(mux);
    }
}
