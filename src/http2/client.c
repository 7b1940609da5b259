/* SPDX-License-Identifier: Apache-2.0 */
/* nghttp2 keeps the session: HPACK, windows, states of streams, and the rules for what a server may send.
 * What is ours is here: frames to and from one buffer, and which stream an event is for. */
#include "http2/client_internal.h"

#include <stdlib.h>

/* What the fields of one head may add up to, kept or not: more is not a head but an attack on the decoder. */
enum { DECODED_BYTES_MAX = 1024 * 1024 };

static struct http2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2_client *client = arg;
    struct http2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    if (stream->has_head)
        http2_head_init(&stream->trailers, HTTP2_TRAILERS, HTTP2_CLIENT_HEAD_BYTES);
    else if (stream->head.text) /* after an interim one */
        http2_head_fini(&stream->head, client->thread->bufs);
    if (!stream->has_head)
        http2_head_init(&stream->head, HTTP2_RESPONSE, HTTP2_CLIENT_HEAD_BYTES);
    return 0;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
    struct http2_client *client = arg;
    struct http2_stream *stream = stream_of(session, frame->hd.stream_id);
    if (!stream)
        return 0;
    struct http2_head *head = stream->has_head ? &stream->trailers : &stream->head;
    http2_head_add(head, client->thread->bufs, slice_of((const char *)name, name_len),
                   slice_of((const char *)value, value_len));
    return head->seen_bytes > DECODED_BYTES_MAX ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* nghttp2 would leave the field out. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                             size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                             void *arg)
{
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static bool is_interim(const struct http2_head *head)
{
    const char *status = head->seen[HTTP2_STATUS] ? head->text->data + head->pseudo[HTTP2_STATUS].at : NULL;
    return status && head->pseudo[HTTP2_STATUS].len == 3 && status[0] == '1';
}

static void take_interim(struct http2_stream *stream)
{
    static const struct h1_limits limits = {.head_bytes = HTTP2_CLIENT_HEAD_BYTES,
                                            .uri_bytes = HTTP2_CLIENT_HEAD_BYTES,
                                            .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};
    struct http2_client_thread *thread = stream->client->thread;
    enum http_reject why = HTTP_REJECT_NONE;
    enum http2_head_result result = http2_head_finish(&stream->head, thread->bufs, true, &limits,
                                                      (enum http_method)stream->method, &thread->msg, &why);
    if (result != HTTP2_HEAD_OK) {
        stream->fail = HTTP2_FAIL_INVALID;
        stream->reject = (uint8_t)(result == HTTP2_HEAD_REFUSED ? why : HTTP_REJECT_BAD_FIELD);
        stream_touch(stream);
        return;
    }
    if (!stream->owner)
        return;
    stream->is_delivering = true;
    stream->events->on_interim(stream, &thread->msg);
    stream->is_delivering = false;
}

static void take_headers(struct http2_stream *stream, bool ends)
{
    if (stream->has_head) {
        stream->has_trailers = true;
        stream->in_ended = true; /* nghttp2 lets trailers come with the end only */
    } else if (is_interim(&stream->head)) {
        take_interim(stream);
        return;
    } else {
        stream->has_head = true;
        stream->head_ends = stream->in_ended = ends;
    }
    stream_touch(stream);
}

static void on_settings(struct http2_client *client)
{
    client->max_streams =
        nghttp2_session_get_remote_settings(client->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    client->takes_connect =
        nghttp2_session_get_remote_settings(client->session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL);
    client->has_settings = client->got_settings = true;
}

static const uint8_t pace_ping[8] = "pace";

static void take_pong(struct http2_client *client, const nghttp2_frame *frame)
{
    if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
        return;
    client->awaits_pong = false;
    if (memcmp(frame->ping.opaque_data, pace_ping, sizeof(pace_ping)) == 0)
        http2_pace_answered(&client->pace, client->now_ns);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct http2_client *client = arg;
    struct http2_stream *stream = stream_of(session, frame->hd.stream_id);
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
        client->had_answers = true;
        if (stream)
            take_headers(stream, ends);
        break;
    case NGHTTP2_DATA:
        client->had_answers = true;
        if (stream && ends) {
            stream->in_ended = true;
            stream_touch(stream);
        }
        break;
    case NGHTTP2_RST_STREAM:
        if (stream)
            stream->peer_reset = true;
        break;
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK))
            on_settings(client);
        break;
    case NGHTTP2_PING:
        take_pong(client, frame);
        break;
    case NGHTTP2_GOAWAY:
        client->is_leaving = true;
        client->last_id = frame->goaway.last_stream_id;
        break;
    default:
        break;
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *arg)
{
    struct http2_stream *stream = stream_of(session, id);
    nghttp2_session_consume_connection(session, len); /* a stream that waits holds up no other */
    if (stream)
        stream_take_body(stream, (char *)data, len); /* our own buffer: see http2_client_feed() */
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    struct http2_stream *stream = stream_of(session, id);
    if (!stream)
        return 0;
    enum http2_fail fail = HTTP2_FAIL_NONE;
    if (code == NGHTTP2_REFUSED_STREAM)
        fail = HTTP2_FAIL_REFUSED;
    else if (stream->peer_reset || (stream->out_ends && code == NGHTTP2_NO_ERROR))
        fail = HTTP2_FAIL_RESET;
    else
        fail = HTTP2_FAIL_INVALID; /* the library's judgement */
    if (fail == HTTP2_FAIL_INVALID && !stream->reject)
        stream->reject = HTTP_REJECT_BAD_FIELD;
    stream_closed(stream, fail);
    return 0;
}

