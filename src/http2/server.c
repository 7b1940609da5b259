/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/server_internal.h"

#include "core/clock.h"
#include "http2/memory.h"

#include <stdlib.h>

enum {
    /* A list may unpack to this many times the limit before its connection ends; up to there the rest of it
     * is only counted, and the request is answered 431. */
    HEADERS_FACTOR = 16,
    ANSWER_HEAD_BYTES = 256 * 1024,
    NO_LIMIT = 1 << 30,
};

static const struct http2_window_limits connection_limits = {HTTP2_CONNECTION_WINDOW,
                                                             HTTP2_CONNECTION_WINDOW_MOST};
static const struct http2_window_limits stream_limits = {HTTP2_STREAM_WINDOW, HTTP2_STREAM_WINDOW_MOST};

const uint8_t server_pace_ping[8] = "pace";

static void flood(struct http2_server *server, enum http2_flood what)
{
    if (server->has_flooded)
        return;
    server->has_flooded = true;
    server->handler->flood(server->owner, what);
    nghttp2_session_terminate_session(server->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static void spend(struct http2_server *server, enum http2_flood what)
{
    if (!http2_budget_take(&server->budgets[what], what, server->now_ns))
        flood(server, what);
}

/* A frame of a stream that is over, which nghttp2 would ignore. */
static void check_stream(struct http2_server *server, int32_t id)
{
    if (id > server->last_id || id % 2 == 0 || nghttp2_session_find_stream(server->session, id))
        return;
    enum http2_closed_by by = http2_closed_find(&server->closed, id);
    if (by == HTTP2_CLOSED_BY_CLIENT)
        nghttp2_session_terminate_session(server->session, NGHTTP2_STREAM_CLOSED);
    else if (by == HTTP2_NEVER_OPENED)
        nghttp2_session_terminate_session(server->session, NGHTTP2_PROTOCOL_ERROR);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *user)
{
    if (hd->type == NGHTTP2_HEADERS)
        check_stream(user, hd->stream_id);
    return 0;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_server *server = user;
    bool is_request = frame->headers.cat == NGHTTP2_HCAT_REQUEST;
    server->n_streams += is_request;
    if (is_request)
        server->last_id = frame->hd.stream_id;
    http2_head_fini(&server->head, server->bufs);
    http2_head_init(&server->head, is_request ? HTTP2_REQUEST : HTTP2_TRAILERS, server->limits->head_bytes);
    server->head_id = frame->hd.stream_id;
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
    struct http2_server *server = user;
    http2_head_add(&server->head, server->bufs, slice_of((const char *)name, name_len),
                   slice_of((const char *)value, value_len));
    if (server->head.seen_bytes <= (uint64_t)HEADERS_FACTOR * server->limits->head_bytes)
        return 0;
    flood(server, HTTP2_FLOOD_HEADERS);
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* the rest of the list is not looked at */
}

/* A field that nghttp2 finds wrong; without this it would leave it out and go on. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                             void *user)
{
    struct http2_server *server = user;
    http2_head_spoil(&server->head);
    return 0;
}

static void reset(struct http2_server *server, int32_t id, uint32_t code)
{
    nghttp2_submit_rst_stream(server->session, NGHTTP2_FLAG_NONE, id, code);
}

/* A stream is reset for what the client did. */
static void blame(struct http2_server *server, enum http2_refusal what)
{
    server->handler->refusal(server->owner, what);
    spend(server, HTTP2_FLOOD_RESETS);
}

static void refuse(struct http2_server *server, int32_t id, uint32_t code, enum http2_refusal what)
{
    server->n_blamed++;
    reset(server, id, code);
    blame(server, what);
}

/* nghttp2 resets the stream, or ends the connection. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user)
{
    struct http2_server *server = user;
    server->n_blamed++;
    blame(server, HTTP2_REFUSAL_MALFORMED);
    return 0;
}

static void take_request(struct http2_server *server, int32_t id, bool ends)
{
    enum http_reject why = HTTP_REJECT_NONE;
    void *stream = NULL;
    if (server->n_streams > server->max_streams) {
        refuse(server, id, NGHTTP2_REFUSED_STREAM, HTTP2_REFUSAL_TOO_MANY);
        return;
    }
    switch (
        http2_head_finish(&server->head, server->bufs, ends, server->limits, HTTP_GET, server->msg, &why)) {
    case HTTP2_HEAD_OK:
        stream = server->handler->request(server->owner, id, server->msg, buf_len(server->head.text), ends,
                                          http2_head_protocol(&server->head));
        break;
    case HTTP2_HEAD_REFUSED:
        stream = server->handler->refused(server->owner, id, why, ends);
        break;
    case HTTP2_HEAD_MALFORMED:
        refuse(server, id, NGHTTP2_PROTOCOL_ERROR, HTTP2_REFUSAL_MALFORMED);
        return;
    case HTTP2_HEAD_NO_MEMORY:
        break;
    }
    if (stream) {
        nghttp2_session_set_stream_user_data(server->session, id, stream);
    } else {
        server->n_blamed++; /* nobody is: there was no memory */
        reset(server, id, NGHTTP2_REFUSED_STREAM);
    }
}

