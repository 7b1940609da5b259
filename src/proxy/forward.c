/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts: choosing a target, getting a connection to it, sending the request, and what happens when that
 * fails.
 *
 * Whether a request may be sent again is retry.c's to say. A pooled connection that turns out stale gives one
 * such retry for free; other retries count against retry.attempts. */
#include "proxy/affinity.h"
#include "proxy/exchange.h"

#include "core/clock.h"
#include "health/health.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { PENDING_POLL_MS = 16 };

static struct target_counters *target_counters(struct exchange *x, struct backend *backend)
{
    return &backend->workers[x->worker->index].counters;
}

void forward_note_target(const struct worker *worker, const struct snap_group *group, struct backend *backend,
                         enum passive_sign sign)
{
    if (passive_note(&backend->runs, &backend->workers[worker->index].passive, &group->config->outlier,
                     sign) &&
        backend->health.watcher)
        health_ring(backend->health.watcher);
}

void forward_note(struct exchange *x, enum passive_sign sign)
{
    forward_note_target(x->worker, x->group, x->upstream->backend, sign);
}

static void set_deadline(struct exchange *x, uint32_t ms)
{
    loop_timer_set(&x->worker->loop, &x->upstream->conn.timer, x->worker->loop.now_ns + ms * NS_PER_MS);
}

/* Did we lack something, so that the error says nothing about the target? */
static bool is_our_lack(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS || err == EADDRNOTAVAIL;
}

static void upstream_due(struct loop *loop, struct loop_timer *timer)
{
    struct upstream *upstream = container_of(timer, struct upstream, conn.timer);
    struct exchange *x = upstream->owner;
    if (upstream->conn.is_connecting) {
        counter_add(&target_counters(x, upstream->backend)->connect_timeouts, 1);
        forward_note(x, PASSIVE_GATEWAY);
        forward_attempt_failed(x, END_CONNECT_TIMEOUT);
    } else if (x->is_tunnel) {
        loop_timer_clear(timer); /* the client's timer watches the tunnel */
    } else {
        response_due(x);
    }
}

static bool finish_handshake(struct exchange *x, struct upstream *upstream)
{
    switch (conn_handshake(&upstream->conn, x->worker->pool.bufs)) {
    case CONN_OK:
        return true;
    case CONN_BLOCKED:
        return false;
    case CONN_EOF:
    case CONN_FAILED:
        break;
    }
    counter_add(&target_counters(x, upstream->backend)->tls_errors, 1);
    forward_note(x, PASSIVE_GATEWAY);
    forward_attempt_failed(x, END_UPSTREAM_TLS);
    return false;
}

static bool finish_connecting(struct exchange *x, struct upstream *upstream, uint32_t events)
{
    int err = 0;
    switch (pool_connect_check(upstream, events, &err)) {
    case POOL_CONNECT_WAITS:
        return false;
    case POOL_CONNECT_FAILED:
        counter_add(&target_counters(x, upstream->backend)->connect_errors, 1);
        forward_note(x, PASSIVE_GATEWAY);
        forward_attempt_failed(x, exchange_end_of_connect(err));
        return false;
    case POOL_CONNECT_OPEN:
        break;
    }
    if (upstream->conn.layer && !finish_handshake(x, upstream))
        return false;
    upstream->conn.is_connecting = false;
    set_deadline(x, retry_patience_ms(x));
    return true;
}

static void upstream_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct upstream *upstream = container_of(io, struct upstream, conn.io);
    struct exchange *x = upstream->owner;
    conn_note_events(&upstream->conn, events);
    bool was_blocked = upstream->conn.out || upstream->conn.is_connecting;
    if (upstream->conn.is_connecting && !finish_connecting(x, upstream, events))
        return;
    if (conn_flush(&upstream->conn, x->worker->pool.bufs) == CONN_FAILED) {
        x->upstream_write_failed = true;
        x->discard |= !x->request.is_done; /* a request that was queued whole may still be tried again */
        buf_give(x->worker->pool.bufs, &upstream->conn.out);
    }
    if (x->is_tunnel) {
        tunnel_pump(x);
        return;
    }
    if (was_blocked && !upstream->conn.out && !x->request.is_done)
        request_pump(x);
    if (upstream->owner == x && upstream->conn.can_read)
        response_pump(x);
}