/* A request that was submitted and cannot be sent any more: a GOAWAY came first, or it was cancelled. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int error, void *arg)
{
    struct http2_client *client = arg;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    list_for_each_safe (node, after, &client->streams) {
        struct http2_stream *stream = container_of(node, struct http2_stream, node);
        if (stream->id != frame->hd.stream_id)
            continue;
        nghttp2_session_set_stream_user_data(session, stream->id, NULL); /* it may still be closed by name */
        stream_closed(stream, HTTP2_FAIL_REFUSED);
    }
    return 0;
}

struct http2_client_thread *http2_client_thread_new(struct buf_pool *bufs, counter *growth)
{
    struct http2_client_thread *thread = malloc(sizeof(*thread));
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;
    iso_assert(thread && nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, on_invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, stream_put_body);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    thread->bufs = bufs;
    thread->callbacks = callbacks;
    thread->option = option;
    thread->gathered = 0;
    thread->memory = (struct pieces){0};
    thread->growth = growth;
    slab_init(&thread->streams, sizeof(struct http2_stream));
    return thread;
}

struct pieces *http2_client_thread_memory(struct http2_client_thread *thread)
{
    return &thread->memory;
}

counter *http2_client_thread_growth(struct http2_client_thread *thread)
{
    return thread->growth;
}

void http2_client_thread_free(struct http2_client_thread *thread)
{
    if (!thread)
        return;
    slab_fini(&thread->streams);
    pieces_fini(&thread->memory);
    nghttp2_session_callbacks_del(thread->callbacks);
    nghttp2_option_del(thread->option);
    free(thread);
}

void http2_client_init(struct http2_client *client, struct http2_client_thread *thread)
{
    *client = (struct http2_client){.thread = thread, .max_streams = UINT32_MAX};
    list_init(&client->streams);
    list_init(&client->touched);
}

