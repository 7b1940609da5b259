/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/drain.h"

#include "core/clock.h"
#include "downstream/stream.h"
#include "proxy/answer.h"
#include "proxy/exchange.h"
#include "proxy/tunnel.h"
#include "relay/relay.h"

enum { NOTICE_MS = 1000 };

static bool needs_notice(const struct exchange *x)
{
    return x->is_tunnel && x->is_websocket && !x->is_going_away;
}

/* When something is to be done about the exchange next. */
static uint64_t next_step_ns(const struct exchange *x)
{
    uint64_t notice_ns = NOTICE_MS * NS_PER_MS;
    return needs_notice(x) && x->drain_due_ns > notice_ns ? x->drain_due_ns - notice_ns : x->drain_due_ns;
}

static void set_timer(struct worker *worker)
{
    uint64_t first_ns = UINT64_MAX;
    list_for_each (node, &worker->draining) {
        uint64_t step_ns = next_step_ns(container_of(node, struct exchange, draining));
        first_ns = step_ns < first_ns ? step_ns : first_ns;
    }
    if (first_ns != UINT64_MAX)
        loop_timer_set(&worker->loop, &worker->drain_timer, first_ns);
}

static void cut(struct exchange *x)
{
    counter_add(&x->group->runtime->workers[x->worker->index].drain_cut, 1);
    exchange_fail(x, END_DRAINED);
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = container_of(timer, struct worker, drain_timer);
    list_for_each_safe (node, after, &worker->draining) {
        struct exchange *x = container_of(node, struct exchange, draining);
        if (loop->now_ns < next_step_ns(x))
            continue;
        if (needs_notice(x))
            tunnel_say_going_away(x);
        else
            cut(x);
    }
    set_timer(worker);
}

static void add(struct exchange *x, uint64_t due_ns)
{
    if (x->drain_due_ns && x->drain_due_ns <= due_ns)
        return;
    x->drain_due_ns = due_ns;
    list_remove(&x->draining);
    list_push_back(&x->worker->draining, &x->draining);
}

static void add_of(const struct client *client, uint64_t (*due_of)(const struct exchange *x, uint64_t arg),
                   uint64_t arg)
{
    struct exchange *x = client->exchange;
    uint64_t due_ns = x ? due_of(x, arg) : 0;
    if (due_ns)
        add(x, due_ns);
}

/* Calls add() for what `due_of` gives a deadline. */
static void add_all(struct worker *worker, uint64_t (*due_of)(const struct exchange *x, uint64_t arg),
                    uint64_t arg)
{
    list_for_each (l, &worker->listeners) {
        struct worker_listener *listener = container_of(l, struct worker_listener, node);
        list_for_each (c, &listener->clients) {
            struct client *client = container_of(c, struct client, node);
            add_of(client, due_of, arg);
            if (!client->h2)
                continue;
            list_for_each (s, &client->h2->streams) {
                add_of(&container_of(s, struct stream, node)->client, due_of, arg);
            }
        }
    }
    set_timer(worker);
}

static uint64_t due_of_leaving_target(const struct exchange *x, uint64_t now_ns)
{
    if (!x->backend || snapshot_serves_backend(x->worker->snapshot, x->backend))
        return 0;
    return now_ns + x->group->config->deregistration_delay_ms * NS_PER_MS;
}

/* Targets that came back before the deadline keep what they have. */
static void forgive(struct worker *worker)
{
    list_for_each_safe (node, after, &worker->draining) {
        struct exchange *x = container_of(node, struct exchange, draining);
        if (x->is_going_away || !x->backend || !snapshot_serves_backend(worker->snapshot, x->backend))
            continue;
        x->drain_due_ns = 0;
        list_remove(&x->draining);
    }
}

void drain_begin(struct worker *worker)
{
    if (!worker->is_stopping)
        forgive(worker);
    add_all(worker, due_of_leaving_target, worker->loop.now_ns);
    list_for_each (node, &worker->listeners) {
        relay_drain(container_of(node, struct worker_listener, node));
    }
}

static uint64_t due_of_tunnel(const struct exchange *x, uint64_t due_ns)
{
    return x->is_tunnel ? due_ns : 0;
}

void drain_tunnels(struct worker *worker, uint64_t due_ns)
{
    add_all(worker, due_of_tunnel, due_ns);
}

void drain_init(struct worker *worker)
{
    list_init(&worker->draining);
    loop_timer_init(&worker->drain_timer, on_due);
}
