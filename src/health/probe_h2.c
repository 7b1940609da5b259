/* SPDX-License-Identifier: Apache-2.0 */
#include "health/probe_h2.h"

#include "http1/parse.h"

/* A HealthCheckResponse is two bytes long; more than this is none. */
enum { GRPC_MESSAGE_MAX = 256, GRPC_PREFIX_BYTES = 5, GRPC_SERVING = 1 };

void probe_h2_add_grpc_fields(struct text *text)
{
    text_add(text, SLICE("Content-Type: application/grpc\r\nTE: trailers\r\nConnection: TE\r\n"
                         "Transfer-Encoding: chunked\r\n"));
}

/* HealthCheckRequest { string service = 1; } behind the prefix of a message. */
void probe_h2_add_grpc_message(struct text *text, struct slice service)
{
    size_t len = service.len ? service.len + 2 : 0;
    iso_assert(service.len < 128); /* validation bounds it: the length is one byte */
    const char prefix[] = {0, 0, 0, 0, (char)len, 0x0a, (char)service.len};
    text_add(text, slice_of(prefix, service.len ? sizeof(prefix) : GRPC_PREFIX_BYTES));
    text_add(text, service);
}

static bool read_varint(struct slice *rest, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; rest->len && shift < 64; shift += 7) {
        unsigned char byte = (unsigned char)rest->ptr[0];
        *rest = slice_of(rest->ptr + 1, rest->len - 1);
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* HealthCheckResponse { ServingStatus status = 1; } in one message without compression. */
static bool is_serving(struct slice bytes)
{
    enum { VARINT = 0, BYTES = 2 };
    uint64_t key, value, status = 0;
    if (bytes.len < GRPC_PREFIX_BYTES || bytes.ptr[0] != 0)
        return false;
    struct slice rest = slice_of(bytes.ptr + GRPC_PREFIX_BYTES, bytes.len - GRPC_PREFIX_BYTES);
    while (rest.len) {
        if (!read_varint(&rest, &key) || !read_varint(&rest, &value))
            return false;
        if (key == (1 << 3 | VARINT))
            status = value;
        else if ((key & 7) == BYTES && value <= rest.len)
            rest = slice_of(rest.ptr + value, rest.len - value);
        else if ((key & 7) != VARINT)
            return false;
    }
    return status == GRPC_SERVING;
}

static bool is_grpc(const struct probe *probe)
{
    return probe->plan->check.type == CONFIG_HEALTH_GRPC;
}

static void decide(struct probe *probe, enum health_reason reason)
{
    if (!probe->is_decided)
        probe->decision = reason;
    probe->is_decided = true;
}

static bool always(struct http2_stream *stream)
{
    return true;
}

static void on_interim(struct http2_stream *stream, struct http_message *msg) {}

static void take_body(struct probe *probe, const char *data, size_t len)
{
    enum health_reason reason;
    if (probe->is_decided || len == 0)
        return;
    if (!is_grpc(probe)) {
        if (answer_feed(&probe->answer, data, len, &reason))
            decide(probe, reason);
    } else if (probe->answer.len + len > GRPC_MESSAGE_MAX) {
        decide(probe, HEALTH_REASON_INVALID);
    } else {
        answer_keep(&probe->answer, data, len);
    }
}

static void on_head(struct http2_stream *stream, struct http_message *msg, char *data, size_t len)
{
    struct probe *probe = stream->owner;
    enum health_reason reason;
    bool is_decided = answer_head(&probe->answer, msg, &reason);
    if (is_grpc(probe)) {
        const struct http_field *status = http_message_find_name(msg, SLICE("grpc-status"));
        if (msg->status != 200)
            decide(probe, HEALTH_REASON_STATUS);
        else if (status) /* trailers alone: there is no message */
            decide(probe, HEALTH_REASON_NOT_SERVING);
    } else if (is_decided) {
        decide(probe, reason);
    }
    take_body(probe, data, len);
}

static void on_body(struct http2_stream *stream, char *data, size_t len)
{
    take_body(stream->owner, data, len);
}

static void on_end(struct http2_stream *stream, struct http_message *trailers)
{
    struct probe *probe = stream->owner;
    if (!is_grpc(probe)) {
        decide(probe, answer_end(&probe->answer));
        return;
    }
    const struct http_field *status =
        trailers ? http_message_find_name(trailers, SLICE("grpc-status")) : NULL;
    bool is_ok = status && slice_eq(http_field_value(status), SLICE("0"));
    bool serves = is_ok && is_serving(slice_of(probe->answer.bytes, probe->answer.len));
    decide(probe, serves ? HEALTH_REASON_OK : HEALTH_REASON_NOT_SERVING);
}

static void on_fail(struct http2_stream *stream, enum http2_fail fail, enum http_reject why)
{
    decide(stream->owner, fail == HTTP2_FAIL_INVALID ? HEALTH_REASON_INVALID : HEALTH_REASON_CLOSED);
}

static const struct http2_stream_events events = {
    .can_take = always,
    .on_interim = on_interim,
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
    .on_fail = on_fail,
    .on_room = NULL,
};

bool probe_h2_begin(struct probe *probe)
{
    static const struct h1_limits limits = {.head_bytes = 32 << 10, .uri_bytes = 32 << 10, .fields = 64};
    const struct probe_plan *plan = probe->plan;
    struct slice scheme = plan->tls ? SLICE("https") : SLICE("http"), message = plan->message;
    struct http_message msg;
    enum http_reject why;
    size_t used;
    http2_client_init(&probe->client, probe->http2);
    if (!http2_client_open(&probe->client, probe->http2, &probe->conn))
        return false;
    probe->is_http2 = true;
    probe->stream = http2_stream_new(&probe->client, &events, probe);
    return probe->stream &&
           h1_parse_request(plan->request.ptr, plan->request.len, &limits, &msg, &used, &why) ==
               H1_COMPLETE &&
           http2_stream_request(probe->stream, &msg, scheme, (struct slice){0}, message.len == 0) &&
           (message.len == 0 || http2_stream_send(probe->stream, message, true, NULL)) &&
           http2_client_flush(&probe->client);
}

bool probe_h2_read(struct probe *probe, uint64_t now_ns, enum health_reason *reason)
{
    char data[16 << 10];
    bool is_usable = true;
    while (is_usable && probe->conn.can_read && !probe->is_decided) {
        size_t n = 0;
        enum conn_result result = conn_read(&probe->conn, data, sizeof(data), &n);
        if (result == CONN_BLOCKED)
            break;
        is_usable = result == CONN_OK && http2_client_feed(&probe->client, data, n, now_ns);
    }
    if (!probe->is_decided && (!is_usable || !http2_client_flush(&probe->client)))
        decide(probe, HEALTH_REASON_CLOSED);
    *reason = probe->decision;
    return probe->is_decided;
}

void probe_h2_end(struct probe *probe)
{
    if (!probe->is_http2)
        return;
    probe->is_http2 = false;
    if (probe->stream)
        http2_stream_release(&probe->stream);
    if (!probe->client.is_broken) {
        http2_client_say_goodbye(&probe->client);
        http2_client_flush(&probe->client);
    }
    http2_client_close(&probe->client);
}