bool http2_client_open(struct http2_client *client, struct http2_client_thread *thread, struct conn *conn)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP2_CLIENT_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP2_CLIENT_HEAD_BYTES},
    };
    client->conn = conn;
    nghttp2_mem mem = http2_memory_of(&thread->memory);
    if (nghttp2_session_client_new3(&client->session, thread->callbacks, client, thread->option, &mem))
        return false;
    if (nghttp2_submit_settings(client->session, NGHTTP2_FLAG_NONE, settings, iso_countof(settings)) == 0 &&
        nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, 0,
                                              HTTP2_CLIENT_CONN_WINDOW_BYTES) == 0)
        return true;
    nghttp2_session_del(client->session);
    client->session = NULL;
    return false;
}

struct http2_stream *http2_client_next_waiting(struct http2_client *client)
{
    list_for_each (node, &client->streams) {
        struct http2_stream *stream = container_of(node, struct http2_stream, node);
        if (stream->was_told || stream->id || (stream->wants_settings && !client->has_settings))
            continue;
        stream->was_told = true;
        return stream;
    }
    return NULL;
}

static void deliver_touched(struct http2_client *client)
{
    /* Delivering makes no new bytes come, so this ends. */
    while (!list_is_empty(&client->touched)) {
        struct http2_stream *stream = container_of(client->touched.next, struct http2_stream, touched);
        http2_stream_deliver(stream);
    }
}

void http2_client_close(struct http2_client *client)
{
    client->is_broken = true;
    list_for_each_safe (node, after, &client->streams) {
        struct http2_stream *stream = container_of(node, struct http2_stream, node);
        stream_closed(stream, HTTP2_FAIL_BROKEN);
    }
    nghttp2_session_del(client->session);
    client->session = NULL;
    deliver_touched(client);
}

/* A session that wants nothing any more has ended the connection by a GOAWAY, which may have been sent just
 * now. */
static bool is_over(const struct http2_client *client)
{
    return !nghttp2_session_want_read(client->session) && !nghttp2_session_want_write(client->session);
}

bool http2_client_feed(struct http2_client *client, char *data, size_t len, uint64_t now_ns)
{
    client->now_ns = now_ns;
    ssize_t used = nghttp2_session_mem_recv(client->session, (const uint8_t *)data, len);
    deliver_touched(client);
    if (used < 0 || is_over(client))
        client->is_broken = true;
    return !client->is_broken;
}

/* Frames into the thread's buffer, as many as fit. False: the session has failed. */
static bool gather(struct http2_client *client)
{
    struct http2_client_thread *thread = client->thread;
    thread->gathered = 0;
    while (sizeof(thread->gather) - thread->gathered > 2 * FRAME_BYTES) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(client->session, &data);
        if (n < 0 || (size_t)n > sizeof(thread->gather) - thread->gathered)
            return false;
        if (n == 0)
            return true;
        memcpy(thread->gather + thread->gathered, data, (size_t)n);
        thread->gathered += (size_t)n;
    }
    return true;
}

bool http2_client_flush(struct http2_client *client)
{
    struct http2_client_thread *thread = client->thread;
    if (client->pace.wants_ping && !client->is_broken)
        nghttp2_submit_ping(client->session, NGHTTP2_FLAG_NONE, pace_ping);
    client->pace.wants_ping = false;
    while (!client->is_broken && !client->conn->out) {
        if (!gather(client))
            client->is_broken = true;
        if (thread->gathered == 0)
            break;
        client->sent_bytes += thread->gathered;
        if (conn_write(client->conn, thread->bufs, &(struct iovec){thread->gather, thread->gathered}, 1) ==
            CONN_FAILED)
            client->is_broken = true;
    }
    thread->gathered = 0;
    client->is_broken = client->is_broken || is_over(client);
    deliver_touched(client);
    return !client->is_broken;
}

void http2_client_ping(struct http2_client *client)
{
    if (nghttp2_submit_ping(client->session, NGHTTP2_FLAG_NONE, NULL) == 0)
        client->awaits_pong = true;
}

void http2_client_say_goodbye(struct http2_client *client)
{
    nghttp2_submit_goaway(client->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
    client->is_leaving = true;
}
