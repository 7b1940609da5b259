/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/forward.h"

#include "core/clock.h"
#include "health/health.h"
#include "proxy/access.h"
#include "proxy/affinity.h"
#include "proxy/affinity_share.h"
#include "proxy/answer.h"
#include "proxy/response.h"
#include "proxy/retry.h"
#include "proxy/select.h"
#include "proxy/tunnel_h2.h"

#include <errno.h>

enum {
    PENDING_POLL_MS = 16,
    BODY_KEPT_BYTES = 16 * 1024, /* gRPC messages are mostly far below */
};

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
    forward_note_target(x->worker, x->group, x->backend, sign);
}

void forward_set_deadline(struct exchange *x, uint32_t ms)
{
    loop_timer_set(&x->worker->loop, x->carrier->timer(x), x->worker->loop.now_ns + ms * NS_PER_MS);
}

/* Did we lack something, so that the error says nothing about the target? */
static bool is_our_lack(int err)
{
    return err == EMFILE || err == ENFILE || err == ENOMEM || err == ENOBUFS || err == EADDRNOTAVAIL;
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
    share_leave(x);
    access_leave(x);
    if (!x->is_pending)
        return;
    x->is_pending = false;
    list_remove(&x->pending);
    gauge_add(&x->group->runtime->workers[x->worker->index].pending, -1);
    atomic_fetch_sub_explicit(&x->group->runtime->pending, 1, memory_order_relaxed);
}

static const struct carrier *carrier_for(const struct exchange *x, const struct backend *backend)
{
    const struct backend_worker *mine = &backend->workers[x->worker->index];
    bool needs_http1 = x->wants_upgrade && !(mine->takes_connect && tunnel_h2_is_wanted(x));
    bool is_http1 = x->group->http2 == SNAP_HTTP2_NONE ||
                    (x->group->http2 == SNAP_HTTP2_OFFERED && (mine->chose_http1 || needs_http1));
    return is_http1 ? &carrier_h1 : &carrier_h2;
}

enum open_result { OPENED, OPEN_WAITS, OPEN_ENDED };

/* A carrier in x->carrier, or the exchange waits, or it has failed. */
static enum open_result open_upstream(struct exchange *x)
{
    struct snap_group *group = x->group;
    struct worker *worker = x->worker;
    uint8_t tried_before = x->n_tried;
    bool must_be_fresh =
        !x->request.is_done || x->request.bytes || !http_method_is_idempotent((enum http_method)x->method);
    for (;;) {
        enum pool_open_result opened = POOL_OPEN_FULL;
        uint32_t target = x->group->affinity ? affinity_target(x) : BALANCE_NONE;
        if (target == BALANCE_NONE)
            target = select_target(x);
        if (target == BALANCE_NONE) {
            counter_add(&group->runtime->workers[worker->index].no_target, 1);
            exchange_fail(x, select_why_none(x));
            return OPEN_ENDED;
        }
        if (x->n_tried > tried_before && (has_tried(x, target) || x->n_tried == SELECT_TRIED_MAX)) {
            x->n_tried = tried_before; /* all that could be chosen are full */
            return wait_for_connection(x) ? OPEN_WAITS : OPEN_ENDED;
        }
        struct backend *backend = group->targets[target];
        if (backend_reserve(&backend->in_flight, group->config->limits.requests)) {
            opened = carrier_for(x, backend)->open(x, backend, must_be_fresh);
            if (opened != POOL_OPEN_STARTED) /* keeps errno */
                atomic_fetch_sub_explicit(&backend->in_flight, 1, memory_order_relaxed);
        }
        if (x->n_tried < SELECT_TRIED_MAX)
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
        x->wants_fresh = x->upstream_write_failed = x->answer_has_end = false;
        return OPENED;
    }
}

/* Body bytes that came, and its end, while they may have to be sent (again): in x->unsent the bytes, then the
 * lines of the trailers. Without it what was read would be lost when the read buffer is used again. */
static bool keep(struct exchange *x, struct slice body, const struct http_message *trailers)
{
    static const size_t before = sizeof("0\r\n") - 1;
    struct buf_pool *bufs = &x->worker->bufs;
    uint32_t kept = exchange_kept_body(x);
    if (body.len && !buf_append(bufs, &x->unsent, body))
        return false;
    x->unsent_body = kept + (uint32_t)body.len;
    if (!trailers)
        return true;
    size_t n = h1_write_last_chunk(x->worker->scratch, WORKER_SCRATCH_BYTES, trailers);
    return n > before && buf_append(bufs, &x->unsent, slice_of(x->worker->scratch + before, n - before));
}

static struct slice body_of(const struct transfer_pieces *pieces)
{
    return pieces && pieces->n ? slice_of(pieces->iov[0].iov_base, pieces->iov[0].iov_len)
                               : (struct slice){0};
}

/* The carrier may give the request back unread: a small one can be sent again. */
static bool may_come_back(const struct exchange *x)
{
    return x->carrier->keeps_body && !x->has_answer_head && x->request.bytes <= BODY_KEPT_BYTES;
}