static bool has_tried(const struct exchange *x, uint32_t target)
{
    for (uint32_t i = 0; i < x->n_tried; i++)
        if (x->tried[i] == target)
            return true;
    return false;
}

/* Waits until one of the group's targets has room for a connection or a request, at most limits.pending_ms.
 */
static bool wait_for_connection(struct exchange *x)
{
    struct worker *worker = x->worker;
    const struct config_target_group *config = x->group->config;
    _Atomic uint32_t *pending = &x->group->runtime->pending;
    if (atomic_fetch_add_explicit(pending, 1, memory_order_relaxed) >= config->limits.pending) {
        atomic_fetch_sub_explicit(pending, 1, memory_order_relaxed);
        exchange_fail(x, END_TARGETS_FULL);
        return false;
    }
    if (!client_arm(x->client)) { /* a client that gives up must leave the queue */
        atomic_fetch_sub_explicit(pending, 1, memory_order_relaxed);
        exchange_fail(x, END_NO_MEMORY);
        return false;
    }
    x->is_pending = true;
    if (!x->pending_until_ns)
        x->pending_until_ns = worker->loop.now_ns + config->limits.pending_ms * NS_PER_MS;
    gauge_add(&x->group->runtime->workers[worker->index].pending, 1);
    list_push_back(&worker->pending, &x->pending);
    if (!worker->pending_timer.due_ns)
        loop_timer_set(&worker->loop, &worker->pending_timer,
                       worker->loop.now_ns + PENDING_POLL_MS * NS_PER_MS);
    return true;
}

void forward_leave_pending(struct exchange *x)
{
    retry_leave(x);
    if (!x->is_pending)
        return;
    x->is_pending = false;
    list_remove(&x->pending);
    gauge_add(&x->group->runtime->workers[x->worker->index].pending, -1);
    atomic_fetch_sub_explicit(&x->group->runtime->pending, 1, memory_order_relaxed);
}

/* A place among the requests that a target works on; `limit` 0: always. */
static bool reserve(struct backend *backend, uint32_t limit)
{
    uint32_t before = atomic_fetch_add_explicit(&backend->in_flight, 1, memory_order_relaxed);
    if (limit == 0 || before < limit)
        return true;
    atomic_fetch_sub_explicit(&backend->in_flight, 1, memory_order_relaxed);
    return false;
}

/* A new connection, for which the place is reserved; given back when there is none. Keeps errno. */
static enum pool_open_result open_reserved(struct exchange *x, struct backend *backend)
{
    enum pool_open_result opened = pool_open(&x->worker->pool, backend, x->group->tls,
                                             x->group->config->limits.connections, &x->upstream);
    if (opened != POOL_OPEN_STARTED)
        atomic_fetch_sub_explicit(&backend->in_flight, 1, memory_order_relaxed);
    return opened;
}

enum open_result { OPENED, OPEN_WAITS, OPEN_ENDED };

