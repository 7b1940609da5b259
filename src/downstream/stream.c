/* SPDX-License-Identifier: Apache-2.0 */
#include "downstream/stream.h"

#include "core/clock.h"
#include "downstream/answers.h"
#include "proxy/answer.h"
#include "proxy/exchange.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/tunnel.h"

enum {
    THROUGH_BYTES = 16 * 1024,
    THROUGH_LAST_BYTES = 48 * 1024,
    WEBSOCKET_KEY_BYTES = 24,
    /* The rest of a request that has been answered is thrown away for so long, and up to
     * CLIENT_DISCARD_BYTES, before a reset says that it is of no use: some clients take that for a failure of
     * the answer (curl 7.88). */
    DISCARD_MS = 1000,
};

static struct worker *worker_of(const struct stream *stream)
{
    return stream->client.listener->worker;
}

static struct stream *of_conn(struct conn *conn)
{
    return container_of(conn, struct stream, client.conn);
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct stream *stream = container_of(deferred, struct stream, client.deferred);
    slab_give(&worker_of(stream)->streams, stream);
}

/* What of it is in output already is written from there. */
static void give_out(struct stream *stream)
{
    struct client_h2 *h2 = stream->connection;
    struct buf **out = &stream->client.conn.out;
    if (!*out || !h2->is_gathering) {
        buf_give(&worker_of(stream)->bufs, out);
        return;
    }
    (*out)->next = h2->spent;
    h2->spent = *out;
    *out = NULL;
}

static void free_stream(struct stream *stream)
{
    struct worker *worker = worker_of(stream);
    struct client_h2 *h2 = stream->connection;
    iso_assert(!stream->client.exchange);
    if (stream->in)
        http2_server_discard(h2->server, buf_len(stream->in));
    buf_give(&worker->bufs, &stream->in);
    buf_give(&worker->bufs, &stream->in_trailers);
    buf_give(&worker->bufs, &stream->trailers);
    give_out(stream);
    if (stream->client.own_upstream)
        pool_close(&worker->pool, &stream->client.own_upstream);
    loop_timer_remove(&worker->loop, &stream->client.conn.timer);
    list_remove(&stream->node);
    list_remove(&stream->waiting);
    stream->client.deferred.release = release;
    loop_defer(&worker->loop, &stream->client.deferred);
    h2->n_streams--;
    client_h2_note_streams(h2);
}

void stream_end(struct stream *stream, enum exchange_end end)
{
    struct exchange *x = stream->client.exchange;
    stream->is_closed = true;
    if (x)
        exchange_abort(x, end);
    free_stream(stream);
}

/* The part of the stream as a connection. */

static enum conn_result layer_read(struct conn *conn, char *data, size_t cap, size_t *n)
{
    struct stream *stream = of_conn(conn);
    if (!stream->in) {
        conn->can_read = false;
        conn->saw_eof = stream->in_ended;
        return stream->in_ended ? CONN_EOF : CONN_BLOCKED;
    }
    size_t len = buf_len(stream->in);
    *n = len < cap ? len : cap;
    memcpy(data, stream->in->data + stream->in->start, *n);
    stream->in->start += (uint32_t)*n;
    if (*n == len)
        buf_give(&worker_of(stream)->bufs, &stream->in);
    conn->can_read = stream->in || stream->in_ended;
    if (!stream->is_closed) {
        http2_server_consume(stream->connection->server, stream->id, &stream->window, *n, false);
        client_h2_flush_soon(stream->connection);
    }
    return CONN_OK;
}

/* Bytes that can go to the socket at once go from where they are, in a write of their own. The last ones only
 * where that saves much: otherwise they wait for the end of the turn and the end of the stream. */
static struct slice write_through(struct stream *stream, struct slice data)
{
    bool is_worth_it = data.len > (stream->client.conn.is_last_write ? THROUGH_LAST_BYTES : THROUGH_BYTES);
    if (!is_worth_it || stream->client.conn.out || client_h2_room(stream->connection, stream->id) < data.len)
        return data;
    stream->through = data;
    http2_server_resume(stream->connection->server, stream->id);
    client_h2_write_now(stream->connection, &stream->through);
    data = stream->through;
    stream->through = (struct slice){0};
    return data;
}

/* Never blocked: `out` is set until the client has taken it, and then nothing more is read from the target.
 */
