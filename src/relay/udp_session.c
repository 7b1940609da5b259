/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/udp.h"

#include "core/clock.h"
#include "proxy/account.h"
#include "proxy/forward.h"
#include "proxy/select.h"

#include <errno.h>
#include <sys/epoll.h>

enum { BURST_MOST = 16 };

static struct worker *worker_of(const struct udp_session *session)
{
    return session->port->listener->worker;
}

static struct target_counters *target_counters(const struct udp_session *session)
{
    return &session->backend->workers[worker_of(session)->index].counters;
}

static void note(struct udp_session *session, enum passive_sign sign)
{
    forward_note_target(worker_of(session), session->group, session->backend, sign);
}

static void log_end(struct udp_session *session, enum exchange_end end)
{
    struct worker *worker = worker_of(session);
    struct accesslog_entry entry = {
        .wall_ns = session->begun_wall_ns,
        .duration_us = (worker->loop.now_ns - session->begun_ns) / NS_PER_US,
        .client = session->key.peer,
        .peer = session->key.peer,
        .peer_port = session->key.peer_port,
        .listener = session->port->listener->current->config->name,
        .group = session->group->config->name,
        .target = session->target < session->group->n_targets
                      ? session->group->settings[session->target].endpoint.text
                      : (struct slice){0},
        .protocol = "UDP",
        .received_bytes = session->received_bytes,
        .sent_bytes = session->sent_bytes,
        .attempts = session->attempts,
        .reason = exchange_end_word(end),
    };
    exchange_write_log(worker, session->snapshot->log, &entry);
}

static void drop_target(struct udp_session *session)
{
    struct backend *backend = session->backend;
    if (!backend)
        return;
    gauge_add(&target_counters(session)->open_connections, -1);
    atomic_fetch_sub_explicit(&backend->connections, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&backend->in_flight, 1, memory_order_relaxed);
    loop_close(&worker_of(session)->loop, &session->io);
    session->backend = NULL;
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct udp_session *session = container_of(deferred, struct udp_session, deferred);
    slab_give(&worker_of(session)->udp->sessions, session);
}

void udp_session_close(struct udp_session *session, enum exchange_end end)
{
    struct worker *worker = worker_of(session);
    if (session->snapshot->log)
        log_end(session, end);
    drop_target(session);
    worker_unpin(worker, session->snapshot);
    session->deferred.release = release;
    loop_defer(&worker->loop, &session->deferred);
}

static uint32_t epoch_of(const struct snap_group *group)
{
    return atomic_load_explicit(&group->runtime->epoch, memory_order_acquire);
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events);

/* A socket to one target of the group. False: it has no room, or the system none. */
static bool connect_to(struct udp_session *session, uint32_t target)
{
    struct worker *worker = worker_of(session);
    struct backend *backend = session->group->targets[target];
    struct target_counters *counters = &backend->workers[worker->index].counters;
    if (!backend_reserve(&backend->connections, session->group->config->limits.connections))
        return false;
    session->io.fd = datagram_connect(&backend->addr.sa, backend->addr.len);
    session->io.on_ready = on_ready;
    if (session->io.fd < 0 || loop_arm_events(&worker->loop, &session->io, EPOLLIN)) {
        counter_add(&counters->connect_errors, 1);
        loop_close(&worker->loop, &session->io);
        atomic_fetch_sub_explicit(&backend->connections, 1, memory_order_relaxed);
        return false;
    }
    counter_add(&counters->connects, 1);
    gauge_add(&counters->open_connections, 1);
    atomic_fetch_add_explicit(&backend->in_flight, 1, memory_order_relaxed);
    session->backend = backend;
    session->target = target;
    session->epoch = epoch_of(session->group);
    session->is_refused = false;
    session->attempts++;
    return true;
}

/* Chooses one and connects, not to `but` (BALANCE_NONE: any) while there is another. */
static bool find_target(struct udp_session *session, uint32_t but)
{
    struct snap_group *group = session->group;
    struct worker *worker = worker_of(session);
    uint16_t tried[SELECT_TRIED_MAX] = {(uint16_t)but};
    uint32_t n_tried = but == BALANCE_NONE ? 0 : 1;
    uint64_t hash = select_hash_address(&session->key.peer);
    for (; n_tried < SELECT_TRIED_MAX; n_tried++) {
        uint32_t target = select_from(group, worker, hash, tried, n_tried);
        if (target == BALANCE_NONE) {
            counter_add(&group->runtime->workers[worker->index].no_target, 1);
            return false;
        }
        if (connect_to(session, target))
            return true;
        tried[n_tried] = (uint16_t)target;
    }
    return false;
}

struct udp_session *udp_session_open(struct udp_port *port, const struct udp_key *key,
                                     const struct datagram *first)
{
    struct worker *worker = port->listener->worker;
    struct udp_session *session = slab_try_take(&worker->udp->sessions);
    if (!session)
        return NULL;
    const struct snap_listener *current = port->listener->current;
    *session = (struct udp_session){
        .io.fd = -1,
        .port = port,
        .key = *key,
        .peer = first->peer,
        .snapshot = current->snapshot,
        .group = &current->snapshot->groups[current->config->default_target_group],
        .begun_ns = worker->loop.now_ns,
        .begun_wall_ns = worker->loop.wall_ns,
        .active_ns = worker->loop.now_ns,
        .moved_ns = worker->loop.now_ns,
        .burst = 1,
    };
    list_init(&session->order);
    if (!find_target(session, BALANCE_NONE)) {
        slab_give(&worker->udp->sessions, session);
        return NULL;
    }
    worker_pin(worker, session->snapshot);
    return session;
}