static void take_trailers(struct http2_server *server, int32_t id)
{
    void *stream = server_stream(server, id);
    enum http_reject why;
    enum http2_head_result result = http2_head_finish(&server->head, server->bufs, true, server->limits,
                                                      HTTP_GET, server->trailers, &why);
    if (result != HTTP2_HEAD_OK)
        refuse(server, id, NGHTTP2_PROTOCOL_ERROR, HTTP2_REFUSAL_MALFORMED);
    else if (stream)
        server->handler->ended(server->owner, stream, server->trailers->n_fields ? server->trailers : NULL);
}

static void take_headers(struct http2_server *server, const nghttp2_frame *frame)
{
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        take_request(server, frame->hd.stream_id, ends);
    else
        take_trailers(server, frame->hd.stream_id);
    http2_head_fini(&server->head, server->bufs);
    server->head_id = 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_server *server = user;
    void *stream;
    if (server->has_flooded)
        return 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        take_headers(server, frame);
        break;
    case NGHTTP2_DATA:
        if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
            if ((stream = server_stream(server, frame->hd.stream_id)))
                server->handler->ended(server->owner, stream, NULL);
        } else if (frame->hd.length == frame->data.padlen) {
            spend(server, HTTP2_FLOOD_EMPTY);
        }
        break;
    case NGHTTP2_PING:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            spend(server, HTTP2_FLOOD_PINGS);
        else if (memcmp(frame->ping.opaque_data, server_pace_ping, sizeof(server_pace_ping)) == 0)
            http2_pace_answered(&server->pace, server->now_ns);
        else
            server->handler->pong(server->owner);
        break;
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            spend(server, HTTP2_FLOOD_SETTINGS);
        break;
    case NGHTTP2_PRIORITY:
        spend(server, HTTP2_FLOOD_PRIORITIES);
        break;
    case NGHTTP2_RST_STREAM:
        spend(server, HTTP2_FLOOD_RESETS);
        break;
    default:
        break;
    }
    return 0;
}

static int on_data_chunk(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                         void *user)
{
    struct http2_server *server = user;
    void *stream = server_stream(server, id);
    if (stream && !server->has_flooded)
        server->handler->data(server->owner, stream, (char *)data, len);
    else
        nghttp2_session_consume(session, id, len);
    return 0;
}

/* Of some faults, as a body that its length contradicts, nghttp2 tells nothing but the reset. */
static void note_reset(struct http2_server *server, uint32_t code)
{
    if (code == NGHTTP2_NO_ERROR || code == NGHTTP2_INTERNAL_ERROR || code == NGHTTP2_CANCEL)
        return; /* ours */
    if (server->n_blamed)
        server->n_blamed--;
    else
        blame(server, HTTP2_REFUSAL_MALFORMED);
}

