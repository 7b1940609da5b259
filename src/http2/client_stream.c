/* SPDX-License-Identifier: Apache-2.0 */
/* One request on a connection to a server: its body as nghttp2 asks for it, its answer as the owner takes it.
 */
#include "http2/client_internal.h"
#include "http2/fields.h"

#include "http1/write.h"

const struct http2_window_limits stream_window_limits = {HTTP2_CLIENT_WINDOW_BYTES, HTTP2_CLIENT_WINDOW_MOST};

static struct buf_pool *bufs_of(const struct http2_stream *stream)
{
    return stream->client->thread->bufs;
}

struct http2_stream *http2_stream_new(struct http2_client *client, const struct http2_stream_events *events,
                                      void *owner)
{
    struct http2_stream *stream = slab_try_take(&client->thread->streams);
    if (!stream)
        return NULL;
    *stream = (struct http2_stream){.client = client, .events = events, .owner = owner};
    http2_window_init(&stream->window, &stream_window_limits);
    list_init(&stream->touched);
    list_push_back(&client->streams, &stream->node);
    client->n_streams++;
    return stream;
}

void stream_settle(struct http2_stream *stream)
{
    struct http2_client *client = stream->client;
    if (stream->owner || stream->is_delivering || (stream->id && !stream->is_closed))
        return;
    if (client->holder == stream)
        client->holder = NULL;
    list_remove(&stream->node);
    list_remove(&stream->touched);
    http2_head_fini(&stream->head, bufs_of(stream));
    http2_head_fini(&stream->trailers, bufs_of(stream));
    buf_give(bufs_of(stream), &stream->in);
    buf_give(bufs_of(stream), &stream->out);
    buf_give(bufs_of(stream), &stream->out_trailers);
    http2_window_shrink(&stream->window, &stream_window_limits, client->thread->growth);
    slab_give(&client->thread->streams, stream);
}

