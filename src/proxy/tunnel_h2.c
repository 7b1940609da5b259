/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/tunnel_h2.h"

#include "proxy/carrier_h2.h"

struct far_end {
    struct conn conn;
    struct http2_stream *stream; /* borrows: the exchange's */
};

static struct far_end *of_conn(struct conn *conn)
{
    return container_of(conn, struct far_end, conn);
}

static enum conn_result layer_read(struct conn *conn, char *data, size_t cap, size_t *n)
{
    struct http2_stream *stream = of_conn(conn)->stream;
    size_t got = http2_stream_take(stream, data, cap);
    if (got == 0) {
        conn->can_read = false;
        conn->saw_eof = stream->in_ended;
        return stream->in_ended ? CONN_EOF : CONN_BLOCKED;
    }
    *n = got;
    conn->can_read = stream->in || stream->in_ended;
    mux_touch(mux_of(stream)); /* credit for what was taken */
    return CONN_OK;
}

static enum conn_result layer_write(struct conn *conn, struct buf_pool *bufs, const struct iovec *pieces,
                                    int n)
{
    struct http2_stream *stream = of_conn(conn)->stream;
    for (int i = 0; i < n; i++)
        if (!http2_stream_send(stream, slice_of(pieces[i].iov_base, pieces[i].iov_len), false, NULL))
            return CONN_FAILED;
    conn->is_full = http2_stream_is_full(stream);
    mux_touch(mux_of(stream));
    return CONN_OK;
}

static void layer_shut(struct conn *conn)
{
    struct http2_stream *stream = of_conn(conn)->stream;
    /* A stream that is closed can be told nothing, and on_fail() tells the tunnel. */
    conn->is_full = http2_stream_send(stream, (struct slice){0}, true, NULL); /* until the end has gone */
    mux_touch(mux_of(stream));
}

static const struct conn_layer layer = {.read = layer_read, .write = layer_write, .shut = layer_shut};

void tunnel_h2_init(struct worker *worker)
{
    slab_init(&worker->far_ends, sizeof(struct far_end));
}

struct conn *tunnel_h2_open(struct exchange *x)
{
    struct far_end *end = slab_try_take(&x->worker->far_ends);
    if (!end)
        return NULL;
    end->stream = x->stream;
    conn_init(&end->conn, -1, NULL, NULL);
    end->conn.layer = &layer;
    http2_stream_pull(x->stream);
    return &end->conn;
}

void tunnel_h2_ready(struct exchange *x)
{
    x->far_end->can_read = x->stream->in || x->stream->in_ended;
    x->far_end->is_full = !x->stream->is_closed && (http2_stream_is_full(x->stream) || x->far_end->is_shut);
    exchange_resume(x);
}

void tunnel_h2_end(struct exchange *x)
{
    if (!x->far_end)
        return;
    slab_give(&x->worker->far_ends, of_conn(x->far_end));
    x->far_end = NULL;
}

/* Over HTTP/1.1 whoever does not know a protocol passes over the offer of it; what is worth failing for are
 * WebSockets, and what a client asked for by an extended CONNECT itself. */
bool tunnel_h2_is_wanted(const struct exchange *x)
{
    return x->wants_upgrade && x->request.is_done && x->method == HTTP_GET &&
           (x->is_websocket || x->client->downstream->has_frames);
}

struct slice tunnel_h2_request(struct exchange *x, struct http_message *msg)
{
    const struct http_field *field = http_message_find(msg, HTTP_FIELD_UPGRADE);
    if (!tunnel_h2_is_wanted(x) || !field)
        return (struct slice){0};
    http_message_drop_name(msg, SLICE("Sec-WebSocket-Key")); /* RFC 8441 5: it has no use */
    return http_field_value(field);
}

/* The key is in the head that was kept. */
static bool accept_of(struct exchange *x, char accept[WEBSOCKET_ACCEPT_BYTES])
{
    struct http_message *msg = x->worker->msg;
    const struct http_field *key;
    return carrier_h2_read_head(x, msg) && (key = http_message_find_name(msg, SLICE("Sec-WebSocket-Key"))) &&
           websocket_accept(http_field_value(key), accept);
}

bool tunnel_h2_answer(struct exchange *x, struct http_message *msg, char accept[WEBSOCKET_ACCEPT_BYTES])
{
    msg->status = 101;
    msg->framing = HTTP_BODY_NONE;
    msg->upgrade = true;
    http_message_drop(msg, HTTP_FIELD_UPGRADE);
    if (!x->is_websocket || x->client->downstream->has_frames)
        return true;
    return accept_of(x, accept) && http_message_add(msg, SLICE("Upgrade"), SLICE("websocket")) &&
           http_message_add(msg, SLICE("Sec-WebSocket-Accept"), slice_of(accept, WEBSOCKET_ACCEPT_BYTES));
}
