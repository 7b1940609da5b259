/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/request.h"

#include "core/clock.h"
#include "proxy/answer.h"
#include "proxy/forward.h"
#include "proxy/response.h"

enum { READS_PER_TURN = 16 };

static bool target_is_busy(const struct exchange *x)
{
    return !x->discard && (!x->carrier || x->is_connecting || x->carrier->is_full(x));
}

/* It is not the client that keeps the body waiting. */
static bool client_is_excused(const struct exchange *x)
{
    return target_is_busy(x) || x->expects_continue;
}

/* Watches the client's progress from now on, unless a check is under way. */
static void await(struct exchange *x)
{
    struct client *client = x->client;
    if (x->request.is_done || client->is_stalled)
        return;
    if (!client_arm(client)) {
        exchange_abort(x, END_CLIENT_ABORT_BODY);
        return;
    }
    if (client->conn.timer.due_ns)
        return;
    x->rate_checked_ns = x->worker->loop.now_ns;
    x->rate_bytes = x->request.bytes;
    loop_timer_set(&x->worker->loop, &client->conn.timer,
                   x->rate_checked_ns + client_check_ms(x->listener->config) * NS_PER_MS);
}

/* A call may be silent for long: either side speaks when it has something to say. */
static void call_due(struct exchange *x)
{
    uint64_t now_ns = x->worker->loop.now_ns, moved = x->request.bytes + x->sent_bytes;
    uint64_t idle_ns = x->listener->config->timeouts.tunnel_ms * NS_PER_MS;
    if (moved != x->rate_bytes) {
        x->rate_bytes = moved;
        x->rate_checked_ns = now_ns;
    }
    if (now_ns - x->rate_checked_ns >= idle_ns)
        exchange_fail(x, END_CLIENT_BODY_TIMEOUT);
    else
        loop_timer_set(&x->worker->loop, &x->client->conn.timer, x->rate_checked_ns + idle_ns);
}

void request_due(struct exchange *x)
{
    const struct config_listener *config = x->listener->config;
    uint64_t elapsed_ms = (x->worker->loop.now_ns - x->rate_checked_ns) / NS_PER_MS;
    uint64_t got = x->request.bytes - x->rate_bytes, min_rate = config->limits.min_rate_bytes_per_s;
    if (x->request.is_done)
        return;
    if (x->is_grpc && !x->answer_done) {
        call_due(x);
        return;
    }
    bool is_stalled = got == 0 && elapsed_ms >= config->timeouts.body_ms;
    bool is_slow = min_rate && elapsed_ms >= CLIENT_SLOW_AFTER_MS && got * 1000 < min_rate * elapsed_ms;
    if (!client_is_excused(x) && (is_stalled || is_slow)) {
        x->client->close_after = x->client->unread_request = true;
        if (x->answer_done)
            exchange_stop_discarding(x);
        else
            exchange_fail(x, END_CLIENT_BODY_TIMEOUT);
        return;
    }
    if (client_is_excused(x) || (got > 0 && got * 1000 >= min_rate * elapsed_ms)) {
        x->rate_checked_ns = x->worker->loop.now_ns;
        x->rate_bytes = x->request.bytes;
    }
    loop_timer_set(&x->worker->loop, &x->client->conn.timer,
                   x->worker->loop.now_ns + client_check_ms(config) * NS_PER_MS);
}

bool request_take(struct exchange *x, char *data, size_t len, size_t *used, struct transfer_pieces *pieces)
{
    struct worker *worker = x->worker;
    struct scratch scratch = {worker->scratch, worker->scratch + WORKER_SCRATCH_BYTES};
    enum http_reject why = HTTP_REJECT_NONE;
    uint64_t most = x->listener->config->limits.body_bytes;
    x->expects_continue = false; /* the client did not wait */
    switch (transfer_feed(&x->request, data, len, &x->client->listener->limits, &worker->bufs, &scratch,
                          worker->trailers, used, pieces, &why)) {
    case TRANSFER_OK:
        break;
    case TRANSFER_REJECTED:
        if (x->answer_begun)
            exchange_abort(x, END_BAD_BODY);
        else
            exchange_reject_body(x, why);
        return false;
    case TRANSFER_NO_MEMORY:
        x->client->close_after = x->client->unread_request = true;
        exchange_fail(x, END_NO_MEMORY);
        return false;
    }
    x->received_bytes += *used;
    if (most && x->request.bytes > most && !x->discard) {
        x->client->close_after = x->client->unread_request = true;
        exchange_fail(x, END_BODY_TOO_LARGE);
        return false;
    }
    return true;
}