static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct http2_server *server = user;
    uint8_t type = frame->hd.type;
    if (type == NGHTTP2_RST_STREAM)
        note_reset(server, frame->rst_stream.error_code);
    if ((type != NGHTTP2_DATA && type != NGHTTP2_HEADERS) || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
        nghttp2_session_get_stream_remote_close(session, frame->hd.stream_id) != 0)
        return 0;
    void *stream = server_stream(server, frame->hd.stream_id);
    if (stream)
        server->handler->answered(server->owner, stream);
    return 0;
}

static void set_window(struct http2_server *server, int32_t id, uint32_t before, uint32_t size)
{
    if (size != before)
        nghttp2_session_set_local_window_size(server->session, NGHTTP2_FLAG_NONE, id, (int32_t)size);
}

/* An idle connection has no claim to what it grew by. */
static void shrink_connection(struct http2_server *server)
{
    uint32_t before = server->window.size;
    set_window(server, 0, before, http2_window_shrink(&server->window, &connection_limits, server->growth));
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
    struct http2_server *server = user;
    void *stream = server_stream(server, id);
    if (--server->n_streams == 0)
        shrink_connection(server);
    http2_closed_note(&server->closed, id,
                      !server->out_at || nghttp2_session_get_stream_remote_close(session, id) == 1);
    if (stream)
        server->handler->closed(server->owner, stream, !server->out_at, code);
    return 0;
}

