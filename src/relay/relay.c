/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/relay.h"

#include "core/clock.h"
#include "proxy/account.h"
#include "proxy/announce.h"
#include "proxy/exchange.h"
#include "proxy/forward.h"
#include "proxy/select.h"
#include "worker/lane.h"

#include <errno.h>
#include <sys/epoll.h>

struct relay {
    struct conn client;
    struct worker_listener *listener;
    struct snapshot *snapshot;      /* pinned */
    struct snap_group *group;       /* borrows from the snapshot; NULL: there is none for it */
    const struct config_rule *rule; /* the same; NULL: the listener's default */
    char *server_name;              /* owns: worker->names; NULL: none, or nobody logs it */
    uint8_t server_name_len;
    struct backend *backend;               /* counted in flight; NULL between attempts */
    struct upstream *upstream;             /* lent; NULL between attempts */
    struct lane_pipe to_target, to_client; /* bytes under way in bulk */
    struct buf *preface; /* owns: the PROXY header for the target, until one has accepted; NULL: none */
    struct loop_later resume;
    struct list node; /* in listener->relays */
    struct loop_deferred deferred;
    uint64_t begun_ns, begun_wall_ns;
    uint64_t active_ns;    /* the last byte passed */
    uint64_t drain_due_ns; /* 0: its target is not leaving */
    uint64_t received_bytes, sent_bytes;
    uint64_t hash;
    struct ip_addr peer;
    uint16_t peer_port;
    uint16_t tried[SELECT_TRIED_MAX];
    uint8_t n_tried, attempts;
};

static struct worker *worker_of(const struct relay *relay)
{
    return relay->listener->worker;
}

static struct target_counters *target_counters(const struct relay *relay)
{
    return &relay->upstream->backend->workers[worker_of(relay)->index].counters;
}

static void log_end(struct relay *relay, enum exchange_end end)
{
    const struct worker *worker = worker_of(relay);
    const struct config_target_group *group = relay->group ? relay->group->config : NULL;
    const struct config_listener *listener = relay->listener->current->config;
    struct accesslog_entry entry = {
        .wall_ns = relay->begun_wall_ns,
        .duration_us = (worker->loop.now_ns - relay->begun_ns) / NS_PER_US,
        .client = relay->peer,
        .peer = relay->peer,
        .peer_port = relay->peer_port,
        .listener = listener->name,
        .rule = relay->rule ? relay->rule->name : (struct slice){0},
        .group = group ? group->name : (struct slice){0},
        .host = slice_of(relay->server_name, relay->server_name_len),
        .target = relay->n_tried ? relay->group->settings[relay->tried[relay->n_tried - 1]].endpoint.text
                                 : (struct slice){0},
        .protocol = listener->protocol == CONFIG_TLS ? "TLS" : "TCP",
        .received_bytes = relay->received_bytes,
        .sent_bytes = relay->sent_bytes,
        .attempts = relay->attempts,
        .reason = exchange_end_word(end),
    };
    exchange_write_log(worker_of(relay), relay->snapshot->log, &entry);
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct relay *relay = container_of(deferred, struct relay, deferred);
    if (relay->server_name)
        slab_give(&worker_of(relay)->names, relay->server_name);
    slab_give(&worker_of(relay)->relays, relay);
}

static void drop_upstream(struct relay *relay)
{
    if (relay->backend)
        atomic_fetch_sub_explicit(&relay->backend->in_flight, 1, memory_order_relaxed);
    relay->backend = NULL;
    if (relay->upstream)
        pool_close(&worker_of(relay)->pool, &relay->upstream);
}

static void end_relay(struct relay *relay, enum exchange_end end)
{
    struct worker *worker = worker_of(relay);
    struct worker_listener *listener = relay->listener;
    drop_upstream(relay);
    if (relay->snapshot->log)
        log_end(relay, end);
    conn_close(&relay->client, &worker->loop, &worker->bufs);
    lane_pipe_drop(worker, &relay->to_target);
    lane_pipe_drop(worker, &relay->to_client);
    buf_give(&worker->bufs, &relay->preface);
    loop_cancel_later(&relay->resume);
    list_remove(&relay->node);
    worker_unpin(worker, relay->snapshot);
    relay->deferred.release = release;
    loop_defer(&worker->loop, &relay->deferred);
    listener->connection_gone(listener);
}

