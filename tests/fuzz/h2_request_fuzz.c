/* SPDX-License-Identifier: Apache-2.0 */
/* The boundary from HTTP/2 to HTTP/1.1. The input is what a client sends behind its preface, or, when its
 * first byte is even, a header list: each field as two lengths of a byte, then name and value. Whatever
 * request comes out is written as HTTP/1.1 and read again as its target would: it must be one request, whole,
 * with the same method, target, host and fields, and a body exactly as the frames have one. The connection
 * answers, so that the other half runs too, and what it sends must be frames. */
#include "http1/write.h"
#include "http2/server.h"
#include "http2/walk.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const struct h1_limits limits = {.head_bytes = 16384, .uri_bytes = 8192, .fields = 100};
static const struct h1_limits targets_limits = {.head_bytes = 1 << 20, .uri_bytes = 1 << 20, .fields = 256};
static struct http_message msg, trailers, again;
static char out[128 << 10], sent[64 << 10];
static struct buf_pool bufs;
static struct http2_server *server;

struct stream {
    int32_t id;
    bool has_body, ended, is_answered;
    struct http2_window window;
};
static struct stream streams[256];
static size_t n_streams;

static uint32_t count(const struct http_message *m, enum http_field_id id)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_fields; i++)
        n += m->fields[i].id == id && !(m->fields[i].flags & HTTP_FIELD_DROP);
    return n;
}

static uint32_t kept(const struct http_message *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_fields; i++)
        n += !(m->fields[i].flags & HTTP_FIELD_DROP);
    return n;
}

/* What a target reads must be what we read. */
static void check_request(bool ends)
{
    enum http_reject why;
    size_t used, n = h1_write_request(out, sizeof(out), &msg);
    iso_assert(n > 0);
    iso_assert(h1_parse_request(out, n, &targets_limits, &again, &used, &why) == H1_COMPLETE && used == n);
    iso_assert(slice_eq(again.method_text, msg.method_text) && slice_eq(again.target, msg.target));
    iso_assert(slice_eq(again.authority, msg.authority) && count(&again, HTTP_FIELD_HOST) == 1);
    iso_assert(again.framing == msg.framing && again.content_length == msg.content_length);
    iso_assert(kept(&again) == kept(&msg) && again.keep_alive && !again.upgrade);
    iso_assert(msg.target.ptr[0] == '/' || slice_eq(msg.target, SLICE("*")));
    if (ends)
        iso_assert(msg.framing == HTTP_BODY_NONE || (msg.framing == HTTP_BODY_LENGTH && !msg.content_length));
    for (uint32_t i = 0; i < msg.n_fields; i++) {
        struct slice name = http_field_name(&msg.fields[i]), value = http_field_value(&msg.fields[i]);
        iso_assert(!memchr(name.ptr, '\n', name.len) && !(value.len && memchr(value.ptr, '\n', value.len)));
        iso_assert(!(value.len && memchr(value.ptr, '\0', value.len)));
    }
}

static void answer(struct stream *stream)
{
    char room[256];
    struct scratch scratch = {room, room + sizeof(room)};
    struct http_message response = {.is_response = true, .status = 200, .framing = HTTP_BODY_CHUNKED};
    stream->is_answered = true;
    http2_server_answer(server, stream->id, &response, false, &scratch);
}

static void *on_request(void *owner, int32_t id, struct http_message *m, size_t head_bytes, bool ends,
                        struct slice protocol)
{
    check_request(ends);
    if (n_streams == iso_countof(streams))
        return NULL;
    struct stream *stream = &streams[n_streams++];
    *stream = (struct stream){.id = id, .has_body = !ends, .ended = ends};
    http2_server_window_init(&stream->window);
    if (id % 4 == 1)
        answer(stream);
    return stream;
}

static void *on_refused(void *owner, int32_t id, enum http_reject why, bool ends)
{
    iso_assert(http_reject_status(why) >= 400);
    return NULL;
}