static nghttp2_session_callbacks *make_callbacks(void)
{
    nghttp2_session_callbacks *c;
    if (nghttp2_session_callbacks_new(&c) != 0)
        return NULL;
    nghttp2_session_callbacks_set_on_begin_frame_callback(c, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(c, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(c, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(c, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(c, on_frame_recv);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(c, on_invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_send_callback(c, on_frame_send);
    nghttp2_session_callbacks_set_on_stream_close_callback(c, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(c, server_put_body);
    return c;
}

static nghttp2_option *make_options(void)
{
    nghttp2_option *o;
    if (nghttp2_option_new(&o) != 0)
        return NULL;
    nghttp2_option_set_no_auto_window_update(o, 1);
    nghttp2_option_set_no_closed_streams(o, 1);
    nghttp2_option_set_max_send_header_block_length(o, ANSWER_HEAD_BYTES);
    nghttp2_option_set_stream_reset_rate_limit(o, NO_LIMIT, NO_LIMIT); /* ours says why */
    return o;
}

static bool open_session(struct http2_server *server, struct pieces *memory)
{
    nghttp2_mem mem;
    if (memory)
        mem = http2_memory_of(memory);
    nghttp2_session_callbacks *callbacks = make_callbacks();
    nghttp2_option *options = make_options();
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, NO_LIMIT},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, server->limits->head_bytes},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
    };
    bool ok =
        callbacks && options &&
        nghttp2_session_server_new3(&server->session, callbacks, server, options, memory ? &mem : NULL) ==
            0 &&
        nghttp2_submit_settings(server->session, NGHTTP2_FLAG_NONE, settings, iso_countof(settings)) == 0 &&
        nghttp2_session_set_local_window_size(server->session, NGHTTP2_FLAG_NONE, 0,
                                              HTTP2_CONNECTION_WINDOW) == 0;
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(options);
    return ok;
}

struct http2_server *http2_server_new(const struct http2_server_options *options)
{
    struct http2_server *server = malloc(sizeof(*server));
    if (!server)
        return NULL;
    *server = (struct http2_server){.handler = options->handler,
                                    .owner = options->owner,
                                    .limits = options->limits,
                                    .bufs = options->bufs,
                                    .msg = options->msg,
                                    .trailers = options->trailers,
                                    .max_streams = options->max_streams,
                                    .walk.left = HTTP2_PREFACE_BYTES,
                                    .growth = options->growth,
                                    .now_ns = options->now_ns};
    for (int i = 0; i < HTTP2_FLOODS; i++)
        http2_budget_init(&server->budgets[i], (enum http2_flood)i, options->now_ns);
    http2_window_init(&server->window, &connection_limits);
    if (!open_session(server, options->memory))
        http2_server_free(&server);
    return server;
}

void http2_server_free(struct http2_server **server)
{
    struct http2_server *s = *server;
    if (!s)
        return;
    *server = NULL;
    nghttp2_session_del(s->session);
    http2_window_shrink(&s->window, &connection_limits, s->growth);
    http2_head_fini(&s->head, s->bufs);
    free(s);
}

static bool feed(struct http2_server *server, const char *data, size_t len)
{
    ssize_t n = nghttp2_session_mem_recv(server->session, (const uint8_t *)data, len);
    if (n == NGHTTP2_ERR_FLOODED)
        flood(server, HTTP2_FLOOD_PINGS);
    else if (n == NGHTTP2_ERR_TOO_MANY_SETTINGS)
        flood(server, HTTP2_FLOOD_SETTINGS);
    else if (n == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS)
        flood(server, HTTP2_FLOOD_CONTINUATIONS);
    else if (n < 0)
        nghttp2_session_terminate_session(server->session, NGHTTP2_PROTOCOL_ERROR);
    return n >= 0;
}

/* Of DATA frames for a stream that is over nghttp2 says nothing: it gets everything before their headers are
 * whole, then they are looked at. */
static bool receive(struct http2_server *server, const char *data, size_t len)
{
    size_t fed = 0, at = 0;
    while (http2_walk_next(&server->walk, data, len, &at)) {
        if (http2_walk_type(&server->walk) != NGHTTP2_DATA)
            continue;
        if (!feed(server, data + fed, at - 1 - fed))
            return false;
        fed = at - 1;
        check_stream(server, http2_walk_stream(&server->walk));
    }
    return feed(server, data + fed, len - fed);
}

bool http2_server_receive(struct http2_server *server, char *data, size_t len, uint64_t now_ns)
{
    server->now_ns = now_ns;
    server->is_receiving = true;
    bool is_good = receive(server, data, len);
    server->is_receiving = false;
    return is_good;
}

bool http2_server_is_over(const struct http2_server *server)
{
    return !nghttp2_session_want_read(server->session) && !nghttp2_session_want_write(server->session);
}

bool http2_server_is_in_head(const struct http2_server *server)
{
    return server->head_id != 0;
}

void http2_server_reset(struct http2_server *server, int32_t id, enum http2_code code)
{
    reset(server, id, code);
}

void http2_server_window_init(struct http2_window *window)
{
    http2_window_init(window, &stream_limits);
}

static void consume_connection(struct http2_server *server, size_t n, bool at_once)
{
    uint32_t before = server->window.size;
    set_window(server, 0, before,
               http2_window_take(&server->window, &server->pace, &server->known, &connection_limits,
                                 server->growth, n, at_once, server->now_ns));
    nghttp2_session_consume_connection(server->session, n);
}

void http2_server_consume(struct http2_server *server, int32_t id, struct http2_window *window, size_t n,
                          bool at_once)
{
    uint32_t before = window->size;
    set_window(server, id, before,
               http2_window_take(window, &server->pace, &server->known_of_streams, &stream_limits, NULL, n,
                                 at_once, server->now_ns));
    nghttp2_session_consume_stream(server->session, id, n);
    consume_connection(server, n, at_once);
}

void http2_server_discard(struct http2_server *server, size_t n)
{
    consume_connection(server, n, false);
}

void http2_server_give_notice(struct http2_server *server)
{
    nghttp2_submit_shutdown_notice(server->session);
    nghttp2_submit_ping(server->session, NGHTTP2_FLAG_NONE, NULL);
}

void http2_server_go_away(struct http2_server *server)
{
    nghttp2_submit_goaway(server->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(server->session), NGHTTP2_NO_ERROR, NULL,
                          0);
}

void http2_server_terminate(struct http2_server *server, enum http2_code code)
{
    nghttp2_session_terminate_session(server->session, (uint32_t)code);
}