void http2_stream_release(struct http2_stream **released)
{
    struct http2_stream *stream = *released;
    *released = NULL;
    stream->owner = NULL;
    stream->held = (struct slice){0};
    stream->client->n_streams--;
    list_remove(&stream->touched);
    if (stream->id && !stream->is_closed && !stream->client->is_broken) {
        nghttp2_submit_rst_stream(stream->client->session, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
        buf_give(bufs_of(stream), &stream->out);
    }
    stream_settle(stream);
}

/* ---- the request ---- */

bool http2_stream_request(struct http2_stream *stream, const struct http_message *msg, struct slice scheme,
                          struct slice protocol, bool is_whole)
{
    struct http2_client *client = stream->client;
    struct http2_fields list;
    char *names = client->thread->gather; /* nothing is in it between two flushes; a whole head fits */
    struct scratch scratch = {names, names + GATHER_BYTES};
    const nghttp2_data_provider body = {.source.ptr = stream, .read_callback = stream_read_body};
    if (client->is_broken || client->is_leaving ||
        !http2_fields_of_request(&list, msg, scheme, protocol, &scratch))
        return false;
    int32_t id =
        nghttp2_submit_request(client->session, NULL, list.nv, list.n, is_whole ? NULL : &body, stream);
    if (id < 0) {
        client->is_leaving |= id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE;
        return false;
    }
    client->had_requests = true;
    stream->id = id;
    stream->method = msg->method;
    stream->out_ends = is_whole;
    http2_head_init(&stream->head, HTTP2_RESPONSE, HTTP2_CLIENT_HEAD_BYTES);
    return true;
}

/* Trailers wait as the lines that they would be in HTTP/1. */
static bool keep_trailers(struct http2_stream *stream, const struct http_message *trailers)
{
    char *lines = stream->client->thread->gather; /* nothing is in it between two flushes */
    static const size_t before = sizeof("0\r\n") - 1;
    size_t n = h1_write_last_chunk(lines, GATHER_BYTES, trailers);
    return n > before &&
           buf_append(bufs_of(stream), &stream->out_trailers, slice_of(lines + before, n - before));
}

bool http2_stream_send(struct http2_stream *stream, struct slice body, bool is_last,
                       const struct http_message *trailers)
{
    if (stream->is_closed || stream->client->is_broken)
        return false;
    if (body.len && !buf_append(bufs_of(stream), &stream->out, body))
        return false;
    if (is_last && trailers && !keep_trailers(stream, trailers))
        return false;
    stream->out_ends |= is_last;
    if (stream->is_waiting && (stream->out || stream->out_ends)) {
        stream->is_waiting = false;
        nghttp2_session_resume_data(stream->client->session, stream->id);
    }
    return true;
}

/* False: there are none that may be sent, or no memory. */
static bool submit_trailers(struct http2_stream *stream)
{
    static const struct h1_limits limits = {.head_bytes = HTTP2_CLIENT_HEAD_BYTES,
                                            .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};
    struct http_message *msg = &stream->client->thread->trailers;
    struct buf *lines = stream->out_trailers;
    struct http2_fields list;
    char names[8 * 1024];
    struct scratch scratch = {names, names + sizeof(names)};
    enum http_reject why;
    size_t used;
    return h1_parse_trailers(lines->data + lines->start, buf_len(lines), &limits, msg, &used, &why) ==
               H1_COMPLETE &&
           http2_fields_of_trailers(&list, msg, &scratch) && list.n > 0 &&
           nghttp2_submit_trailer(stream->client->session, stream->id, list.nv, list.n) == 0;
}

ssize_t stream_read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t cap, uint32_t *flags,
                         nghttp2_data_source *source, void *arg)
{
    struct http2_stream *stream = source->ptr;
    size_t have = stream->out ? buf_len(stream->out) : 0, n = have < cap ? have : cap;
    if (n == 0 && !stream->out_ends) {
        stream->is_waiting = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (n == have && stream->out_ends) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (stream->out_trailers && submit_trailers(stream))
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return (ssize_t)n;
}

int stream_put_body(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t len,
                    nghttp2_data_source *source, void *arg)
{
    struct http2_client *client = arg;
    struct http2_client_thread *thread = client->thread;
    struct http2_stream *stream = source->ptr;
    if (sizeof(thread->gather) - thread->gathered < FRAME_HEAD_BYTES + len)
        return NGHTTP2_ERR_WOULDBLOCK;
    memcpy(thread->gather + thread->gathered, head, FRAME_HEAD_BYTES);
    thread->gathered += FRAME_HEAD_BYTES;
    if (len == 0)
        return 0;
    if (!stream->out) /* released since it was asked for */
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    memcpy(thread->gather + thread->gathered, stream->out->data + stream->out->start, len);
    thread->gathered += len;
    stream->out->start += (uint32_t)len;
    if (buf_len(stream->out) == 0) {
        buf_give(bufs_of(stream), &stream->out);
        stream->got_room = !stream->out_ends;
        if (stream->got_room)
            stream_touch(stream);
    }
    return 0;
}

/* ---- the answer ---- */

void stream_touch(struct http2_stream *stream)
{
    if (stream->owner && list_is_empty(&stream->touched))
        list_push_back(&stream->client->touched, &stream->touched);
}

/* The server may send as many bytes again. `at_once`: they had not to wait. */
static void consume(struct http2_stream *stream, size_t len, bool at_once)
{
    struct http2_client *client = stream->client;
    uint32_t before = stream->window.size;
    if (!len || stream->is_closed || stream->in_ended || client->is_broken)
        return;
    uint32_t size = http2_window_take(&stream->window, &client->pace, &client->known, &stream_window_limits,
                                      client->thread->growth, len, at_once, client->now_ns);
    if (size != before)
        nghttp2_session_set_local_window_size(client->session, NGHTTP2_FLAG_NONE, stream->id, (int32_t)size);
    nghttp2_session_consume_stream(client->session, stream->id, len);
}

void stream_keep_held(struct http2_stream *stream)
{
    struct slice held = stream->held;
    stream->held = (struct slice){0};
    if (stream->client->holder == stream)
        stream->client->holder = NULL;
    if (held.len && stream->owner && !buf_append(bufs_of(stream), &stream->in, held))
        stream->fail = HTTP2_FAIL_BROKEN;
}

/* Pieces of one stream that come one after the other are moved together: between them stood only the head of
 * a frame that has been read. */
void stream_take_body(struct http2_stream *stream, char *data, size_t len)
{
    struct http2_client *client = stream->client;
    if (!stream->owner) {
        consume(stream, len, false);
        return;
    }
    if (stream->held.len && client->holder == stream) {
        memmove((char *)stream->held.ptr + stream->held.len, data, len);
        stream->held.len += len;
        return;
    }
    if (stream->held.len)
        stream_keep_held(stream);
    stream->held = slice_of(data, len);
    client->holder = stream;
    stream_touch(stream);
}

void stream_closed(struct http2_stream *stream, enum http2_fail fail)
{
    stream->is_closed = true;
    if (fail && !stream->in_ended && !stream->fail)
        stream->fail = (uint8_t)fail;
    if (stream->fail || stream->is_pulled)
        stream_touch(stream);
    stream_settle(stream);
}

/* The bytes at hand, from either place; `*buf` is theirs, to be given back. */
static struct slice take_pending(struct http2_stream *stream, struct buf **buf)
{
    struct slice held = stream->held;
    if (stream->in)
        stream_keep_held(stream);
    *buf = stream->in;
    stream->in = NULL;
    if (*buf)
        return slice_of((*buf)->data + (*buf)->start, buf_len(*buf));
    stream->held = (struct slice){0};
    if (stream->client->holder == stream)
        stream->client->holder = NULL;
    return held;
}

static bool has_pending(const struct http2_stream *stream)
{
    return stream->in || stream->held.len;
}

static void deliver_fail(struct http2_stream *stream)
{
    stream->events->on_fail(stream, (enum http2_fail)stream->fail, (enum http_reject)stream->reject);
}

/* The answer's head turns out to be wrong. */
static void invalidate(struct http2_stream *stream, enum http2_head_result result, enum http_reject why)
{
    stream->fail = result == HTTP2_HEAD_NO_MEMORY ? HTTP2_FAIL_BROKEN : HTTP2_FAIL_INVALID;
    stream->reject = (uint8_t)(result == HTTP2_HEAD_REFUSED ? why : HTTP_REJECT_BAD_FIELD);
}

static void deliver_head(struct http2_stream *stream)
{
    struct http2_client_thread *thread = stream->client->thread;
    static const struct h1_limits limits = {.head_bytes = HTTP2_CLIENT_HEAD_BYTES,
                                            .uri_bytes = HTTP2_CLIENT_HEAD_BYTES,
                                            .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};
    enum http_reject why = HTTP_REJECT_NONE;
    struct buf *buf = NULL;
    enum http2_head_result result = http2_head_finish(&stream->head, thread->bufs, stream->head_ends, &limits,
                                                      (enum http_method)stream->method, &thread->msg, &why);
    if (result != HTTP2_HEAD_OK) {
        invalidate(stream, result, why);
        deliver_fail(stream);
        return;
    }
    stream->head_delivered = true;
    thread->msg.reason = (struct slice){0}; /* HTTP/2 has none: whoever needs one takes the usual */
    struct slice body = take_pending(stream, &buf);
    stream->events->on_head(stream, &thread->msg, (char *)body.ptr, body.len);
    consume(stream, body.len, !buf);
    buf_give(thread->bufs, &buf);
    http2_head_fini(&stream->head, thread->bufs);
}

static void deliver_body(struct http2_stream *stream)
{
    struct buf *buf = NULL;
    struct slice body = take_pending(stream, &buf);
    stream->events->on_body(stream, (char *)body.ptr, body.len);
    consume(stream, body.len, !buf);
    buf_give(bufs_of(stream), &buf);
}

void http2_stream_pull(struct http2_stream *stream)
{
    stream->is_pulled = true;
}

size_t http2_stream_take(struct http2_stream *stream, char *data, size_t cap)
{
    struct buf *in = stream->in;
    size_t len = in ? buf_len(in) : 0, n = len < cap ? len : cap;
    if (n == 0)
        return 0;
    memcpy(data, in->data + in->start, n);
    in->start += (uint32_t)n;
    if (n == len)
        buf_give(bufs_of(stream), &stream->in);
    consume(stream, n, n == len);
    return n;
}

static void deliver_end(struct http2_stream *stream)
{
    struct http2_client_thread *thread = stream->client->thread;
    static const struct h1_limits limits = {.head_bytes = HTTP2_CLIENT_HEAD_BYTES,
                                            .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};
    enum http_reject why = HTTP_REJECT_NONE;
    if (!stream->has_trailers) {
        stream->events->on_end(stream, NULL);
        return;
    }
    enum http2_head_result result =
        http2_head_finish(&stream->trailers, thread->bufs, true, &limits, HTTP_GET, &thread->trailers, &why);
    if (result == HTTP2_HEAD_OK) {
        stream->events->on_end(stream, &thread->trailers);
        return;
    }
    invalidate(stream, result, why);
    deliver_fail(stream);
}

void http2_stream_deliver(struct http2_stream *stream)
{
    list_remove(&stream->touched);
    if (stream->is_delivering) /* by its own events: the call under way goes on */
        return;
    stream->is_delivering = true;
    if (stream->got_room && !stream->fail) {
        stream->got_room = false;
        stream->events->on_room(stream);
    }
    if (stream->owner && stream->fail) {
        deliver_fail(stream);
    } else {
        if (stream->owner && stream->has_head && !stream->head_delivered)
            deliver_head(stream);
        if (stream->owner && stream->is_pulled) {
            stream_keep_held(stream);
            stream->events->on_ready(stream);
        } else if (stream->owner && stream->head_delivered && has_pending(stream) &&
                   stream->events->can_take(stream)) {
            deliver_body(stream);
        }
        /* The end is small: it goes along with what was too much just now. */
        if (stream->owner && !stream->is_pulled && stream->head_delivered && stream->in_ended &&
            !stream->fail && !has_pending(stream))
            deliver_end(stream);
    }
    stream->is_delivering = false;
    if (stream->held.len) /* the buffer of the read will be used again */
        stream_keep_held(stream);
    stream_settle(stream);
}
