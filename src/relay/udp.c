/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/udp.h"

#include "core/clock.h"
#include "guard/admit.h"

#include <stdlib.h>
#include <sys/epoll.h>

enum {
    BUCKETS_LEAST = 256,
    BUCKETS_MOST = 1 << 20,
    LAST_ANSWERS_MS = 2000, /* that a listener which closes waits for them */
    MOVES_PER_IDLE = 8,     /* how exact the order of sessions is: a move for each datagram would cost a cache
                               line or two */
};

static struct worker *worker_of(const struct udp_port *port)
{
    return port->listener->worker;
}

static uint32_t limit_of(const struct udp_port *port)
{
    uint32_t limit = port->listener->current->config->limits.connections;
    return limit ? limit : UDP_SESSIONS_DEFAULT;
}

static uint64_t idle_ns(const struct udp_port *port)
{
    return port->listener->current->config->timeouts.idle_ms * NS_PER_MS;
}

static struct udp_session **bucket_of(const struct udp_port *port, const struct udp_key *key)
{
    char bytes[2 * sizeof(key->peer.bytes) + sizeof(key->peer_port)];
    memcpy(bytes, key->peer.bytes, 16);
    memcpy(bytes + 16, key->local.bytes, 16);
    memcpy(bytes + 32, &key->peer_port, sizeof(key->peer_port));
    return &port->buckets[siphash(&port->hash_key, slice_of(bytes, sizeof(bytes))) & port->mask];
}

static bool same_key(const struct udp_key *a, const struct udp_key *b)
{
    return a->peer_port == b->peer_port && ip_eq(&a->peer, &b->peer) && ip_eq(&a->local, &b->local);
}

static struct udp_session *find(const struct udp_port *port, const struct udp_key *key)
{
    struct udp_session *session = *bucket_of(port, key);
    while (session && !same_key(&session->key, key))
        session = session->next;
    return session;
}

static struct list *list_of(struct udp_session *session)
{
    return session->is_answered ? &session->port->answered : &session->port->waiting;
}

void udp_touch(struct udp_session *session, bool is_reply)
{
    struct udp_port *port = session->port;
    uint64_t now_ns = worker_of(port)->loop.now_ns;
    bool is_first_reply = is_reply && !session->is_answered;
    session->active_ns = now_ns;
    if (!is_first_reply && now_ns - session->moved_ns < idle_ns(port) / MOVES_PER_IDLE)
        return;
    session->is_answered |= is_reply;
    session->moved_ns = now_ns;
    list_remove(&session->order);
    list_push_back(list_of(session), &session->order);
}

static void close_socket(struct udp_port *port)
{
    struct worker_listener *listener = port->listener;
    struct worker *worker = worker_of(port);
    if (listener->io.fd < 0)
        return;
    if (port->is_flush_due) /* the socket is needed until the end of this turn */
        return;
    listener->runtime->fds[worker->index] = -1;
    loop_disarm(&worker->loop, &listener->io);
    loop_close(&worker->loop, &listener->io);
    loop_timer_remove(&worker->loop, &port->timer);
}

static void flush(struct udp_memory *memory)
{
    struct udp_port *port = memory->replies_of;
    memory->replies_of = NULL;
    if (!port || memory->replies.n == 0)
        return;
    uint32_t lost = datagram_flush(&memory->replies, port->listener->io.fd);
    if (lost)
        counter_add(&port->listener->counters->udp_undelivered, lost);
}

static void on_turn_end(struct loop *loop, struct loop_deferred *deferred)
{
    struct udp_port *port = container_of(deferred, struct udp_port, flush);
    struct udp_memory *memory = worker_of(port)->udp;
    port->is_flush_due = false;
    if (memory->replies_of == port)
        flush(memory);
    if (port->is_closing && port->n == 0)
        close_socket(port);
}

struct datagram_batch *udp_replies(struct udp_port *port, uint32_t n)
{
    struct worker *worker = worker_of(port);
    struct udp_memory *memory = worker->udp;
    if (memory->replies_of != port || DATAGRAM_BATCH - memory->replies.n < n)
        flush(memory);
    memory->replies_of = port;
    if (!port->is_flush_due) {
        port->is_flush_due = true;
        port->flush.release = on_turn_end;
        loop_defer(&worker->loop, &port->flush);
    }
    return &memory->replies;
}

