/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/retry.h"

#include "core/clock.h"
#include "proxy/forward.h"

enum {
    RETRY_TOKENS_EACH = 100,                    /* a request earns retry.budget_pct of these */
    RETRY_TOKENS_MAX = 100 * RETRY_TOKENS_EACH, /* saved up at most */
    BACKOFF_MAX_MS = 10000,
};

static bool policy_allows(const struct exchange *x, enum exchange_end end)
{
    const struct config_target_group *config = x->group->config;
    switch (end) {
    case END_CONNECT_REFUSED:
    case END_CONNECT_FAILED:
    case END_CONNECT_TIMEOUT:
    case END_UPSTREAM_TLS:
        return config->retry.on_connect_failure;
    case END_UPSTREAM_CLOSED:
    case END_UPSTREAM_RESET:
        return config->retry.on_reset;
    case END_UPSTREAM_REFUSED:
        return config->retry.on_refused_stream;
    case END_RESPONSE_TIMEOUT: /* of one try: whoever sets that limit wants another */
        return config->retry.per_try_ms > 0;
    case END_NORMAL: /* a 502, 503 or 504 of the target's own */
        return config->retry.on_gateway_error;
    default:
        return false;
    }
}

static bool budget_allows(struct exchange *x)
{
    struct snap_group_worker *mine = &x->group->workers[x->worker->index];
    if (mine->retry_tokens >= RETRY_TOKENS_EACH) {
        mine->retry_tokens -= RETRY_TOKENS_EACH;
        return true;
    }
    counter_add(&x->group->runtime->workers[x->worker->index].retries_suppressed, 1);
    return false;
}

void retry_earn(struct exchange *x)
{
    struct snap_group_worker *mine = &x->group->workers[x->worker->index];
    mine->retry_tokens += x->group->config->retry.budget_pct;
    if (mine->retry_tokens > RETRY_TOKENS_MAX)
        mine->retry_tokens = RETRY_TOKENS_MAX;
}

bool retry_can_replay(const struct exchange *x)
{
    return x->request.is_done && x->request.bytes == 0 && !x->answer_begun &&
           http_method_is_idempotent((enum http_method)x->method);
}

/* The request, its body included, is still here. */
static bool has_all(const struct exchange *x)
{
    return x->request.is_done && exchange_kept_body(x) == x->request.bytes && !x->answer_begun;
}

bool retry_take(struct exchange *x, enum exchange_end end)
{
    bool is_unsent = (x->carrier && x->is_connecting) || (end == END_UPSTREAM_REFUSED && has_all(x));
    if (x->attempts >= x->max_attempts || !policy_allows(x, end) || x->discard)
        return false;
    return is_unsent || (retry_can_replay(x) && budget_allows(x));
}

uint32_t retry_patience_ms(const struct exchange *x)
{
    const struct config_target_group *config = x->group->config;
    bool may_try_again = x->attempts < x->max_attempts && retry_can_replay(x);
    return config->retry.per_try_ms && config->retry.per_try_ms < config->timeouts.response_ms &&
                   may_try_again
               ? config->retry.per_try_ms
               : config->timeouts.response_ms;
}

bool retry_out_of_patience(struct exchange *x)
{
    struct worker *worker = x->worker;
    const struct config_target_group *config = x->group->config;
    uint64_t until_ns = x->attempt_ns + config->timeouts.response_ms * NS_PER_MS;
    if (!config->retry.per_try_ms || worker->loop.now_ns >= until_ns)
        return false;
    if (retry_take(x, END_RESPONSE_TIMEOUT)) {
        counter_add(&x->backend->workers[worker->index].counters.response_timeouts, 1);
        forward_note(x, PASSIVE_GATEWAY);
        exchange_drop_upstream(x, false);
        retry_go(x);
    } else {
        loop_timer_set(&worker->loop, x->carrier->timer(x), until_ns);
    }
    return true;
}

/* Doubled with each try, and somewhere between half and all of it, so that those who failed together do not
 * come back together. */
static uint32_t backoff_ms(const struct exchange *x)
{
    uint64_t ms = (uint64_t)x->group->config->retry.backoff_ms << (x->attempts > 1 ? x->attempts - 1 : 0);
    uint32_t most = ms < BACKOFF_MAX_MS ? (uint32_t)ms : BACKOFF_MAX_MS;
    return most - rng_below(&x->worker->rng, most / 2 + 1);
}

void retry_go(struct exchange *x)
{
    struct worker *worker = x->worker;
    counter_add(&x->group->runtime->workers[worker->index].retries, 1);
    if (!x->group->config->retry.backoff_ms) {
        forward_again(x);
        return;
    }
    x->pending_until_ns = worker->loop.now_ns + backoff_ms(x) * NS_PER_MS;
    x->is_backing_off = true;
    list_push_back(&worker->backing_off, &x->pending);
    if (!worker->backoff_timer.due_ns || x->pending_until_ns < worker->backoff_timer.due_ns)
        loop_timer_set(&worker->loop, &worker->backoff_timer, x->pending_until_ns);
}

void retry_leave(struct exchange *x)
{
    if (x->is_backing_off)
        list_remove(&x->pending);
    x->is_backing_off = false;
}

static void on_backoff_due(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = container_of(timer, struct worker, backoff_timer);
    struct list waiting;
    list_init(&waiting);
    while (!list_is_empty(&worker->backing_off)) {
        struct list *node = worker->backing_off.next;
        list_remove(node);
        list_push_back(&waiting, node);
    }
    /* Each leaves `waiting` before anything can happen to it. */
    while (!list_is_empty(&waiting)) {
        struct exchange *x = container_of(waiting.next, struct exchange, pending);
        list_remove(&x->pending);
        if (loop->now_ns >= x->pending_until_ns) {
            x->is_backing_off = false;
            x->pending_until_ns = 0; /* waiting for a connection begins anew */
            forward_again(x);
            continue;
        }
        list_push_back(&worker->backing_off, &x->pending);
        if (!timer->due_ns || x->pending_until_ns < timer->due_ns)
            loop_timer_set(loop, timer, x->pending_until_ns);
    }
}

void retry_init(struct worker *worker)
{
    list_init(&worker->backing_off);
    loop_timer_init(&worker->backoff_timer, on_backoff_due);
}
