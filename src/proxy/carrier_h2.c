/* SPDX-License-Identifier: Apache-2.0 */
/* An attempt as a stream of a shared HTTP/2 connection (upstream/mux). What a target has not worked on,
 * because it refused the stream or left before it, may be sent again with its body while all of that is small
 * enough to be kept (x->unsent). */
#include "proxy/carrier_h2.h"

#include "core/clock.h"
#include "proxy/answer.h"
#include "proxy/exchange.h"
#include "proxy/forward.h"
#include "proxy/response.h"
#include "proxy/tunnel_h2.h"

#include <errno.h>

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    forward_due(container_of(timer, struct exchange, stream_timer));
}

static bool can_take(struct http2_stream *stream)
{
    const struct exchange *x = stream->owner;
    return !x->client->conn.out;
}

static void on_interim(struct http2_stream *stream, struct http_message *msg)
{
    response_interim(stream->owner, msg);
}

static void on_head(struct http2_stream *stream, struct http_message *msg, char *data, size_t len)
{
    struct exchange *x = stream->owner;
    buf_give(&x->worker->bufs, &x->unsent);
    x->answer_has_end = !stream->head_ends;
    char accept[WEBSOCKET_ACCEPT_BYTES];
    if (msg->status / 100 == 2 && tunnel_h2_is_wanted(x) && !tunnel_h2_answer(x, msg, accept)) {
        exchange_fail(x, END_RESPONSE_HEAD_TOO_LARGE);
        return;
    }
    response_head(x, msg, data, len);
    if (stream->owner == x && !x->is_tunnel)
        forward_set_deadline(x, response_patience_ms(x));
}

static void on_body(struct http2_stream *stream, char *data, size_t len)
{
    struct exchange *x = stream->owner;
    forward_set_deadline(x, response_patience_ms(x));
    response_body(x, data, len);
}

static void on_end(struct http2_stream *stream, struct http_message *trailers)
{
    response_end(stream->owner, true, trailers);
}

/* A target that leaves in order says nothing about its health by refusing what it has not begun. */
static void refused(struct exchange *x, const struct http2_client *client)
{
    if (!client->is_leaving)
        forward_note(x, PASSIVE_GATEWAY);
    forward_attempt_failed(x, END_UPSTREAM_REFUSED);
}

static void on_fail(struct http2_stream *stream, enum http2_fail fail, enum http_reject why)
{
    struct exchange *x = stream->owner;
    if (x->is_tunnel) {
        exchange_abort(x, END_TUNNEL);
        return;
    }
    switch (fail) {
    case HTTP2_FAIL_REFUSED:
        if (!x->has_answer_head) {
            refused(x, stream->client);
            return;
        }
        break;
    case HTTP2_FAIL_INVALID:
        if (!x->has_answer_head) {
            response_reject(x, why);
            return;
        }
        break;
    case HTTP2_FAIL_RESET:
        x->is_reused = false; /* it is the request that failed, not a connection gone stale */
        break;
    case HTTP2_FAIL_BROKEN:
    case HTTP2_FAIL_NONE:
        break;
    }
    response_end(x, false, NULL);
}

/* Never within a read of the connection: the client is read into the same buffer. */
static void on_room(struct http2_stream *stream)
{
    struct exchange *x = stream->owner;
    if (x->far_end)
        tunnel_h2_ready(x);
    else
        exchange_resume(x);
}

static void on_stream_ready(struct http2_stream *stream)
{
    tunnel_h2_ready(stream->owner);
}

static const struct http2_stream_events events = {
    .can_take = can_take,
    .on_interim = on_interim,
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
    .on_fail = on_fail,
    .on_room = on_room,
    .on_ready = on_stream_ready,
};

static void on_open(struct http2_stream *stream)
{
    struct exchange *x = stream->owner;
    struct client *client = x->client;
    forward_opened(x);
    if (client->exchange == x && x->carrier && x->upstream_write_failed)
        forward_attempt_failed(x, END_UPSTREAM_REFUSED);
}

static void on_connect_failed(struct http2_stream *stream, int err)
{
    forward_connect_failed(stream->owner, err);
}

static void on_tls_failed(struct http2_stream *stream)
{
    forward_tls_failed(stream->owner);
}

static void on_http1(struct http2_stream *stream, struct upstream *upstream)
{
    struct exchange *x = stream->owner;
    if (x->group->http2 == SNAP_HTTP2_ONLY) {
        if (upstream)
            pool_close(&x->worker->pool, &upstream);
        forward_tls_failed(x);
    } else if (!upstream) {
        forward_otherwise(x);
    } else {
        http2_stream_release(&x->stream);
        loop_timer_remove(&x->worker->loop, &x->stream_timer);
        carrier_h1_adopt(x, upstream);
        forward_opened(x);
    }
}