static void on_data(void *owner, void *user, char *data, size_t len)
{
    struct stream *stream = user;
    iso_assert(stream->has_body && !stream->ended);
    http2_server_consume(server, stream->id, &stream->window, len, len & 1);
}

static void on_ended(void *owner, void *user, const struct http_message *m)
{
    struct stream *stream = user;
    iso_assert(stream->has_body && !stream->ended);
    stream->ended = true;
    if (!stream->is_answered)
        answer(stream);
}

static void on_closed(void *owner, void *user, bool by_client, uint32_t code)
{
    ((struct stream *)user)->has_body = false;
}

static struct slice on_peek(void *owner, void *user, bool *is_last, bool *stays)
{
    *is_last = true;
    return SLICE("hello");
}

static void on_took(void *owner, void *user, size_t n) {}

static void on_answered(void *owner, void *user) {}

static const struct http_message *on_trailers(void *owner, void *user)
{
    return NULL;
}

static void on_refusal(void *owner, enum http2_refusal what) {}

static void on_flood(void *owner, enum http2_flood what)
{
    iso_assert(what < HTTP2_FLOODS);
}

static void on_pong(void *owner) {}

static const struct http2_server_handler handler = {
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

static void drain(struct http2_walk *walk)
{
    struct iovec pieces[8];
    struct http2_output output = {sent, sizeof(sent), pieces, 0, 1 + (int)(n_streams & 7)};
    for (http2_server_gather(server, &output); output.n; http2_server_gather(server, &output))
        for (int i = 0; i < output.n; i++)
            for (size_t at = 0; http2_walk_next(walk, pieces[i].iov_base, pieces[i].iov_len, &at);)
                iso_assert(http2_walk_type(walk) <= 9 && walk->left <= 16384);
}

static void run_connection(const uint8_t *data, size_t len)
{
    static const char begin[] = HTTP2_PREFACE "\0\0\0\4\0\0\0\0\0";
    struct http2_walk walk = {0};
    const struct http2_server_options options = {.handler = &handler,
                                                 .limits = &limits,
                                                 .bufs = &bufs,
                                                 .msg = &msg,
                                                 .trailers = &trailers,
                                                 .max_streams = 20};
    n_streams = 0;
    server = http2_server_new(&options);
    iso_assert(server != NULL);
    char *copy = malloc(sizeof(begin) - 1 + len);
    iso_assert(copy != NULL);
    memcpy(copy, begin, sizeof(begin) - 1);
    memcpy(copy + sizeof(begin) - 1, data, len);
    size_t total = sizeof(begin) - 1 + len, cut = len % 61 + 1;
    for (size_t at = 0; at < total && !http2_server_is_over(server); at += cut) {
        http2_server_receive(server, copy + at, total - at < cut ? total - at : cut, at);
        if (at % 3 == 0)
            drain(&walk);
    }
    drain(&walk);
    http2_server_free(&server);
    free(copy);
}

static void run_list(const uint8_t *data, size_t len)
{
    struct http2_head head;
    enum http_reject why;
    bool ends = len & 1;
    http2_head_init(&head, HTTP2_REQUEST, limits.head_bytes);
    while (len >= 2 && 2u + data[0] + data[1] <= len) {
        size_t name = data[0], value = data[1];
        http2_head_add(&head, &bufs, slice_of((const char *)data + 2, name),
                       slice_of((const char *)data + 2 + name, value));
        data += 2 + name + value;
        len -= 2 + name + value;
    }
    if (http2_head_finish(&head, &bufs, ends, &limits, HTTP_GET, &msg, &why) == HTTP2_HEAD_OK)
        check_request(ends);
    http2_head_fini(&head, &bufs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (len == 0)
        return 0;
    if (data[0] & 1)
        run_connection(data + 1, len - 1);
    else
        run_list(data + 1, len - 1);
    iso_assert(bufs.n_lent == 0);
    return 0;
}