/* A lent connection in x->upstream (opened or pooled), or the exchange waits, or it has failed. */
static enum open_result open_upstream(struct exchange *x)
{
    struct snap_group *group = x->group;
    struct worker *worker = x->worker;
    uint8_t tried_before = x->n_tried;
    bool must_be_fresh =
        !x->request.is_done || x->request.bytes || !http_method_is_idempotent((enum http_method)x->method);
    for (;;) {
        enum pool_open_result opened = POOL_OPEN_STARTED;
        uint32_t target = x->group->affinity ? affinity_target(x) : BALANCE_NONE;
        if (target == BALANCE_NONE)
            target = select_target(x);
        if (target == BALANCE_NONE) {
            counter_add(&group->runtime->workers[worker->index].no_target, 1);
            exchange_fail(x, select_why_none(x));
            return OPEN_ENDED;
        }
        if (x->n_tried > tried_before && (has_tried(x, target) || x->n_tried == EXCHANGE_TRIED_MAX)) {
            x->n_tried = tried_before; /* all that could be chosen are full */
            return wait_for_connection(x) ? OPEN_WAITS : OPEN_ENDED;
        }
        struct backend *backend = group->targets[target];
        if (!reserve(backend, group->config->limits.requests))
            opened = POOL_OPEN_FULL;
        else if (x->wants_fresh ||
                 !(x->upstream = pool_take(&worker->pool, backend, group->tls, must_be_fresh)))
            opened = open_reserved(x, backend);
        if (x->n_tried < EXCHANGE_TRIED_MAX)
            x->tried[x->n_tried++] = (uint16_t)target;
        if (opened == POOL_OPEN_FULL)
            continue;
        if (x->n_tried > tried_before + 1) { /* the full ones that were passed over were not tried */
            x->tried[tried_before] = (uint16_t)target;
            x->n_tried = (uint8_t)(tried_before + 1);
        }
        x->attempts++;
        if (opened == POOL_OPEN_FAILED) {
            enum exchange_end end = exchange_end_of_connect(errno);
            counter_add(&target_counters(x, backend)->connect_errors, 1);
            if (!is_our_lack(errno))
                forward_note_target(x->worker, x->group, backend, PASSIVE_GATEWAY);
            tried_before = x->n_tried;
            if (x->attempts < x->max_attempts && group->config->retry.on_connect_failure)
                continue;
            exchange_fail(x, end);
            return OPEN_ENDED;
        }
        x->backend = backend;
        x->attempt_ns = worker->loop.now_ns;
        x->wants_fresh = x->upstream_write_failed = false;
        x->upstream->owner = x;
        x->upstream->conn.io.on_ready = upstream_ready;
        x->upstream->conn.timer.on_due = upstream_due;
        return OPENED;
    }
}

/* Bytes that could not go yet stand in for the head and whatever of the body came with it. */
static enum conn_result send_unsent(struct exchange *x)
{
    struct conn *conn = &x->upstream->conn;
    if (conn->is_connecting) {
        conn->out = x->unsent;
        x->unsent = NULL;
        return CONN_BLOCKED;
    }
    struct iovec all = {x->unsent->data + x->unsent->start, buf_len(x->unsent)};
    enum conn_result result = conn_write(conn, &x->worker->bufs, &all, 1);
    if (result != CONN_FAILED)
        buf_give(&x->worker->bufs, &x->unsent);
    return result;
}

static enum conn_result send_fresh(struct exchange *x, const struct transfer_pieces *pieces)
{
    struct iovec iov[1 + TRANSFER_PIECES];
    int n = 0;
    iov[n++] = (struct iovec){x->head->data + x->head->start, x->head_len};
    for (int i = 0; pieces && i < pieces->n; i++)
        iov[n++] = pieces->iov[i];
    counter_add(&target_counters(x, x->backend)->sent_bytes, x->head_len + (pieces ? pieces->body_len : 0));
    return conn_write(&x->upstream->conn, &x->worker->bufs, iov, n);
}

/* Waiting for a connection: the body bytes at hand would be lost when the read buffer is used again. */
static bool keep_unsent(struct exchange *x, const struct transfer_pieces *pieces)
{
    if (!pieces || pieces->n == 0 || x->unsent)
        return true;
    struct buf_pool *bufs = &x->worker->bufs;
    bool ok = buf_append(bufs, &x->unsent, slice_of(x->head->data + x->head->start, x->head_len));
    for (int i = 0; ok && i < pieces->n; i++)
        ok = buf_append(bufs, &x->unsent, slice_of(pieces->iov[i].iov_base, pieces->iov[i].iov_len));
    return ok;
}