/* The body is over and so is the answer: the exchange was only waiting for this. */
static void end_discarding(struct exchange *x)
{
    struct client *client = x->client;
    exchange_release(x);
    loop_timer_clear(&client->conn.timer);
    client->downstream->next(client);
}

size_t request_feed(struct exchange *x, char *data, size_t len)
{
    struct transfer_pieces pieces = {.n = 0};
    size_t used = 0;
    if (x->request.is_done)
        return 0;
    if (!request_take(x, data, len, &used, &pieces))
        return len;
    if (x->discard) {
        if (x->answer_done && x->request.is_done)
            end_discarding(x);
        else if (x->answer_done && x->request.bytes > CLIENT_DISCARD_BYTES)
            exchange_stop_discarding(x);
        return used;
    }
    struct slice body =
        pieces.n ? slice_of(pieces.iov[0].iov_base, pieces.iov[0].iov_len) : (struct slice){0};
    /* A target that takes no more may have said why, so its answer is still read when the event of the broken
     * connection comes (cases C-019 C-048). */
    if (forward_send(x, body, pieces.trailers) == CONN_FAILED)
        x->discard = true;
    return used;
}

/* The body has ended by the means of the client's protocol. */
static void end_body(struct exchange *x, const struct http_message *trailers)
{
    struct scratch scratch = {x->worker->scratch, x->worker->scratch + WORKER_SCRATCH_BYTES};
    struct transfer_pieces pieces;
    x->expects_continue = false;
    if (!transfer_end(&x->request, trailers, &scratch, &pieces))
        exchange_abort(x, END_CLIENT_ABORT_BODY);
    else if (!x->discard && forward_send(x, (struct slice){0}, pieces.trailers) == CONN_FAILED)
        x->discard = true;
}

static void body_went_on(struct exchange *x)
{
    if (!x->request.is_done)
        forward_set_deadline(x, response_patience_ms(x));
    else if (x->client->conn.timer.due_ns && !x->client->is_stalled)
        loop_timer_clear(&x->client->conn.timer);
}

bool request_push(struct exchange *x, char *data, size_t len)
{
    struct client *client = x->client;
    if (target_is_busy(x))
        return false;
    request_feed(x, data, len);
    if (client->exchange == x && x->carrier)
        body_went_on(x);
    return true;
}

bool request_push_end(struct exchange *x, const struct http_message *trailers)
{
    struct client *client = x->client;
    if (!x->request.is_done && target_is_busy(x))
        return false;
    if (!x->request.is_done)
        end_body(x, trailers);
    if (client->exchange == x && x->carrier)
        body_went_on(x);
    return true;
}

void request_pump(struct exchange *x)
{
    struct client *client = x->client;
    struct worker *worker = x->worker;
    for (int reads = 0; client->conn.can_read && !x->request.is_done && !target_is_busy(x); reads++) {
        size_t n;
        if (reads == READS_PER_TURN) {
            exchange_resume(x);
            return;
        }
        switch (conn_read(&client->conn, worker->rbuf, WORKER_READ_BYTES, &n)) {
        case CONN_OK:
            break;
        case CONN_BLOCKED:
            await(x);
            return;
        case CONN_EOF:
            if (client->downstream->has_frames)
                end_body(x, client->downstream->request_trailers(client));
            else
                exchange_abort(x, END_CLIENT_ABORT_BODY);
            return;
        case CONN_FAILED:
            exchange_abort(x, END_CLIENT_ABORT_BODY);
            return;
        }
        counter_add(client_received(client), n);
        size_t used = request_feed(x, worker->rbuf, n);
        if (client->exchange != x) {
            client_keep_rest(client, worker->rbuf + used, n - used);
            return;
        }
        if (used < n) {
            if (!client_keep_rest(client, worker->rbuf + used, n - used))
                exchange_abort(x, END_NO_MEMORY);
            return;
        }
        if (x->carrier && !x->request.is_done)
            forward_set_deadline(x, x->group->config->timeouts.response_ms);
    }
    if (x->request.is_done) {
        if (client->conn.timer.due_ns && !client->is_stalled)
            loop_timer_clear(&client->conn.timer);
    } else if (!client->conn.can_read) {
        await(x);
    }
}
