/* SPDX-License-Identifier: Apache-2.0 */
/* Answers over a stream of an HTTP/2 connection: the head is handed to HTTP/2 at once, the body waits in the
 * stream until there is room for it, and where it ends is told by frames. */
#include "downstream/answers.h"

#include "core/print.h"
#include "downstream/stream.h"

static struct stream *of_client(struct client *client)
{
    return container_of(client, struct stream, client);
}

/* The 101 of a target says that the extended CONNECT has come through (RFC 8441 5). */
static void make_connect_answer(struct http_message *msg)
{
    msg->status = 200;
    msg->framing = HTTP_BODY_NONE;
    http_message_drop(msg, HTTP_FIELD_UPGRADE);
    http_message_drop_name(msg, SLICE("Sec-WebSocket-Accept"));
}

static bool h2_head(struct exchange *x, struct http_message *msg, struct scratch *values, struct iovec *head)
{
    struct stream *stream = of_client(x->client);
    bool is_tunnel = msg->status == 101;
    bool ends = msg->status >= 200 && x->response.is_done;
    *head = (struct iovec){0};
    if (is_tunnel)
        make_connect_answer(msg);
    size_t n = http2_server_answer(stream->connection->server, stream->id, msg, ends, values);
    if (n == 0)
        return false;
    x->answer_begun |= msg->status >= 200;
    x->sent_bytes += n;
    client_h2_flush_soon(stream->connection);
    return true;
}

static void h2_trailers(struct exchange *x, const struct http_message *trailers)
{
    struct stream *stream = of_client(x->client);
    if (!stream->trailers)
        stream->trailers = stream_keep_lines(x->worker, trailers);
}

static const struct http_message *h2_request_trailers(struct client *client)
{
    struct stream *stream = of_client(client);
    return stream_parse_lines(stream, stream->in_trailers);
}

static bool put_answer(struct http_message *msg, const struct h1_answer *how, struct slice body)
{
    bool ok = true;
    http_message_init(msg, true);
    msg->status = (uint16_t)how->status;
    bool is_bodyless = how->status == 204 || how->status == 304;
    msg->framing = is_bodyless ? HTTP_BODY_NONE : HTTP_BODY_LENGTH;
    msg->content_length = body.len;
    if (how->date.len)
        ok = http_message_add(msg, SLICE("date"), how->date);
    if (!is_bodyless && h1_answer_content_type(how, body).len)
        ok = ok && http_message_add(msg, SLICE("content-type"), h1_answer_content_type(how, body));
    if (how->location.len)
        ok = ok && http_message_add(msg, SLICE("location"), how->location);
    for (uint32_t i = 0; i < how->n_fields; i++)
        ok = ok && http_message_add(msg, how->fields[i].name, how->fields[i].value);
    for (uint32_t i = 0; i < how->n_more; i++)
        if (!h1_answer_names(how, how->more[i].name))
            ok = ok && http_message_add(msg, how->more[i].name, how->more[i].value);
    return ok;
}

static enum conn_result h2_answer(struct client *client, const struct h1_answer *how, size_t *n)
{
    struct stream *stream = of_client(client);
    struct worker *worker = stream->client.listener->worker;
    struct http_message *msg = worker->msg;
    char names[4096], json[H1_ANSWER_JSON_MAX], retry[PRINT_U64_MAX];
    struct scratch scratch = {names, names + sizeof(names)};
    struct slice body = h1_answer_body(how, json);
    bool ok = put_answer(msg, how, body);
    if (how->retry_after_s)
        ok = ok && http_message_add(msg, SLICE("retry-after"),
                                    slice_of(retry, print_u64(retry, how->retry_after_s)));
    bool ends = body.len == 0 || how->head;
    *n = 0;
    if (!ok || stream->is_closed)
        return CONN_FAILED;
    size_t head = http2_server_answer(stream->connection->server, stream->id, msg, ends, &scratch);
    if (head == 0)
        return CONN_FAILED;
    *n = head + (ends ? 0 : body.len);
    if (client->exchange)
        client->exchange->sent_bytes += head;
    client_h2_flush_soon(stream->connection);
    return ends ? CONN_OK : client_write(client, &(struct iovec){(char *)body.ptr, body.len}, 1);
}

/* What the answer is followed by is up to HTTP/2: its end, and a reset when the request goes on. */
static void h2_next(struct client *client)
{
    stream_finish(of_client(client));
}

static enum http2_code code_of(unsigned end)
{
    switch (end) {
    case END_CLIENT_ABORT:
    case END_CLIENT_ABORT_BODY:
    case END_CLIENT_READS_SLOWLY:
    case END_TUNNEL_IDLE:
        return HTTP2_CANCEL;
    case END_BAD_BODY:
        return HTTP2_PROTOCOL_ERROR;
    default:
        return HTTP2_INTERNAL_ERROR;
    }
}

static void h2_cut(struct client *client, unsigned end)
{
    struct stream *stream = of_client(client);
    bool is_in_order = end == END_TUNNEL && stream->is_over && stream->in_ended;
    if (!is_in_order)
        stream_reset(stream, end == END_TUNNEL ? HTTP2_CANCEL : code_of(end));
}

static const struct conn *h2_transport(const struct client *client)
{
    return &container_of(client, struct stream, client)->connection->client->conn;
}

static size_t h2_room(const struct client *client)
{
    const struct stream *stream = container_of(client, struct stream, client);
    return client->conn.out ? 0 : client_h2_room(stream->connection, stream->id);
}

const struct downstream downstream_h2 = {
    .has_frames = true,
    .protocol = "HTTP/2",
    .head = h2_head,
    .trailers = h2_trailers,
    .request_trailers = h2_request_trailers,
    .room = h2_room,
    .answer = h2_answer,
    .next = h2_next,
    .cut = h2_cut,
    .transport = h2_transport,
};