/* Moves what can be moved one way. False: the relay has ended. */
static bool move(struct relay *relay, const struct lane *lane)
{
    struct worker *worker = worker_of(relay);
    switch (lane_move(worker, lane, &relay->active_ns)) {
    case LANE_MOVED:
        return true;
    case LANE_AGAIN:
        loop_later(&worker->loop, &relay->resume);
        return true;
    case LANE_FAILED:
        break;
    }
    end_relay(relay, END_TUNNEL);
    return false;
}

static void pump(struct relay *relay)
{
    struct conn *client = &relay->client;
    if (!relay->upstream || relay->upstream->conn.is_connecting)
        return;
    struct conn *upstream = &relay->upstream->conn;
    struct target_counters *target = target_counters(relay);
    struct listener_counters *listener = relay->listener->counters;
    const struct lane to_target = {.from = client,
                                   .to = upstream,
                                   .received = &listener->received_bytes,
                                   .sent = &target->sent_bytes,
                                   .bytes = &relay->received_bytes,
                                   .pipe = &relay->to_target};
    const struct lane to_client = {.from = upstream,
                                   .to = client,
                                   .received = &target->received_bytes,
                                   .sent = &listener->sent_bytes,
                                   .bytes = &relay->sent_bytes,
                                   .pipe = &relay->to_client};
    if (!move(relay, &to_target) || !move(relay, &to_client))
        return;
    if (client->saw_eof && upstream->saw_eof && !client->out && !upstream->out)
        end_relay(relay, END_NORMAL);
}

static void on_resume(struct loop *loop, struct loop_later *later)
{
    pump(container_of(later, struct relay, resume));
}

static void set_deadline(struct relay *relay)
{
    uint64_t due_ns = relay->active_ns + relay->listener->current->config->timeouts.tunnel_ms * NS_PER_MS;
    if (relay->drain_due_ns && relay->drain_due_ns < due_ns)
        due_ns = relay->drain_due_ns;
    loop_timer_set(&worker_of(relay)->loop, &relay->client.timer, due_ns);
}

static void client_due(struct loop *loop, struct loop_timer *timer)
{
    struct relay *relay = container_of(timer, struct relay, client.timer);
    uint64_t idle_ms = (loop->now_ns - relay->active_ns) / NS_PER_MS;
    if (relay->drain_due_ns && loop->now_ns >= relay->drain_due_ns) {
        counter_add(&relay->group->runtime->workers[worker_of(relay)->index].drain_cut, 1);
        end_relay(relay, END_DRAINED);
    } else if (idle_ms >= relay->listener->current->config->timeouts.tunnel_ms) {
        end_relay(relay, END_TUNNEL_IDLE);
    } else {
        set_deadline(relay);
    }
}

static void client_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct relay *relay = container_of(io, struct relay, client.io);
    conn_note_events(&relay->client, events);
    if (events & EPOLLERR || conn_flush(&relay->client, &worker_of(relay)->bufs) == CONN_FAILED) {
        end_relay(relay, END_CLIENT_ABORT);
        return;
    }
    pump(relay);
}

static void connect_next(struct relay *relay, enum exchange_end last);

/* A connection that stands is all that a target of TCP can be judged by. */
static void note(struct relay *relay, enum passive_sign sign)
{
    forward_note_target(worker_of(relay), relay->group, relay->upstream->backend, sign);
}

static void upstream_due(struct loop *loop, struct loop_timer *timer)
{
    struct upstream *upstream = container_of(timer, struct upstream, conn.timer);
    struct relay *relay = upstream->owner;
    if (!upstream->conn.is_connecting)
        return;
    counter_add(&target_counters(relay)->connect_timeouts, 1);
    note(relay, PASSIVE_GATEWAY);
    connect_next(relay, END_CONNECT_TIMEOUT);
}

