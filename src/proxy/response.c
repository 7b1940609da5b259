/* SPDX-License-Identifier: Apache-2.0 */
/* The answer on its way from the target to the client: interim answers, the final head, the body. The target
 * is read only as fast as the client takes it. A large body of known length that nothing needs to look at
 * goes through a pipe (splice) and never enters our memory. */
#include "proxy/affinity.h"
#include "proxy/exchange.h"
#include "proxy/rewrite.h"

#include "core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    READS_PER_TURN = 16,
    FIRST_READ_BYTES =
        16 * 1024, /* of an answer whose length is not known yet: what follows may be spliced */
    SPLICE_FROM_BYTES = 32 * 1024, /* below, copying through the warm buffer is cheaper */
    PIPE_BYTES = 1024 * 1024,
};

static const struct h1_limits response_limits = {.head_bytes = WORKER_HEAD_BYTES,
                                                 .uri_bytes = WORKER_HEAD_BYTES,
                                                 .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};

static struct target_counters *target_counters(struct exchange *x)
{
    return &x->upstream->backend->workers[x->worker->index].counters;
}

static bool lives(const struct client *client, const struct exchange *x)
{
    return client->exchange == x;
}

static bool take_pipe(struct worker *worker, struct pipe_pair *pipe)
{
    int fds[2];
    if (worker->n_pipes > 0) {
        *pipe = worker->pipes[--worker->n_pipes];
        return true;
    }
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
        return false;
    /* A small pipe works too: the kernel refuses beyond pipe-user-pages-soft without CAP_SYS_RESOURCE. */
    if (fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
        errno = 0;
    *pipe = (struct pipe_pair){fds[0], fds[1]};
    return true;
}

void response_drop_pipe(struct exchange *x)
{
    struct worker *worker = x->worker;
    if (!x->is_spliced)
        return;
    x->is_spliced = false;
    if (x->in_pipe == 0 && worker->n_pipes < WORKER_PIPES_KEPT) {
        worker->pipes[worker->n_pipes++] = x->pipe;
        return;
    }
    close(x->pipe.read_fd);
    close(x->pipe.write_fd);
    x->in_pipe = 0;
}

/* The target's side has ended or broken before the answer was complete. */
static void cut_short(struct exchange *x, bool in_order)
{
    struct scratch scratch = {x->worker->scratch, x->worker->scratch + WORKER_SCRATCH_BYTES};
    struct transfer_pieces pieces;
    if (!x->has_answer_head) {
        forward_attempt_failed(x, in_order ? END_UPSTREAM_CLOSED : END_UPSTREAM_RESET);
        return;
    }
    if (!in_order || !transfer_end(&x->response, &scratch, &pieces)) {
        counter_add(&target_counters(x)->resets, 1);
        forward_note(x, PASSIVE_GATEWAY);
        exchange_abort(x, END_TRUNCATED);
        return;
    }
    if (pieces.n && client_write(x->client, pieces.iov, pieces.n) == CONN_FAILED)
        exchange_abort(x, END_CLIENT_ABORT);
    else
        exchange_answered(x);
}

/* One round through the pipe. False: no more can be done now, or x has ended. */
static bool splice_once(struct exchange *x)
{
    struct conn *upstream = &x->upstream->conn;
    struct client *client = x->client;
    ssize_t n;
    if (x->in_pipe == 0) {
        size_t want = x->response.left < PIPE_BYTES ? (size_t)x->response.left : PIPE_BYTES;
        n = splice(upstream->io.fd, NULL, x->pipe.write_fd, NULL, want, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0 && errno == EINTR)
            return true;
        if (n < 0 && errno == EAGAIN) {
            upstream->can_read = false;
            return false;
        }
        if (n <= 0) {
            upstream->saw_eof = true;
            cut_short(x, n == 0);
            return false;
        }
        x->in_pipe = (uint32_t)n;
        x->response.left -= (uint64_t)n;
        x->response.bytes += (uint64_t)n;
        counter_add(&target_counters(x)->received_bytes, (uint64_t)n);
        loop_timer_set(&x->worker->loop, &upstream->timer,
                       x->worker->loop.now_ns + x->group->config->timeouts.response_ms * NS_PER_MS);
    }
    n = splice(x->pipe.read_fd, NULL, client->conn.io.fd, NULL, x->in_pipe,
               SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN) {
        if (!client_wait_writable(client))
            exchange_abort(x, END_CLIENT_ABORT);
        return false;
    }
    if (n <= 0) {
        exchange_abort(x, END_CLIENT_ABORT);
        return false;
    }
    x->in_pipe -= (uint32_t)n;
    if (x->in_pipe == 0)
        client_took_output(client);
    x->sent_bytes += (uint64_t)n;
    counter_add(&client->listener->counters->sent_bytes, (uint64_t)n);
    if (x->in_pipe == 0 && x->response.left == 0) {
        x->response.is_done = true;
        exchange_answered(x);
        return false;
    }
    return true;
}

static void splice_pump(struct exchange *x)
{
    for (int rounds = 0; rounds < READS_PER_TURN; rounds++) {
        if (x->in_pipe == 0 && !x->upstream->conn.can_read)
            return;
        if (!splice_once(x))
            return;
    }
    exchange_resume(x);
}

/* The head has been sent whole and a long body follows. */
static void maybe_splice(struct exchange *x)
{
    if (x->is_spliced || x->response.framing != HTTP_BODY_LENGTH || x->response.emit_chunked ||
        x->response.left < SPLICE_FROM_BYTES || x->client->conn.out || x->client->conn.layer ||
        x->upstream->conn.layer)
        return;
    x->is_spliced = take_pipe(x->worker, &x->pipe);
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
    if (head)
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
        exchange_answered(x);
        return false;
    }
    maybe_splice(x);
    return true;
}

