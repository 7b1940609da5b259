/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/accept.h"

#include "core/clock.h"
#include "downstream/client_h1.h"
#include "guard/admit.h"
#include "relay/relay.h"
#include "relay/udp.h"
#include "serve/arrival.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { ACCEPTS_PER_TURN = 64, ACCEPT_RETRY_MS = 100 };

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct worker_listener *listener = container_of(deferred, struct worker_listener, deferred);
    list_remove(&listener->node);
    udp_free(listener->udp);
    snapshot_unref(listener->holds);
    free(listener);
}

static bool is_empty(const struct worker_listener *listener)
{
    return list_is_empty(&listener->clients) && list_is_empty(&listener->relays) &&
           list_is_empty(&listener->arrivals) && (!listener->udp || listener->udp->n == 0);
}

static void release_when_empty(struct worker_listener *listener)
{
    if (!listener->holds || !is_empty(listener))
        return;
    listener->deferred.release = release;
    loop_defer(&listener->worker->loop, &listener->deferred);
}

static void connection_gone(struct worker_listener *listener)
{
    struct worker *worker = listener->worker;
    worker->n_clients--;
    gauge_add(&listener->counters->active_connections, -1);
    atomic_fetch_sub_explicit(&listener->runtime->connections, 1, memory_order_relaxed);
    release_when_empty(listener);
    if (worker->is_stopping && worker->n_clients == 0)
        loop_stop(&worker->loop);
}

void accept_hand_over(struct worker_listener *listener, int fd, struct arrival_facts *facts)
{
    struct ip_addr ip = net_addr_to_ip(facts->peer);
    if (!admit(listener, &ip)) {
        close(fd);
        buf_give(&listener->worker->bufs, &facts->proxied);
        connection_gone(listener);
        return;
    }
    if (config_is_relayed(listener->current->config->protocol))
        relay_open(listener, fd, facts);
    else
        client_open(listener, fd, facts);
}

static void accept_one(struct worker_listener *listener, int fd, const struct net_addr *peer)
{
    uint32_t limit = listener->current->config->limits.connections;
    uint32_t before = atomic_fetch_add_explicit(&listener->runtime->connections, 1, memory_order_relaxed);
    if (limit && before >= limit) {
        atomic_fetch_sub_explicit(&listener->runtime->connections, 1, memory_order_relaxed);
        counter_add(&listener->counters->connections_refused, 1);
        close(fd);
        return;
    }
    counter_add(&listener->counters->connections, 1);
    gauge_add(&listener->counters->active_connections, 1);
    listener->worker->n_clients++;
    struct arrival_facts facts = {.peer = peer};
    if (iso_unlikely(arrival_is_wanted(listener->current->config)))
        arrival_open(listener, fd, peer);
    else
        accept_hand_over(listener, fd, &facts);
}

/* Returns false when the queue is empty or accepting is not possible now. */
static bool accept_next(struct worker_listener *listener)
{
    struct net_addr peer;
    peer.len = sizeof(peer.un);
    int fd = accept4(listener->io.fd, &peer.sa, &peer.len, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        accept_one(listener, fd, &peer);
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return false;
    if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO)
        return true;
    /* No descriptors or memory: a level-triggered socket would spin, so look away for a while. */
    counter_add(&listener->worker->counters.accept_errors, 1);
    struct loop *loop = &listener->worker->loop;
    loop_disarm(loop, &listener->io);
    loop_timer_set(loop, &listener->retry_timer, loop->now_ns + ACCEPT_RETRY_MS * NS_PER_MS);
    return false;
}

static void on_accept(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct worker_listener *listener = container_of(io, struct worker_listener, io);
    /* One, which spares the call that finds the queue empty; more as long as the queue is not empty turn
     * after turn. */
    bool is_short = loop->turns == listener->accepted_turn + 1;
    uint32_t more = listener->burst < ACCEPTS_PER_TURN ? listener->burst * 2 : ACCEPTS_PER_TURN;
    listener->burst = is_short ? more : 1;
    listener->accepted_turn = loop->turns;
    for (uint32_t i = 0; i < listener->burst && accept_next(listener); i++)
        ;
}

