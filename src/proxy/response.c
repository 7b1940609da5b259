/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/response.h"

#include "core/clock.h"
#include "guard/security.h"
#include "proxy/access.h"
#include "proxy/affinity.h"
#include "proxy/answer.h"
#include "proxy/forward.h"
#include "proxy/retry.h"
#include "proxy/tunnel.h"
#include "transform/rewrite.h"

const struct h1_limits response_limits = {.head_bytes = WORKER_HEAD_BYTES,
                                          .uri_bytes = WORKER_HEAD_BYTES,
                                          .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};

static struct target_counters *target_counters(struct exchange *x)
{
    return &x->backend->workers[x->worker->index].counters;
}

/* What the answer says of the target: of a call its grpc-status, which mostly comes with the trailers. */
static void note_answer(struct exchange *x, struct http_message *msg)
{
    x->grpc_status = x->is_grpc ? (uint8_t)grpc_status_in(msg) : GRPC_STATUS_UNKNOWN;
    if (x->grpc_status != GRPC_STATUS_UNKNOWN)
        forward_note(x, grpc_sign_of((enum grpc_status)x->grpc_status));
    else if (!x->is_grpc || msg->status != 200 || !x->answer_has_end)
        forward_note(x, passive_sign_of(msg->status));
}

static void note_trailers(struct exchange *x, const struct http_message *trailers)
{
    if (!x->is_grpc || x->grpc_status != GRPC_STATUS_UNKNOWN || x->status != 200)
        return;
    x->grpc_status = (uint8_t)grpc_status_in((struct http_message *)trailers);
    forward_note(x, grpc_sign_of((enum grpc_status)x->grpc_status));
}

uint32_t response_patience_ms(const struct exchange *x)
{
    /* A call that has begun to be answered is a stream, silent when there is nothing to say. */
    return x->is_grpc && x->has_answer_head ? x->listener->config->timeouts.tunnel_ms
                                            : x->group->config->timeouts.response_ms;
}

void response_end(struct exchange *x, bool in_order, const struct http_message *trailers)
{
    struct scratch scratch = {x->worker->scratch, x->worker->scratch + WORKER_SCRATCH_BYTES};
    struct transfer_pieces pieces;
    if (!x->has_answer_head) {
        forward_attempt_failed(x, in_order ? END_UPSTREAM_CLOSED : END_UPSTREAM_RESET);
        return;
    }
    if (!in_order || !transfer_end(&x->response, trailers, &scratch, &pieces)) {
        counter_add(&target_counters(x)->resets, 1);
        forward_note(x, PASSIVE_GATEWAY);
        exchange_abort(x, END_TRUNCATED);
        return;
    }
    note_trailers(x, trailers);
    if (pieces.n && client_write(x->client, pieces.iov, pieces.n) == CONN_FAILED) {
        exchange_abort(x, END_CLIENT_ABORT);
        return;
    }
    if (pieces.trailers)
        x->client->downstream->trailers(x, pieces.trailers);
    exchange_answered(x);
}

static bool feed_body(struct exchange *x, const struct iovec *head, char *data, size_t len)
{
    struct worker *worker = x->worker;
    struct scratch scratch = {worker->scratch + WORKER_HEAD_BYTES * 2,
                              worker->scratch + WORKER_SCRATCH_BYTES};
    struct transfer_pieces pieces;
    struct iovec iov[1 + TRANSFER_PIECES];
    enum http_reject why = HTTP_REJECT_NONE;
    size_t used;
    int n = 0;
    if (transfer_feed(&x->response, data, len, &response_limits, &worker->bufs, &scratch, worker->trailers,
                      &used, &pieces, &why) != TRANSFER_OK) {
        counter_add(&target_counters(x)->bad_responses, 1);
        forward_note(x, PASSIVE_GATEWAY);
        if (x->answer_begun)
            exchange_abort(x, END_TRUNCATED);
        else
            exchange_fail(x, END_BAD_RESPONSE);
        return false;
    }
    if (used < len)
        x->upstream_reusable = false; /* bytes that nobody asked for (case C-011) */
    if (head && head->iov_len)
        iov[n++] = *head;
    for (int i = 0; i < pieces.n; i++)
        iov[n++] = pieces.iov[i];
    x->answer_begun |= head != NULL;
    x->client->conn.is_last_write = x->response.is_done && x->client->close_after;
    if (n > 0 && client_write(x->client, iov, n) == CONN_FAILED) {
        exchange_abort(x, END_CLIENT_ABORT);
        return false;
    }
    if (x->response.is_done) {
        if (pieces.trailers)
            x->client->downstream->trailers(x, pieces.trailers);
        exchange_answered(x);
        return false;
    }
    return true;
}

/* The framing towards the client and whether its connection ends with this answer. */
static void decide_delivery(struct exchange *x, struct http_message *msg)
{
    struct client *client = x->client;
    bool is_open_ended = msg->framing == HTTP_BODY_CHUNKED || msg->framing == HTTP_BODY_UNTIL_CLOSE;
    bool has_frames = client->downstream->has_frames;
    bool emit_chunked = is_open_ended && !has_frames && x->client_minor >= 1;
    x->upstream_reusable = msg->keep_alive && msg->framing != HTTP_BODY_UNTIL_CLOSE;
    transfer_init(&x->response, msg, emit_chunked, x->te_trailers || has_frames);
    if (x->answer_has_end)
        transfer_await_end(&x->response);
    if (is_open_ended)
        msg->framing = emit_chunked ? HTTP_BODY_CHUNKED : HTTP_BODY_UNTIL_CLOSE;
    if (!has_frames &&
        (!x->keep_alive || x->worker->says_close || client->listener->holds ||
         msg->framing == HTTP_BODY_UNTIL_CLOSE || (x->expects_continue && !x->request.is_done)))
        client->close_after = true;
}