static enum conn_result layer_write(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces,
                                    int n)
{
    struct stream *stream = of_conn(conn);
    if (stream->is_closed)
        return CONN_FAILED;
    for (int i = 0; i < n; i++) {
        struct slice piece = slice_of(pieces[i].iov_base, pieces[i].iov_len);
        if (n == 1)
            piece = write_through(stream, piece);
        if (piece.len && !buf_append(bufs, &conn->out, piece))
            return CONN_FAILED;
    }
    if (conn->out && list_is_empty(&stream->waiting))
        list_push_back(&stream->connection->waiting, &stream->waiting);
    http2_server_resume(stream->connection->server, stream->id);
    client_h2_flush_soon(stream->connection);
    return CONN_OK;
}

static void layer_shut(struct conn *conn)
{
    struct stream *stream = of_conn(conn);
    stream->is_over = true;
    if (stream->is_closed)
        return;
    http2_server_resume(stream->connection->server, stream->id);
    client_h2_flush_soon(stream->connection);
}

static const struct conn_layer layer = {.read = layer_read, .write = layer_write, .shut = layer_shut};

static void stop_watching(struct stream *stream)
{
    if (!stream->client.is_stalled)
        return;
    stream->client.is_stalled = false;
    loop_timer_clear(&stream->client.conn.timer);
}

void stream_watch(struct stream *stream)
{
    struct client *client = &stream->client;
    struct loop *loop = &worker_of(stream)->loop;
    if (client->is_stalled || (client->exchange && client->exchange->is_tunnel))
        return;
    client->is_stalled = true;
    client->stalled_at_ns = loop->now_ns;
    client->stalled_left = stream->taken_bytes;
    loop_timer_set(loop, &client->conn.timer,
                   loop->now_ns + client_check_ms(client->listener->current->config) * NS_PER_MS);
}

/* As client_made_progress(), by what the connection has taken. */
static bool made_progress(struct stream *stream)
{
    struct client *client = &stream->client;
    const struct config_listener *config = client->listener->current->config;
    struct loop *loop = &worker_of(stream)->loop;
    uint64_t elapsed_ms = (loop->now_ns - client->stalled_at_ns) / NS_PER_MS;
    uint64_t went = stream->taken_bytes - client->stalled_left;
    uint64_t min_rate = config->limits.min_rate_bytes_per_s;
    bool is_stalled = went == 0 && elapsed_ms >= config->timeouts.body_ms;
    bool is_slow = min_rate && went * 1000 < min_rate * elapsed_ms && elapsed_ms >= CLIENT_SLOW_AFTER_MS;
    if (is_stalled || is_slow)
        return false;
    if (went > 0 && went * 1000 >= min_rate * elapsed_ms) {
        client->stalled_at_ns = loop->now_ns;
        client->stalled_left = stream->taken_bytes;
    }
    loop_timer_set(loop, &client->conn.timer, loop->now_ns + client_check_ms(config) * NS_PER_MS);
    return true;
}

void stream_reset(struct stream *stream, enum http2_code code)
{
    give_out(stream);
    list_remove(&stream->waiting);
    stop_watching(stream);
    if (stream->is_closed)
        return;
    http2_server_reset(stream->connection->server, stream->id, code);
    client_h2_flush_soon(stream->connection);
}

void stream_finish(struct stream *stream)
{
    struct client *client = &stream->client;
    stop_watching(stream);
    loop_timer_clear(&client->conn.timer);
    layer_shut(&client->conn);
    if (stream->in && !stream->is_closed) {
        http2_server_consume(stream->connection->server, stream->id, &stream->window, buf_len(stream->in),
                             false);
        buf_give(&worker_of(stream)->bufs, &stream->in);
    }
}

/* Fields of a trailer section, kept as lines until their time has come. */
struct buf *stream_keep_lines(struct worker *worker, const struct http_message *trailers)
{
    static const size_t before = sizeof("0\r\n") - 1;
    struct buf *lines = NULL;
    size_t n = h1_write_last_chunk(worker->scratch, WORKER_SCRATCH_BYTES, trailers);
    if (n > before)
        buf_append(&worker->bufs, &lines, slice_of(worker->scratch + before, n - before));
    return lines;
}