void udp_end(struct udp_session *session, enum exchange_end end)
{
    struct udp_port *port = session->port;
    struct worker_listener *listener = port->listener;
    struct udp_session **at = bucket_of(port, &session->key);
    while (*at != session)
        at = &(*at)->next;
    *at = session->next;
    list_remove(&session->order);
    port->n--;
    udp_session_close(session, end);
    if (port->n == 0 && port->is_closing)
        close_socket(port);
    listener->connection_gone(listener);
}

/* The first of a list, and when it is over. */
static struct udp_session *first_of(const struct list *list)
{
    return list_is_empty(list) ? NULL : container_of(list->next, struct udp_session, order);
}

/* Ends what has been idle too long; the order is only nearly that of activity, so a live one goes to the end
 * again. Returns when the next may be over; 0: there is none. */
static uint64_t expire(struct udp_port *port, struct list *list, uint64_t idle)
{
    uint64_t now_ns = worker_of(port)->loop.now_ns;
    struct udp_session *session;
    while ((session = first_of(list)) && session->moved_ns + idle <= now_ns) {
        if (session->active_ns + idle <= now_ns) {
            udp_end(session, END_NORMAL);
            continue;
        }
        session->moved_ns = session->active_ns;
        list_remove(&session->order);
        list_push_back(list, &session->order);
    }
    return session ? session->moved_ns + idle : 0;
}

static void cut(struct udp_port *port, struct list *list, bool only_answered)
{
    list_for_each_safe (node, after, list) {
        struct udp_session *session = container_of(node, struct udp_session, order);
        if (!only_answered || session->replies >= session->requests)
            udp_end(session, only_answered ? END_NORMAL : END_SHUTDOWN);
    }
}

static void go_on_closing(struct udp_port *port)
{
    struct loop *loop = &worker_of(port)->loop;
    bool is_over = loop->now_ns >= port->closed_ns;
    if (!is_over)
        loop_timer_set(loop, &port->timer, port->closed_ns);
    cut(port, &port->answered, !is_over);
    cut(port, &port->waiting, !is_over);
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct udp_port *port = container_of(timer, struct udp_port, timer);
    if (port->is_closing) {
        go_on_closing(port);
        return;
    }
    uint64_t idle = idle_ns(port), waiting_ns = expire(port, &port->waiting, idle),
             answered_ns = expire(port, &port->answered, idle);
    uint64_t due_ns = !waiting_ns || (answered_ns && answered_ns < waiting_ns) ? answered_ns : waiting_ns;
    /* A session that was moved to the end for an older time than its neighbours' only ends that much later.
     */
    if (due_ns)
        loop_timer_set(loop, timer, due_ns > loop->now_ns ? due_ns : loop->now_ns + NS_PER_MS);
}

bool udp_make_room(struct udp_port *port)
{
    _Atomic uint32_t *n = &port->listener->runtime->connections;
    if (atomic_load_explicit(n, memory_order_relaxed) < limit_of(port))
        return true;
    struct udp_session *oldest = first_of(&port->waiting);
    if (!oldest)
        return false;
    counter_add(&port->listener->counters->udp_evicted, 1);
    udp_end(oldest, END_EVICTED);
    return true;
}

static struct udp_session *open_session(struct udp_port *port, const struct udp_key *key,
                                        const struct datagram *first)
{
    struct listener_counters *counters = port->listener->counters;
    struct worker *worker = worker_of(port);
    if (!admit(port->listener, &key->peer))
        return NULL;
    if (!udp_make_room(port)) {
        counter_add(&counters->connections_refused, 1);
        return NULL;
    }
    struct udp_session *session = udp_session_open(port, key, first);
    if (!session) {
        counter_add(&counters->udp_undelivered, datagram_count(first));
        return NULL;
    }
    struct udp_session **bucket = bucket_of(port, key);
    session->next = *bucket;
    *bucket = session;
    list_push_back(&port->waiting, &session->order);
    if (port->n++ == 0 || !port->timer.due_ns)
        loop_timer_set(&worker->loop, &port->timer, worker->loop.now_ns + idle_ns(port));
    worker->n_clients++;
    atomic_fetch_add_explicit(&port->listener->runtime->connections, 1, memory_order_relaxed);
    counter_add(&counters->connections, 1);
    gauge_add(&counters->active_connections, 1);
    return session;
}