static bool write_head(struct exchange *x, struct http_message *msg, struct iovec *head)
{
    struct worker *worker = x->worker;
    struct scratch values = {worker->scratch + WORKER_HEAD_BYTES * 2, worker->scratch + WORKER_SCRATCH_BYTES};
    if (x->group->affinity && !affinity_note_answer(x, msg, &values))
        return false;
    if (x->limit_told && !access_note_answer(x, msg, &values))
        return false;
    if (x->rule && !rewrite_response(x->rule, msg, &values))
        return false;
    if (iso_unlikely(x->listener->n_security) && !security_add(x->listener, msg))
        return false;
    if (!http_message_find(msg, HTTP_FIELD_DATE) &&
        !http_message_add(msg, SLICE("Date"), worker_date(worker)))
        return false;
    return x->client->downstream->head(x, msg, &values, head);
}

static void count_answer(struct exchange *x, struct http_message *msg)
{
    unsigned status = msg->status;
    struct target_counters *counters = target_counters(x);
    x->answer_ns = x->worker->loop.now_ns;
    counter_add(&(&counters->requests_1xx)[status / 100 - 1], 1);
    histogram_add(&counters->latency, (x->answer_ns - x->attempt_ns) / NS_PER_US);
    note_answer(x, msg);
}

static void upgrade(struct exchange *x, struct http_message *msg, char *data, size_t len)
{
    struct iovec head;
    if (!x->wants_upgrade || !msg->upgrade) {
        counter_add(&target_counters(x)->bad_responses, 1);
        exchange_fail(x, END_BAD_UPGRADE);
        return;
    }
    count_answer(x, msg);
    x->has_answer_head = x->answer_begun = true;
    x->status = msg->status;
    if (!write_head(x, msg, &head))
        exchange_fail(x, END_RESPONSE_HEAD_TOO_LARGE);
    else if (head.iov_len && client_write(x->client, &head, 1) == CONN_FAILED)
        exchange_abort(x, END_CLIENT_ABORT);
    else
        tunnel_start(x, slice_of(data, len));
}

bool response_head(struct exchange *x, struct http_message *msg, char *data, size_t len)
{
    struct iovec head;
    if (msg->status == 101) {
        upgrade(x, msg, data, len);
        return false;
    }
    if (x->wants_upgrade && x->client->downstream->has_frames && msg->status < 300) {
        /* To an extended CONNECT any 2xx would say that the tunnel is there (RFC 8441 5). */
        counter_add(&target_counters(x)->bad_responses, 1);
        exchange_fail(x, END_BAD_UPGRADE);
        return false;
    }
    bool is_gateway_error = msg->status >= 502 && msg->status <= 504;
    count_answer(x, msg);
    if (is_gateway_error && retry_take(x, END_NORMAL)) {
        exchange_drop_upstream(x, false);
        retry_go(x);
        return false;
    }
    x->has_answer_head = true;
    x->status = msg->status;
    decide_delivery(x, msg);
    if (!write_head(x, msg, &head)) {
        exchange_fail(x, END_RESPONSE_HEAD_TOO_LARGE);
        return false;
    }
    return feed_body(x, &head, data, len);
}

bool response_interim(struct exchange *x, struct http_message *msg)
{
    struct worker *worker = x->worker;
    struct scratch values = {worker->scratch + WORKER_HEAD_BYTES * 2, worker->scratch + WORKER_SCRATCH_BYTES};
    struct iovec head;
    if (++x->n_interim > EXCHANGE_INTERIM_MAX) {
        exchange_fail(x, END_BAD_RESPONSE);
        return false;
    }
    if (msg->status == 100)
        x->expects_continue = false;
    msg->framing = HTTP_BODY_NONE;
    if (x->client->downstream->head(x, msg, &values, &head) && head.iov_len &&
        client_write(x->client, &head, 1) == CONN_FAILED) {
        exchange_abort(x, END_CLIENT_ABORT);
        return false;
    }
    return true;
}

bool response_body(struct exchange *x, char *data, size_t len)
{
    return feed_body(x, NULL, data, len);
}

void response_reject(struct exchange *x, enum http_reject why)
{
    counter_add(&target_counters(x)->bad_responses, 1);
    forward_note(x, PASSIVE_GATEWAY);
    x->upstream_reusable = false;
    exchange_fail(x, http_reject_status(why) == 431 ? END_RESPONSE_HEAD_TOO_LARGE : END_BAD_RESPONSE);
}

void response_pump(struct exchange *x)
{
    if (x->carrier && !x->is_connecting && !x->answer_done)
        x->carrier->read(x);
}

void response_due(struct exchange *x)
{
    bool waits_for_body = !x->request.is_done && !x->has_answer_head && !x->carrier->is_full(x);
    bool waits_for_reader = x->client->conn.out || x->in_pipe;
    if (waits_for_body || waits_for_reader) { /* the client's doing: its own timer decides */
        forward_set_deadline(x, response_patience_ms(x));
        return;
    }
    if (!x->has_answer_head && retry_out_of_patience(x))
        return;
    counter_add(&target_counters(x)->response_timeouts, 1);
    forward_note(x, PASSIVE_GATEWAY);
    if (x->has_answer_head)
        exchange_abort(x, END_TRUNCATED_TIMEOUT);
    else
        exchange_fail(x, END_RESPONSE_TIMEOUT);
}