const struct http_message *stream_parse_lines(struct stream *stream, const struct buf *lines)
{
    struct http_message *msg = worker_of(stream)->trailers;
    enum http_reject why;
    size_t used;
    if (!lines || h1_parse_trailers(lines->data + lines->start, buf_len(lines), &response_limits, msg, &used,
                                    &why) != H1_COMPLETE)
        return NULL;
    return msg;
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct stream *stream = container_of(timer, struct stream, client.conn.timer);
    struct exchange *x = stream->client.exchange;
    if (x && x->is_tunnel) {
        tunnel_due(x);
    } else if (!stream->client.is_stalled) {
        if (x)
            request_due(x);
        else
            stream_reset(stream, HTTP2_NO_ERROR);
    } else if (!made_progress(stream)) {
        counter_add(&stream->client.listener->counters->h2_stalled, 1);
        if (x)
            exchange_abort(x, END_CLIENT_READS_SLOWLY);
        else
            stream_reset(stream, HTTP2_CANCEL);
    }
}

/* What HTTP/2 has to tell. */

static struct stream *open_stream(struct client_h2 *h2, int32_t id, bool ends)
{
    const struct client *parent = h2->client;
    struct worker *worker = parent->listener->worker;
    struct stream *stream = slab_try_take(&worker->streams);
    if (!stream)
        return NULL;
    *stream = (struct stream){.client = {.downstream = &downstream_h2,
                                         .listener = parent->listener,
                                         .proxied = parent->proxied,
                                         .peer = parent->peer,
                                         .peer_port = parent->peer_port,
                                         .state = CLIENT_EXCHANGE,
                                         .close_after = true},
                              .connection = h2,
                              .id = id,
                              .in_ended = ends};
    http2_server_window_init(&stream->window);
    conn_init(&stream->client.conn, -1, NULL, on_due);
    stream->client.conn.layer = &layer;
    stream->client.conn.io.is_armed = true; /* its events come by way of the connection */
    stream->client.conn.can_read = false;
    loop_later_init(&stream->client.resume, NULL);
    list_init(&stream->client.node);
    list_init(&stream->waiting);
    list_push_back(&h2->streams, &stream->node);
    h2->n_streams++;
    h2->client->requests++;
    counter_add(&parent->listener->counters->h2_streams, 1);
    client_h2_note_streams(h2);
    return stream;
}

/* A key that no client sent: the target answers to it, and the client never sees the answer. */
static struct slice websocket_key(struct worker *worker, char out[WEBSOCKET_KEY_BYTES])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (int i = 0; i < 21; i++)
        out[i] = digits[rng_next(&worker->rng) & 63];
    memcpy(out + 21, "A==", 3); /* 16 bytes are 21 digits and two bits */
    return slice_of(out, WEBSOCKET_KEY_BYTES);
}

static bool make_upgrade(struct worker *worker, struct http_message *msg, struct slice protocol, char *key)
{
    msg->upgrade = true;
    http_message_drop_name(msg, SLICE("Sec-WebSocket-Key"));
    return http_message_add(msg, SLICE("Upgrade"), protocol) &&
           (!slice_caseeq(protocol, SLICE("websocket")) ||
            http_message_add(msg, SLICE("Sec-WebSocket-Key"), websocket_key(worker, key)));
}

static void *on_request(void *owner, int32_t id, struct http_message *msg, size_t head_bytes, bool ends,
                        struct slice protocol)
{
    struct client_h2 *h2 = owner;
    struct worker *worker = h2->client->listener->worker;
    char key[WEBSOCKET_KEY_BYTES];
    struct stream *stream = open_stream(h2, id, ends);
    if (!stream)
        return NULL;
    if (protocol.len && !make_upgrade(worker, msg, protocol, key)) {
        free_stream(stream);
        return NULL;
    }
    exchange_begin(&stream->client, msg, head_bytes, NULL, 0);
    return stream;
}

static void *on_refused(void *owner, int32_t id, enum http_reject why, bool ends)
{
    struct client_h2 *h2 = owner;
    struct stream *stream = open_stream(h2, id, ends);
    if (!stream)
        return NULL;
    counter_add(&h2->client->listener->counters->rejected, 1);
    exchange_answer_bare(&stream->client, http_reject_status(why), http_reject_word(why),
                         http_reject_text(why), false, false, 1);
    return stream;
}