/* Where the session's target stands in the listener's group of now; BALANCE_NONE: it is not there, or does
 * not serve. */
static uint32_t find_again(const struct snap_group *group, const struct backend *backend)
{
    for (uint32_t i = 0; i < group->n_targets; i++)
        if (group->targets[i] == backend)
            return group->settings[i].enabled ? i : BALANCE_NONE;
    return BALANCE_NONE;
}

/* The configuration or the health of targets has changed, or the target has refused: stays where it is, or
 * goes elsewhere. False: there is nowhere to go. */
static bool follow(struct udp_session *session)
{
    struct worker *worker = worker_of(session);
    const struct snap_listener *current = session->port->listener->current;
    uint32_t target = session->target, but = session->is_refused ? target : BALANCE_NONE;
    if (session->snapshot != current->snapshot) {
        struct snap_group *group = &current->snapshot->groups[current->config->default_target_group];
        target = session->backend ? find_again(group, session->backend) : BALANCE_NONE;
        but = session->is_refused ? target : BALANCE_NONE;
        worker_pin(worker, current->snapshot);
        if (target == BALANCE_NONE)
            drop_target(session); /* while the old snapshot still keeps it */
        worker_unpin(worker, session->snapshot);
        session->snapshot = current->snapshot;
        session->group = group;
        session->target = target == BALANCE_NONE ? 0 : target;
    }
    session->epoch = epoch_of(session->group);
    if (session->backend && !session->is_refused && select_may_take(session->group, worker, target))
        return true;
    drop_target(session);
    return find_target(session, but);
}

static bool is_settled(const struct udp_session *session)
{
    return session->backend && !session->is_refused &&
           session->snapshot == session->port->listener->current->snapshot &&
           session->epoch == epoch_of(session->group);
}

/* The kernel tells of an earlier datagram with the next call: this one was not sent. */
static void note_refusal(struct udp_session *session)
{
    session->is_refused = true;
    counter_add(&target_counters(session)->connect_errors, 1);
    note(session, PASSIVE_GATEWAY);
}

static bool is_refusal(int err)
{
    return err == ECONNREFUSED || err == EHOSTUNREACH || err == ENETUNREACH || err == EHOSTDOWN;
}

void udp_session_forward(struct udp_session *session, const struct datagram *datagram)
{
    struct listener_counters *counters = session->port->listener->counters;
    uint32_t n = datagram_count(datagram);
    for (int attempt = 0;; attempt++) {
        if (!is_settled(session) && !follow(session)) {
            counter_add(&counters->udp_undelivered, n);
            udp_end(session, END_NO_TARGET);
            return;
        }
        int err = datagram_send(session->io.fd, datagram);
        if (!err)
            break;
        if (is_refusal(err))
            note_refusal(session);
        if (!is_refusal(err) || attempt > 0) {
            counter_add(&counters->udp_undelivered, n);
            return;
        }
    }
    counter_add(&target_counters(session)->sent_bytes, datagram->len);
    session->received_bytes += datagram->len;
    session->requests += n;
    udp_touch(session, false);
}

/* Turns what came from the target, items[from..) of the batch, into what goes to the client. */
static void address_replies(struct udp_session *session, struct datagram_batch *batch, uint32_t from)
{
    struct listener_counters *counters = session->port->listener->counters;
    uint64_t bytes = 0;
    uint32_t n = 0;
    for (uint32_t i = from; i < batch->n; i++) {
        struct datagram *item = &batch->items[i];
        item->peer = session->peer;
        item->local = session->key.local;
        bytes += item->len;
        n += datagram_count(item);
    }
    counter_add(&target_counters(session)->received_bytes, bytes);
    counter_add(&counters->sent_bytes, bytes);
    counter_add(&counters->udp_sent, n);
    session->sent_bytes += bytes;
    session->replies += n;
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct udp_session *session = container_of(io, struct udp_session, io);
    struct udp_port *port = session->port;
    struct datagram_batch *batch = udp_replies(port, session->burst);
    uint32_t from = batch->n;
    int err;
    uint32_t n = datagram_receive(batch, io->fd, session->burst, &err);
    if (n == 0) {
        if (is_refusal(err))
            note_refusal(session);
        return;
    }
    /* One, which spares the kernel a look at an empty queue; more as long as it is not empty. */
    session->burst = n < session->burst            ? 1
                     : session->burst < BURST_MOST ? (uint8_t)(session->burst * 2)
                                                   : BURST_MOST;
    address_replies(session, batch, from);
    if (!session->is_answered)
        note(session, PASSIVE_GOOD);
    udp_touch(session, true);
    uint32_t enough = port->listener->current->config->limits.replies;
    if ((enough && session->replies >= session->requests * enough) ||
        (port->is_closing && session->replies >= session->requests))
        udp_end(session, END_NORMAL);
}