static void arm(struct worker_listener *listener)
{
    struct loop *loop = &listener->worker->loop;
    uint32_t exclusive = listener->udp ? 0 : EPOLLEXCLUSIVE;
    if (loop_arm_events(loop, &listener->io, EPOLLIN | exclusive))
        loop_timer_set(loop, &listener->retry_timer, loop->now_ns + ACCEPT_RETRY_MS * NS_PER_MS);
}

static void on_retry(struct loop *loop, struct loop_timer *timer)
{
    struct worker_listener *listener = container_of(timer, struct worker_listener, retry_timer);
    if (listener->io.fd >= 0)
        arm(listener);
}

static struct worker_listener *find(struct worker *worker, const struct listener_runtime *runtime)
{
    list_for_each (node, &worker->listeners) {
        struct worker_listener *listener = container_of(node, struct worker_listener, node);
        if (listener->runtime == runtime && !listener->holds)
            return listener;
    }
    return NULL;
}

static void serve(struct worker *worker, const struct snap_listener *snap)
{
    struct worker_listener *listener = find(worker, snap->runtime);
    if (!listener) {
        listener = calloc(1, sizeof(*listener));
        iso_assert(listener != NULL);
        listener->io = (struct loop_io){.fd = snap->runtime->fds[worker->index], .on_ready = on_accept};
        loop_timer_init(&listener->retry_timer, on_retry);
        listener->worker = worker;
        listener->connection_gone = connection_gone;
        listener->runtime = snap->runtime;
        listener->counters = &snap->runtime->workers[worker->index];
        listener->burst = 1;
        listener->current = snap;
        if (snap->config->protocol == CONFIG_UDP)
            udp_open(listener);
        list_init(&listener->clients);
        list_init(&listener->relays);
        list_init(&listener->arrivals);
        list_push_back(&worker->listeners, &listener->node);
        arm(listener);
    }
    const struct config_limits_listener *limits = &snap->config->limits;
    listener->current = snap;
    listener->limits = (struct h1_limits){
        .head_bytes = limits->header_bytes, .uri_bytes = limits->uri_bytes, .fields = limits->headers};
}

static void close_socket(struct worker_listener *listener)
{
    struct worker *worker = listener->worker;
    if (listener->io.fd < 0)
        return;
    if (listener->udp) {
        udp_close(listener);
        return;
    }
    while (accept_next(listener)) /* connections that the kernel completed are ours to answer */
        ;
    loop_timer_remove(&worker->loop, &listener->retry_timer);
    listener->runtime->fds[worker->index] = -1;
    loop_disarm(&worker->loop, &listener->io);
    loop_close(&worker->loop, &listener->io);
}

/* Idle connections end, busy ones after their answer. */
static void end_clients(struct worker_listener *listener)
{
    arrival_cut_all(listener);
    list_for_each_safe (node, next, &listener->clients) {
        client_wind_down(container_of(node, struct client, node));
    }
}

/* Left the configuration: nothing new comes in, what is open ends in order. */
static void retire(struct worker_listener *listener)
{
    close_socket(listener);
    listener->holds = listener->current->snapshot;
    snapshot_ref(listener->holds);
    if (is_empty(listener))
        release_when_empty(listener);
    else
        end_clients(listener);
}

void accept_adopt(struct worker *worker)
{
    struct snapshot *now = worker->snapshot;
    list_for_each_safe (node, next, &worker->listeners) {
        struct worker_listener *listener = container_of(node, struct worker_listener, node);
        bool is_kept = listener->holds != NULL;
        for (uint32_t i = 0; i < now->n_listeners && !is_kept; i++)
            is_kept = now->listeners[i].runtime == listener->runtime;
        if (!is_kept)
            retire(listener);
    }
    for (uint32_t i = 0; i < now->n_listeners; i++)
        serve(worker, &now->listeners[i]);
}

void accept_stop(struct worker *worker)
{
    list_for_each_safe (node, next, &worker->listeners) {
        close_socket(container_of(node, struct worker_listener, node));
    }
}
