/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/server_internal.h"

#include <arpa/inet.h>
#include <stdlib.h>

enum { COPIED_BYTES = 2048 /* less is cheaper to copy than to be a piece of its own */ };

/* At the end of the answer; the last DATA frame then leaves the stream open for the trailers. */
static bool submit_trailers(struct http2_server *server, int32_t id, void *stream)
{
    const struct http_message *msg = server->handler->trailers(server->owner, stream);
    static const size_t room = 64 * 1024;
    struct http2_fields list;
    if (!msg)
        return false;
    char *names = malloc(room);
    struct scratch scratch = {names, names + (names ? room : 0)};
    bool ok = names && http2_fields_of_trailers(&list, msg, &scratch) && list.n > 0 &&
              nghttp2_submit_trailer(server->session, id, list.nv, list.n) == 0;
    free(names);
    return ok;
}

static ssize_t read_body(nghttp2_session *session, int32_t id, uint8_t *buf, size_t length, uint32_t *flags,
                         nghttp2_data_source *source, void *user)
{
    struct http2_server *server = user;
    void *stream = server_stream(server, id);
    bool is_last = false, stays;
    if (!stream)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    struct slice ready = server->handler->peek(server->owner, stream, &is_last, &stays);
    if (ready.len == 0 && !is_last)
        return NGHTTP2_ERR_DEFERRED;
    size_t n = ready.len < length ? ready.len : length;
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (is_last && n == ready.len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (submit_trailers(server, id, stream))
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    }
    return (ssize_t)n;
}

/* Bytes that stay where they are until the output has been written are pieces of it, others are copied. */
static void put_piece(struct http2_server *server, struct slice bytes)
{
    struct http2_output *output = server->output;
    output->pieces[output->n++] = (struct iovec){server->run, (size_t)(server->out_at - server->run)};
    output->pieces[output->n++] = (struct iovec){(char *)bytes.ptr, bytes.len};
    server->run = server->out_at;
}

int server_put_body(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header, size_t length,
                    nghttp2_data_source *source, void *user)
{
    struct http2_server *server = user;
    void *stream = server_stream(server, frame->hd.stream_id);
    bool is_last, stays = false;
    if (!stream)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    struct slice ready =
        length ? server->handler->peek(server->owner, stream, &is_last, &stays) : (struct slice){0};
    iso_assert(ready.len >= length);
    stays = stays && length >= COPIED_BYTES && server->output->most > 1;
    bool has_room = stays ? server->output->most - server->output->n >= 3
                          : (size_t)(server->out_end - server->out_at) >= HTTP2_FRAME_HEADER_BYTES + length;
    if (!has_room)
        return NGHTTP2_ERR_WOULDBLOCK;
    memcpy(server->out_at, header, HTTP2_FRAME_HEADER_BYTES);
    server->out_at += HTTP2_FRAME_HEADER_BYTES;
    if (stays) {
        put_piece(server, slice_of(ready.ptr, length));
    } else if (length) {
        memcpy(server->out_at, ready.ptr, length);
        server->out_at += length;
    }
    if (length)
        server->handler->took(server->owner, stream, length);
    return 0;
}

size_t http2_server_answer(struct http2_server *server, int32_t id, const struct http_message *msg, bool ends,
                           struct scratch *scratch)
{
    struct http2_fields list;
    const nghttp2_data_provider body = {.read_callback = read_body};
    if (!http2_fields_of_response(&list, msg, scratch))
        return 0;
    int err =
        msg->status < 200
            ? nghttp2_submit_headers(server->session, NGHTTP2_FLAG_NONE, id, NULL, list.nv, list.n, NULL)
            : nghttp2_submit_response(server->session, id, list.nv, list.n, ends ? NULL : &body);
    return err ? 0 : list.bytes;
}

void http2_server_resume(struct http2_server *server, int32_t id)
{
    nghttp2_session_resume_data(server->session, id);
}

/* nghttp2 would end a connection for one stream too many; so it is told of no limit, the client of ours in
 * the first SETTINGS, and what exceeds it is refused (RFC 9113 5.1.2; case C-067). */
static void put_max_streams(struct http2_server *server, char *frame, size_t len)
{
    for (size_t at = HTTP2_FRAME_HEADER_BYTES; at + 6 <= len; at += 6) {
        uint32_t value = htonl(server->max_streams);
        if (frame[at] == 0 && frame[at + 1] == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
            memcpy(frame + at + 2, &value, sizeof(value));
    }
}

void http2_server_gather(struct http2_server *server, struct http2_output *output)
{
    iso_assert(output->cap >= HTTP2_OUT_BYTES && output->most >= 1);
    if (server->pace.wants_ping)
        nghttp2_submit_ping(server->session, NGHTTP2_FLAG_NONE, server_pace_ping);
    server->pace.wants_ping = false;
    output->n = 0;
    server->output = output;
    server->run = server->out_at = output->out;
    server->out_end = output->out + output->cap;
    while (server->out_end - server->out_at >= HTTP2_OUT_BYTES) {
        const uint8_t *data;
        ssize_t n = nghttp2_session_mem_send(server->session, &data);
        if (n <= 0)
            break;
        iso_assert(n <= server->out_end - server->out_at);
        memcpy(server->out_at, data, (size_t)n);
        if (iso_unlikely(!server->has_sent_settings))
            put_max_streams(server, server->out_at, (size_t)n);
        server->has_sent_settings = true;
        server->out_at += n;
    }
    if (server->out_at > server->run)
        output->pieces[output->n++] = (struct iovec){server->run, (size_t)(server->out_at - server->run)};
    server->output = NULL;
    server->run = server->out_at = server->out_end = NULL;
}

size_t http2_server_room(const struct http2_server *server, int32_t id)
{
    if (server->output || server->is_receiving || nghttp2_session_get_outbound_queue_size(server->session))
        return 0;
    int32_t of_stream = nghttp2_session_get_stream_remote_window_size(server->session, id);
    int32_t of_connection = nghttp2_session_get_remote_window_size(server->session);
    int32_t room = of_stream < of_connection ? of_stream : of_connection;
    return room > 0 ? (size_t)room : 0;
}