static void upstream_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct upstream *upstream = container_of(io, struct upstream, conn.io);
    struct relay *relay = upstream->owner;
    conn_note_events(&upstream->conn, events);
    if (upstream->conn.is_connecting) {
        int err = 0;
        switch (pool_connect_check(upstream, events, &err)) {
        case POOL_CONNECT_WAITS:
            return;
        case POOL_CONNECT_FAILED:
            counter_add(&target_counters(relay)->connect_errors, 1);
            note(relay, PASSIVE_GATEWAY);
            connect_next(relay, exchange_end_of_connect(err));
            return;
        case POOL_CONNECT_OPEN:
            break;
        }
        upstream->conn.is_connecting = false;
        buf_give(&worker_of(relay)->bufs, &relay->preface);
        note(relay, PASSIVE_GOOD);
        loop_timer_clear(&upstream->conn.timer);
    }
    if (conn_flush(&upstream->conn, &worker_of(relay)->bufs) == CONN_FAILED) {
        end_relay(relay, END_UPSTREAM_RESET);
        return;
    }
    pump(relay);
}

/* Gives a new connection its PROXY header, where there is one. False: errno says why. */
static bool introduce(struct relay *relay)
{
    const struct buf *preface = relay->preface;
    errno = ENOMEM;
    return !preface ||
           pool_preface(relay->upstream, slice_of(preface->data + preface->start, buf_len(preface)));
}

/* The next attempt; `last` is how the one before ended. Nothing of the client's bytes was read before a
 * target has accepted, so trying another is always safe. */
static void connect_next(struct relay *relay, enum exchange_end last)
{
    struct worker *worker = worker_of(relay);
    struct snap_group *group = relay->group;
    drop_upstream(relay);
    while (relay->attempts < group->config->retry.attempts && relay->n_tried < SELECT_TRIED_MAX) {
        uint32_t target = select_from(group, worker, relay->hash, relay->tried, relay->n_tried);
        if (target == BALANCE_NONE) {
            counter_add(&group->runtime->workers[worker->index].no_target, 1);
            end_relay(relay, END_NO_TARGET);
            return;
        }
        struct backend *backend = group->targets[target];
        relay->tried[relay->n_tried++] = (uint16_t)target;
        relay->attempts++;
        switch (
            pool_open(&worker->pool, backend, NULL, group->config->limits.connections, &relay->upstream)) {
        case POOL_OPEN_FULL:
            last = END_TARGETS_FULL;
            continue;
        case POOL_OPEN_FAILED:
            counter_add(&backend->workers[worker->index].counters.connect_errors, 1);
            last = exchange_end_of_connect(errno);
            continue;
        case POOL_OPEN_STARTED:
            break;
        }
        if (!introduce(relay)) {
            last = exchange_end_of_connect(errno);
            pool_close(&worker->pool, &relay->upstream);
            continue;
        }
        atomic_fetch_add_explicit(&backend->in_flight, 1, memory_order_relaxed);
        relay->backend = backend;
        relay->upstream->owner = relay;
        relay->upstream->conn.io.on_ready = upstream_ready;
        relay->upstream->conn.timer.on_due = upstream_due;
        if (relay->upstream->conn.is_connecting)
            loop_timer_set(&worker->loop, &relay->upstream->conn.timer,
                           worker->loop.now_ns + group->config->timeouts.connect_ms * NS_PER_MS);
        else
            loop_later(&worker->loop, &relay->resume);
        return;
    }
    end_relay(relay, last);
}

void relay_init(struct worker *worker)
{
    slab_init(&worker->relays, sizeof(struct relay));
    slab_init(&worker->names, UINT8_MAX);
}

/* The header that the group's targets want. False: no memory. */
static bool prepare_preface(struct relay *relay, const struct arrival_facts *facts)
{
    enum config_proxy_version version = relay->group->config->proxy_protocol;
    if (version == CONFIG_PROXY_NONE)
        return true;
    char header[PROXYPROTO_WRITE_BYTES];
    const struct announce_facts known = {.peer = &relay->peer,
                                         .peer_port = relay->peer_port,
                                         .fd = relay->client.io.fd,
                                         .proxied = facts->proxied,
                                         .server_name = facts->server_name};
    size_t len = announce_write(version, &known, header);
    return buf_append(&worker_of(relay)->bufs, &relay->preface, slice_of(header, len));
}