static void take(struct udp_port *port, const struct datagram *datagram)
{
    struct listener_counters *counters = port->listener->counters;
    struct net_addr peer = {.len = datagram->peer.len, .in6 = datagram->peer.in6};
    const struct udp_key key = {
        .peer = net_addr_to_ip(&peer), .local = datagram->local, .peer_port = net_addr_port(&peer)};
    counter_add(&counters->received_bytes, datagram->len);
    counter_add(&counters->udp_received, datagram_count(datagram));
    struct udp_session *session = find(port, &key);
    if (!session)
        session = open_session(port, &key, datagram);
    if (session)
        udp_session_forward(session, datagram);
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct worker_listener *listener = container_of(io, struct worker_listener, io);
    struct udp_port *port = listener->udp;
    struct datagram_batch *batch = &listener->worker->udp->received;
    int err;
    if (port->is_closing)
        return;
    uint32_t n = datagram_receive(batch, io->fd, DATAGRAM_BATCH, &err);
    for (uint32_t i = 0; i < n; i++)
        take(port, &batch->items[i]);
    batch->n = 0;
}

static void make_memory(struct worker *worker)
{
    struct udp_memory *memory = calloc(1, sizeof(*memory));
    iso_assert(memory != NULL);
    iso_err err = datagram_batch_init(&memory->received);
    err = err ? err : datagram_batch_init(&memory->replies);
    iso_assert(err == ISO_OK);
    slab_init(&memory->sessions, sizeof(struct udp_session));
    worker->udp = memory;
}

void udp_open(struct worker_listener *listener)
{
    struct worker *worker = listener->worker;
    struct udp_port *port = calloc(1, sizeof(*port));
    iso_assert(port != NULL);
    if (!worker->udp)
        make_memory(worker);
    port->listener = listener;
    listener->udp = port;
    listener->io.on_ready = on_ready;
    uint32_t limit = limit_of(port), n = BUCKETS_LEAST;
    while (n < limit && n < BUCKETS_MOST)
        n *= 2;
    port->buckets = calloc(n, sizeof(*port->buckets)); /* what is never used costs no memory */
    iso_assert(port->buckets != NULL);
    port->mask = n - 1;
    port->hash_key = (struct siphash_key){rng_next(&worker->rng), rng_next(&worker->rng)};
    list_init(&port->answered);
    list_init(&port->waiting);
    loop_timer_init(&port->timer, on_due);
}

void udp_close(struct worker_listener *listener)
{
    struct udp_port *port = listener->udp;
    struct worker *worker = listener->worker;
    if (port->is_closing)
        return;
    port->is_closing = true;
    loop_timer_remove(&worker->loop, &listener->retry_timer);
    loop_disarm(&worker->loop, &listener->io);
    port->closed_ns = worker->loop.now_ns + LAST_ANSWERS_MS * NS_PER_MS;
    if (port->n == 0)
        close_socket(port);
    else /* not now: a snapshot may be about to change, and sessions hold the old one */
        loop_timer_set(&worker->loop, &port->timer, worker->loop.now_ns);
}

void udp_cut_all(struct worker_listener *listener)
{
    cut(listener->udp, &listener->udp->answered, false);
    cut(listener->udp, &listener->udp->waiting, false);
}

void udp_free(struct udp_port *port)
{
    if (!port)
        return;
    loop_timer_remove(&worker_of(port)->loop, &port->timer);
    free(port->buckets);
    free(port);
}

void udp_memory_free(struct udp_memory *memory)
{
    if (!memory)
        return;
    datagram_batch_fini(&memory->received);
    datagram_batch_fini(&memory->replies);
    slab_fini(&memory->sessions);
    free(memory);
}