static void on_data(void *owner, void *user, char *data, size_t len)
{
    struct stream *stream = user;
    struct client *client = &stream->client;
    struct exchange *x = client->exchange;
    struct http2_server *server = stream->connection->server;
    if (!x || (x->request.is_done && !x->is_tunnel)) {
        http2_server_consume(server, stream->id, &stream->window, len, false);
        stream->unwanted_bytes += len;
        if (!x && stream->unwanted_bytes > CLIENT_DISCARD_BYTES)
            stream_reset(stream, HTTP2_NO_ERROR);
        return;
    }
    if (!x->is_tunnel && !stream->in && request_push(x, data, len)) {
        http2_server_consume(server, stream->id, &stream->window, len, true);
        return;
    }
    client->conn.can_read = true;
    if (!buf_append(&worker_of(stream)->bufs, &stream->in, slice_of(data, len)))
        exchange_abort(x, END_NO_MEMORY);
    else if (x->is_tunnel)
        exchange_resume(x);
}

static void on_ended(void *owner, void *user, const struct http_message *trailers)
{
    struct stream *stream = user;
    struct exchange *x = stream->client.exchange;
    stream->in_ended = true;
    stream->client.conn.can_read = true;
    if (!x)
        return;
    if (!x->is_tunnel && !stream->in && request_push_end(x, trailers))
        return;
    if (trailers && !stream->in_trailers)
        stream->in_trailers = stream_keep_lines(x->worker, trailers);
    exchange_resume(x);
}

static void on_closed(void *owner, void *user, bool by_client, uint32_t code)
{
    struct stream *stream = user;
    struct exchange *x = stream->client.exchange;
    if (by_client && code != HTTP2_NO_ERROR)
        counter_add(&stream->client.listener->counters->h2_reset_streams, 1);
    if (x && x->is_tunnel)
        stream_end(stream, END_TUNNEL);
    else
        stream_end(stream, x && !x->request.is_done ? END_CLIENT_ABORT_BODY : END_CLIENT_ABORT);
}

static struct slice on_peek(void *owner, void *user, bool *is_last, bool *stays)
{
    struct stream *stream = user;
    const struct buf *out = stream->client.conn.out;
    *stays = true; /* see give_out() */
    *is_last = stream->is_over && !stream->through.len;
    if (stream->through.len)
        return stream->through;
    return out ? slice_of(out->data + out->start, buf_len(out)) : (struct slice){0};
}

static void on_took(void *owner, void *user, size_t n)
{
    struct stream *stream = user;
    struct conn *conn = &stream->client.conn;
    stream->taken_bytes += n;
    if (stream->through.len) {
        stream->through = slice_of(stream->through.ptr + n, stream->through.len - n);
        return;
    }
    conn->out->start += (uint32_t)n;
    if (buf_len(conn->out) > 0)
        return;
    give_out(stream);
    list_remove(&stream->waiting);
    stop_watching(stream);
    if (stream->client.exchange)
        exchange_resume(stream->client.exchange);
}

static void on_answered(void *owner, void *user)
{
    struct stream *stream = user;
    struct loop *loop = &worker_of(stream)->loop;
    if (!stream->client.exchange)
        loop_timer_set(loop, &stream->client.conn.timer, loop->now_ns + DISCARD_MS * NS_PER_MS);
}

static const struct http_message *on_trailers(void *owner, void *user)
{
    struct stream *stream = user;
    return stream_parse_lines(stream, stream->trailers);
}

static void on_refusal(void *owner, enum http2_refusal what)
{
    const struct client_h2 *h2 = owner;
    struct listener_counters *counters = h2->client->listener->counters;
    counter_add(what == HTTP2_REFUSAL_TOO_MANY ? &counters->h2_too_many : &counters->h2_malformed, 1);
}

static void on_flood(void *owner, enum http2_flood what)
{
    struct client_h2 *h2 = owner;
    counter *of_kind = &h2->client->listener->counters->h2_flood_resets;
    counter_add(of_kind + what, 1);
}

/* The client has read the notice: what it sends from now on it sends knowing. */
static void on_pong(void *owner)
{
    struct client_h2 *h2 = owner;
    if (h2->leaving != H2_GAVE_NOTICE)
        return;
    h2->leaving = H2_WENT_AWAY;
    http2_server_go_away(h2->server);
    client_h2_flush_soon(h2);
}

const struct http2_server_handler stream_handler = {
    .request = on_request,
    .refused = on_refused,
    .data = on_data,
    .ended = on_ended,
    .closed = on_closed,
    .peek = on_peek,
    .took = on_took,
    .answered = on_answered,
    .trailers = on_trailers,
    .refusal = on_refusal,
    .flood = on_flood,
    .pong = on_pong,
};