/* Nobody serves this: a client that speaks TLS is told so in its own way (RFC 6066 3, RFC 8446 6.2). */
static void turn_away(struct relay *relay)
{
    static const char unrecognized_name[] = {21, 3, 3, 0, 2, 2, 112};
    const struct config_rule *rule = relay->rule;
    counter_add(&relay->listener->counters->hellos_unrouted, 1);
    char *rbuf =
        worker_of(relay)->rbuf; /* its hello is taken first: with bytes unread a close destroys the alert */
    (void)!recv(relay->client.io.fd, rbuf, WORKER_READ_BYTES, 0);
    ssize_t sent = send(relay->client.io.fd, unrecognized_name, sizeof(unrecognized_name), MSG_NOSIGNAL);
    relay->sent_bytes += sent > 0 ? (size_t)sent : 0;
    end_relay(relay, !rule ? END_NO_ROUTE : rule->deny_status ? END_DENY : END_ALL_WEIGHTS_ZERO);
}

/* The name that the client asks for, where it will be logged. */
static void keep_name(struct relay *relay, struct slice name)
{
    if (!name.len || !relay->snapshot->log)
        return;
    relay->server_name = slab_try_take(&worker_of(relay)->names);
    relay->server_name_len = relay->server_name ? (uint8_t)name.len : 0;
    if (relay->server_name)
        memcpy(relay->server_name, name.ptr, name.len);
}

/* The rule's group, or the listener's; NULL: none. */
static struct snap_group *group_of(const struct worker_listener *listener, const struct config_rule *rule)
{
    const struct snap_listener *current = listener->current;
    int32_t index = current->config->default_target_group;
    if (rule)
        index = rule->deny_status ? -1 : route_forward(rule, &listener->worker->rng);
    return index < 0 ? NULL : &current->snapshot->groups[index];
}

void relay_open(struct worker_listener *listener, int fd, struct arrival_facts *facts)
{
    struct worker *worker = listener->worker;
    struct relay *relay = slab_try_take(&worker->relays);
    if (!relay) {
        loop_close(&worker->loop, &(struct loop_io){.fd = fd});
        buf_give(&worker->bufs, &facts->proxied);
        listener->connection_gone(listener);
        return;
    }
    struct snapshot *snapshot = listener->current->snapshot;
    *relay = (struct relay){.listener = listener,
                            .snapshot = snapshot,
                            .group = group_of(listener, facts->rule),
                            .rule = facts->rule,
                            .begun_ns = worker->loop.now_ns,
                            .begun_wall_ns = worker->loop.wall_ns,
                            .active_ns = worker->loop.now_ns,
                            .peer = net_addr_to_ip(facts->peer),
                            .peer_port = net_addr_port(facts->peer)};
    conn_init(&relay->client, fd, client_ready, client_due);
    loop_later_init(&relay->resume, on_resume);
    list_push_back(&listener->relays, &relay->node);
    worker_pin(worker, snapshot);
    keep_name(relay, facts->server_name);
    if (!relay->group) {
        buf_give(&worker->bufs, &facts->proxied);
        turn_away(relay);
        return;
    }
    relay->hash = select_hash_address(&relay->peer);
    bool is_prepared = prepare_preface(relay, facts);
    buf_give(&worker->bufs, &facts->proxied);
    if (!is_prepared || loop_arm(&worker->loop, &relay->client.io)) {
        end_relay(relay, END_NO_MEMORY);
        return;
    }
    set_deadline(relay);
    connect_next(relay, END_CONNECT_FAILED);
}

void relay_cut_all(struct worker_listener *listener)
{
    list_for_each_safe (node, after, &listener->relays) {
        end_relay(container_of(node, struct relay, node), END_SHUTDOWN);
    }
}

void relay_drain(struct worker_listener *listener)
{
    const struct worker *worker = listener->worker;
    list_for_each (node, &listener->relays) {
        struct relay *relay = container_of(node, struct relay, node);
        if (!relay->backend || snapshot_serves_backend(worker->snapshot, relay->backend)) {
            relay->drain_due_ns = 0;
            continue;
        }
        if (relay->drain_due_ns)
            continue;
        relay->drain_due_ns = worker->loop.now_ns + relay->group->config->deregistration_delay_ms * NS_PER_MS;
        set_deadline(relay);
    }
}