/* What was kept, or `pieces` (NULL: no body yet). */
static enum conn_result begin(struct exchange *x, const struct transfer_pieces *pieces)
{
    const struct http_message *trailers = pieces ? pieces->trailers : NULL;
    struct slice body = body_of(pieces);
    if (x->unsent) {
        char *data = x->unsent->data + x->unsent->start;
        size_t len = buf_len(x->unsent), used;
        enum http_reject why;
        body = slice_of(data, x->unsent_body);
        trailers = NULL;
        if (len > x->unsent_body &&
            h1_parse_trailers(data + x->unsent_body, len - x->unsent_body, &x->client->listener->limits,
                              x->worker->trailers, &used, &why) == H1_COMPLETE)
            trailers = x->worker->trailers;
    }
    enum conn_result result = x->carrier->begin(x, body, trailers);
    if (result != CONN_FAILED && !may_come_back(x))
        buf_give(&x->worker->bufs, &x->unsent);
    return result;
}

enum conn_result forward_send(struct exchange *x, struct slice body, const struct http_message *trailers)
{
    bool is_kept = exchange_kept_body(x) + body.len == x->request.bytes;
    if (x->carrier->keeps_body && !(is_kept && may_come_back(x) && keep(x, body, trailers)))
        buf_give(&x->worker->bufs, &x->unsent);
    return x->carrier->send(x, body, trailers);
}

/* A target that may speak HTTP/1.1 as well is asked in that. */
static void fail_unfit(struct exchange *x)
{
    if (x->unfit == END_NO_EXTENDED_CONNECT && x->group->http2 == SNAP_HTTP2_OFFERED) {
        x->backend->workers[x->worker->index].takes_connect = false;
        x->unfit = END_NORMAL;
        forward_otherwise(x);
    } else {
        exchange_fail(x, (enum exchange_end)x->unfit);
    }
}

/* Opens and sends; a pooled connection that breaks at the first write is replaced, since nothing was sent. */
static void attempt(struct exchange *x, const struct transfer_pieces *pieces)
{
    for (;;) {
        bool has_asked_for_fresh = x->wants_fresh;
        enum open_result opened = open_upstream(x);
        bool has_to_wait = opened == OPEN_WAITS || (opened == OPENED && x->is_connecting);
        bool is_kept = has_to_wait || (opened == OPENED && may_come_back(x));
        if (is_kept && pieces && !x->unsent && !keep(x, body_of(pieces), pieces->trailers)) {
            exchange_fail(x, END_NO_MEMORY);
            return;
        }
        if (opened != OPENED)
            return;
        if (has_to_wait) {
            forward_set_deadline(x, x->group->config->timeouts.connect_ms);
            break;
        }
        if (begin(x, pieces) != CONN_FAILED) {
            forward_set_deadline(x, retry_patience_ms(x));
            break;
        }
        if (x->unfit) {
            fail_unfit(x);
            return;
        }
        bool was_pooled = x->is_reused && !has_asked_for_fresh;
        struct backend *backend = x->backend;
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
    if (!x->request.is_done)
        exchange_resume(x);
}

void forward_opened(struct exchange *x)
{
    x->is_connecting = false;
    forward_set_deadline(x, retry_patience_ms(x));
    if (begin(x, NULL) != CONN_FAILED)
        return;
    if (x->unfit) {
        fail_unfit(x);
        return;
    }
    x->upstream_write_failed = true;
    x->discard |= !x->request.is_done; /* a request that is here whole may still be tried again */
}

void forward_connect_failed(struct exchange *x, int err)
{
    counter_add(&target_counters(x, x->backend)->connect_errors, 1);
    forward_note(x, PASSIVE_GATEWAY);
    forward_attempt_failed(x, exchange_end_of_connect(err));
}

void forward_tls_failed(struct exchange *x)
{
    counter_add(&target_counters(x, x->backend)->tls_errors, 1);
    forward_note(x, PASSIVE_GATEWAY);
    forward_attempt_failed(x, END_UPSTREAM_TLS);
}

void forward_due(struct exchange *x)
{
    if (x->is_connecting) {
        counter_add(&target_counters(x, x->backend)->connect_timeouts, 1);
        forward_note(x, PASSIVE_GATEWAY);
        forward_attempt_failed(x, END_CONNECT_TIMEOUT);
    } else if (!x->is_tunnel) { /* there the client's timer watches */
        response_due(x);
    }
}

void forward_start(struct exchange *x, const struct transfer_pieces *pieces)
{
    retry_earn(x);
    if (!share_is_asking(x) && !access_is_asking(x)) {
        attempt(x, pieces);
    } else if ((pieces && !keep(x, body_of(pieces), pieces->trailers)) ||
               !client_arm(x->client)) { /* it must be seen to give up */
        exchange_fail(x, END_NO_MEMORY);
    }
}

void forward_again(struct exchange *x)
{
    attempt(x, NULL);
}

void forward_attempt_failed(struct exchange *x, enum exchange_end end)
{
    bool is_broken = end == END_UPSTREAM_CLOSED || end == END_UPSTREAM_RESET;
    bool is_stale = is_broken && x->is_reused && !x->reused_retry && retry_can_replay(x);
    bool retry = is_stale || retry_take(x, end);
    if (is_broken)
        counter_add(&target_counters(x, x->backend)->resets, 1);
    if (is_broken && !is_stale)
        forward_note(x, PASSIVE_GATEWAY);
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

void forward_otherwise(struct exchange *x)
{
    exchange_drop_upstream(x, false);
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