static void on_gone(struct muxes *muxes, void *keeper)
{
    worker_unpin(container_of(muxes, struct worker, muxes), keeper);
}

const struct mux_events carrier_h2_mux_events = {
    .on_open = on_open,
    .on_connect_failed = on_connect_failed,
    .on_tls_failed = on_tls_failed,
    .on_http1 = on_http1,
    .on_gone = on_gone,
};

static enum pool_open_result h2_open(struct exchange *x, struct backend *backend, bool must_be_fresh)
{
    const struct config_target_group *config = x->group->config;
    const struct mux_wish wish = {.tls = x->group->tls,
                                  .connections = config->limits.connections,
                                  .streams = config->limits.streams,
                                  .idle_ms = config->timeouts.idle_ms};
    struct mux *mux = NULL;
    enum pool_open_result opened = mux_take(&x->worker->muxes, backend, &wish, &mux);
    if (opened != POOL_OPEN_STARTED)
        return opened;
    struct http2_stream *stream = http2_stream_new(&mux->client, &events, x);
    if (!stream) {
        errno = ENOMEM;
        return POOL_OPEN_FAILED;
    }
    x->carrier = &carrier_h2;
    x->stream = stream;
    stream->wants_settings = tunnel_h2_is_wanted(x);
    x->is_connecting = !mux->is_open || (stream->wants_settings && !mux->client.has_settings);
    x->is_reused = mux->client.had_requests;
    loop_timer_init(&x->stream_timer, on_due);
    return POOL_OPEN_STARTED;
}

bool carrier_h2_read_head(struct exchange *x, struct http_message *msg)
{
    static const struct h1_limits limits = {.head_bytes = WORKER_HEAD_BYTES,
                                            .uri_bytes = WORKER_HEAD_BYTES,
                                            .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};
    enum http_reject why;
    size_t used;
    return h1_parse_request(x->head->data + x->head->start, x->head_len, &limits, msg, &used, &why) ==
           H1_COMPLETE;
}

static enum conn_result h2_send(struct exchange *x, struct slice body, const struct http_message *trailers)
{
    if (!http2_stream_send(x->stream, body, x->request.is_done, trailers)) {
        x->upstream_write_failed = true;
        return CONN_FAILED;
    }
    mux_touch(mux_of(x->stream));
    return CONN_OK;
}

static enum conn_result h2_begin(struct exchange *x, struct slice body, const struct http_message *trailers)
{
    struct http_message *msg = x->worker->msg;
    struct slice scheme = x->listener->tls ? SLICE("https") : SLICE("http");
    bool is_whole = x->request.is_done && body.len == 0 && !trailers;
    x->unfit = carrier_h2_read_head(x, msg) ? END_NORMAL : END_HEAD_GREW;
    if (x->unfit)
        return CONN_FAILED;
    struct slice protocol = tunnel_h2_request(x, msg);
    if (protocol.len && !x->stream->client->takes_connect)
        x->unfit = END_NO_EXTENDED_CONNECT;
    if (x->unfit || !http2_stream_request(x->stream, msg, scheme, protocol, is_whole && !protocol.len))
        return CONN_FAILED;
    mux_touch(mux_of(x->stream));
    return is_whole ? CONN_OK : h2_send(x, body, trailers);
}

static bool h2_is_full(const struct exchange *x)
{
    return http2_stream_is_full(x->stream);
}

static void h2_read(struct exchange *x)
{
    struct mux *mux = mux_of(x->stream);
    http2_stream_deliver(x->stream);
    mux_touch(mux); /* credit for what was taken */
}

static void h2_end(struct exchange *x, bool reuse)
{
    struct worker *worker = x->worker;
    struct mux *mux = mux_of(x->stream);
    loop_timer_remove(&worker->loop, &x->stream_timer);
    tunnel_h2_end(x);
    http2_stream_release(&x->stream);
    mux_touch(mux);
    if (x->snapshot != worker->snapshot && !snapshot_serves_backend(worker->snapshot, mux->backend))
        mux->is_retired = true;
    /* With this exchange its snapshot may go, and the backend with that. */
    if (mux->is_retired && mux->client.n_streams == 0 && !mux->keeper) {
        mux->keeper = x->snapshot;
        worker_pin(worker, x->snapshot);
    }
}

static struct loop_timer *h2_timer(struct exchange *x)
{
    return &x->stream_timer;
}

const struct carrier carrier_h2 = {
    .keeps_body = true,
    .open = h2_open,
    .begin = h2_begin,
    .send = h2_send,
    .is_full = h2_is_full,
    .read = h2_read,
    .end = h2_end,
    .tunnel = tunnel_h2_open,
    .timer = h2_timer,
};