/* The framing towards the client and whether its connection ends with this answer. */
static void decide_delivery(struct exchange *x, struct http_message *msg)
{
    struct client *client = x->client;
    bool is_open_ended = msg->framing == HTTP_BODY_CHUNKED || msg->framing == HTTP_BODY_UNTIL_CLOSE;
    bool emit_chunked = is_open_ended && x->client_minor >= 1;
    x->upstream_reusable = msg->keep_alive && msg->framing != HTTP_BODY_UNTIL_CLOSE;
    transfer_init(&x->response, msg, emit_chunked, x->te_trailers);
    if (is_open_ended)
        msg->framing = emit_chunked ? HTTP_BODY_CHUNKED : HTTP_BODY_UNTIL_CLOSE;
    if (!x->keep_alive || x->worker->says_close || client->listener->holds ||
        msg->framing == HTTP_BODY_UNTIL_CLOSE || (x->expects_continue && !x->request.is_done))
        client->close_after = true;
}

static bool write_head(struct exchange *x, struct http_message *msg, struct iovec *head)
{
    struct worker *worker = x->worker;
    struct scratch values = {worker->scratch + WORKER_HEAD_BYTES * 2, worker->scratch + WORKER_SCRATCH_BYTES};
    if (x->group->affinity && !affinity_note_answer(x, msg, &values))
        return false;
    if (x->rule && !rewrite_response(x->rule, msg, &values))
        return false;
    if (!http_message_find(msg, HTTP_FIELD_DATE) &&
        !http_message_add(msg, SLICE("Date"), worker_date(worker)))
        return false;
    size_t n = h1_write_response(worker->scratch, WORKER_HEAD_BYTES * 2, msg, x->client_minor,
                                 x->client->close_after);
    *head = (struct iovec){worker->scratch, n};
    return n > 0;
}

static void count_answer(struct exchange *x, unsigned status)
{
    struct target_counters *counters = target_counters(x);
    x->answer_ns = x->worker->loop.now_ns;
    counter_add(&(&counters->requests_1xx)[status / 100 - 1], 1);
    histogram_add(&counters->latency, (x->answer_ns - x->attempt_ns) / NS_PER_US);
    forward_note(x, passive_sign_of(status));
}