/* Opens and sends; a pooled connection that breaks at the first write is replaced, since nothing was sent. */
static void attempt(struct exchange *x, const struct transfer_pieces *pieces)
{
    for (;;) {
        enum open_result opened = open_upstream(x);
        if (opened == OPEN_WAITS && !keep_unsent(x, pieces))
            exchange_fail(x, END_NO_MEMORY);
        if (opened != OPENED)
            return;
        if ((x->unsent ? send_unsent(x) : send_fresh(x, pieces)) != CONN_FAILED)
            break;
        bool was_pooled = x->upstream->uses > 1;
        struct backend *backend = x->upstream->backend;
        exchange_drop_upstream(x, false);
        if (!was_pooled) {
            forward_note_target(x->worker, x->group, backend, PASSIVE_GATEWAY);
            exchange_fail(x, END_UPSTREAM_RESET);
            return;
        }
        x->wants_fresh = true;
        x->attempts--;
        x->n_tried--;
    }
    uint32_t connect_ms = x->group->config->timeouts.connect_ms;
    set_deadline(x, x->upstream->conn.is_connecting ? connect_ms : retry_patience_ms(x));
    if (!x->request.is_done)
        exchange_resume(x);
}

void forward_start(struct exchange *x, const struct transfer_pieces *pieces)
{
    retry_earn(x);
    attempt(x, pieces);
}

void forward_again(struct exchange *x)
{
    attempt(x, NULL);
}

void forward_attempt_failed(struct exchange *x, enum exchange_end end)
{
    struct upstream *upstream = x->upstream;
    bool is_broken = end == END_UPSTREAM_CLOSED || end == END_UPSTREAM_RESET;
    bool is_stale = is_broken && upstream->uses > 1 && !x->reused_retry && retry_can_replay(x);
    bool retry = is_stale || retry_take(x, end);
    if (is_broken)
        counter_add(&target_counters(x, upstream->backend)->resets, 1);
    if (is_broken && !is_stale)
        forward_note(x, PASSIVE_GATEWAY);
    if (retry && upstream->conn.is_connecting) {
        x->unsent = upstream->conn.out;
        upstream->conn.out = NULL;
    }
    exchange_drop_upstream(x, false);
    if (!retry) {
        exchange_fail(x, end);
        return;
    }
    if (!is_stale) {
        retry_go(x);
        return;
    }
    counter_add(&x->group->runtime->workers[x->worker->index].retries, 1);
    x->reused_retry = x->wants_fresh = true;
    x->attempts--;
    x->n_tried--;
    attempt(x, NULL);
}

/* Oldest first; each that goes on leaves the list, each that must wait on joins it at the end again. */
static void try_pending(struct worker *worker, bool only_one)
{
    struct list waiting;
    list_init(&waiting);
    while (!list_is_empty(&worker->pending)) {
        struct list *node = worker->pending.next;
        list_remove(node);
        list_push_back(&waiting, node);
    }
    bool is_spent = false;
    while (!list_is_empty(&waiting)) {
        struct exchange *x = container_of(waiting.next, struct exchange, pending);
        list_remove(&x->pending);
        list_push_back(&worker->pending, &x->pending);
        if (is_spent)
            continue;
        is_spent = only_one;
        if (worker->loop.now_ns >= x->pending_until_ns) {
            counter_add(&x->group->runtime->workers[worker->index].pending_timeouts, 1);
            exchange_fail(x, END_PENDING_TIMEOUT);
        } else {
            forward_leave_pending(x);
            attempt(x, NULL);
        }
    }
}

/* Connections that other workers gave up are found by asking again. */
static void on_pending_due(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = container_of(timer, struct worker, pending_timer);
    try_pending(worker, false);
    if (!list_is_empty(&worker->pending))
        loop_timer_set(loop, timer, loop->now_ns + PENDING_POLL_MS * NS_PER_MS);
}

static void on_wake_pending(struct loop *loop, struct loop_later *later)
{
    try_pending(container_of(later, struct worker, pending_later), true);
}

void forward_wake_pending(struct worker *worker)
{
    loop_later(&worker->loop, &worker->pending_later);
}

void forward_pending_init(struct worker *worker)
{
    list_init(&worker->pending);
    loop_timer_init(&worker->pending_timer, on_pending_due);
    loop_later_init(&worker->pending_later, on_wake_pending);
}