/* A final answer's head and what came with it. */
static bool begin_answer(struct exchange *x, struct http_message *msg, char *data, size_t len)
{
    struct iovec head;
    bool is_gateway_error = msg->status >= 502 && msg->status <= 504;
    count_answer(x, msg->status);
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

static bool pass_interim(struct exchange *x, struct http_message *msg)
{
    struct iovec head;
    if (++x->n_interim > EXCHANGE_INTERIM_MAX) {
        exchange_fail(x, END_BAD_RESPONSE);
        return false;
    }
    if (msg->status == 100)
        x->expects_continue = false;
    if (x->client_minor == 0)
        return true;
    msg->framing = HTTP_BODY_NONE;
    size_t n = h1_write_response(x->worker->scratch, WORKER_HEAD_BYTES * 2, msg, 1, false);
    head = (struct iovec){x->worker->scratch, n};
    if (n > 0 && client_write(x->client, &head, 1) == CONN_FAILED) {
        exchange_abort(x, END_CLIENT_ABORT);
        return false;
    }
    return true;
}

static void upgrade(struct exchange *x, struct http_message *msg, char *data, size_t len)
{
    struct iovec head;
    if (!x->wants_upgrade || !msg->upgrade) {
        counter_add(&target_counters(x)->bad_responses, 1);
        exchange_fail(x, END_BAD_UPGRADE);
        return;
    }
    count_answer(x, msg->status);
    x->has_answer_head = x->answer_begun = true;
    x->status = msg->status;
    if (!write_head(x, msg, &head))
        exchange_fail(x, END_RESPONSE_HEAD_TOO_LARGE);
    else if (client_write(x->client, &head, 1) == CONN_FAILED)
        exchange_abort(x, END_CLIENT_ABORT);
    else
        tunnel_start(x, slice_of(data, len));
}

/* Heads in data[0..len): interim ones, then the final one. False: x has ended or changed its way of reading.
 */
static bool read_head(struct exchange *x, char *data, size_t len)
{
    struct upstream *upstream = x->upstream;
    struct buf_pool *bufs = &x->worker->bufs;
    struct http_message *msg = x->worker->msg;
    while (len > 0) {
        enum http_reject why = HTTP_REJECT_NONE;
        size_t used;
        switch (
            h1_parse_response(data, len, &response_limits, (enum http_method)x->method, msg, &used, &why)) {
        case H1_INCOMPLETE: {
            struct buf *old = upstream->in;
            upstream->in = NULL;
            bool ok = len < WORKER_HEAD_BYTES && buf_append(bufs, &upstream->in, slice_of(data, len));
            buf_give(bufs, &old);
            if (!ok)
                exchange_fail(x, END_RESPONSE_HEAD_TOO_LARGE);
            return ok;
        }
        case H1_REJECTED:
            counter_add(&target_counters(x)->bad_responses, 1);
            forward_note(x, PASSIVE_GATEWAY);
            x->upstream_reusable = false;
            exchange_fail(x, http_reject_status(why) == 431 ? END_RESPONSE_HEAD_TOO_LARGE : END_BAD_RESPONSE);
            return false;
        case H1_COMPLETE:
            break;
        }
        buf_give(bufs, &upstream->in);
        data += used;
        len -= used;
        if (msg->status == 101) {
            upgrade(x, msg, data, len);
            return false;
        }
        if (msg->status >= 200)
            return begin_answer(x, msg, data, len);
        if (!pass_interim(x, msg))
            return false;
    }
    return true;
}

void response_pump(struct exchange *x)
{
    struct worker *worker = x->worker;
    struct client *client = x->client;
    struct upstream *upstream = x->upstream;
    if (!upstream || x->answer_done)
        return;
    for (int reads = 0; !x->is_spliced && upstream->conn.can_read && !client->conn.out; reads++) {
        size_t kept = upstream->in ? buf_len(upstream->in) : 0, n;
        char *data = worker->rbuf;
        if (reads == READS_PER_TURN) {
            exchange_resume(x);
            return;
        }
        bool may_splice = !x->has_answer_head && !client->conn.layer && !upstream->conn.layer;
        size_t most = may_splice ? FIRST_READ_BYTES : WORKER_READ_BYTES;
        enum conn_result result = conn_read(&upstream->conn, data + kept, most, &n);
        if (result == CONN_BLOCKED)
            return;
        if (result != CONN_OK) {
            cut_short(x, result == CONN_EOF);
            return;
        }
        counter_add(&target_counters(x)->received_bytes, n);
        loop_timer_set(&worker->loop, &upstream->conn.timer,
                       worker->loop.now_ns + x->group->config->timeouts.response_ms * NS_PER_MS);
        if (kept)
            memcpy(data, upstream->in->data + upstream->in->start, kept);
        bool goes_on = x->has_answer_head ? feed_body(x, NULL, data, n) : read_head(x, data, kept + n);
        if (!goes_on || !lives(client, x) || x->upstream != upstream)
            return;
    }
    if (x->is_spliced)
        splice_pump(x);
}

void response_due(struct exchange *x)
{
    bool waits_for_body = !x->request.is_done && !x->has_answer_head && !x->upstream->conn.out;
    bool waits_for_reader = x->client->conn.out || x->in_pipe;
    if (waits_for_body || waits_for_reader) { /* the client's doing: its own timer decides */
        loop_timer_set(&x->worker->loop, &x->upstream->conn.timer,
                       x->worker->loop.now_ns + x->group->config->timeouts.response_ms * NS_PER_MS);
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
