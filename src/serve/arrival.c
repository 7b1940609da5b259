/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/arrival.h"

#include "core/clock.h"
#include "net/proxyproto.h"
#include "serve/accept.h"

#include <errno.h>
#include <sys/epoll.h>

struct arrival {
    struct loop_io io;
    struct loop_timer timer;
    struct worker_listener *listener;
    struct net_addr peer;
    struct buf *proxied; /* owns */
    bool wants_header;   /* a PROXY header must come */
    bool wants_hello;    /* a ClientHello must come, behind it */
    struct list node;    /* in listener->arrivals */
    struct loop_deferred deferred;
};

static struct worker *worker_of(const struct arrival *arrival)
{
    return arrival->listener->worker;
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct arrival *arrival = container_of(deferred, struct arrival, deferred);
    slab_give(&worker_of(arrival)->arrivals, arrival);
}

/* Forgets the connection, whose descriptor is another's or closed by now. */
static void leave(struct arrival *arrival)
{
    struct worker *worker = worker_of(arrival);
    loop_timer_remove(&worker->loop, &arrival->timer);
    list_remove(&arrival->node);
    buf_give(&worker->bufs, &arrival->proxied);
    arrival->deferred.release = release;
    loop_defer(&worker->loop, &arrival->deferred);
}

static void end_arrival(struct arrival *arrival)
{
    struct worker_listener *listener = arrival->listener;
    loop_close(&listener->worker->loop, &arrival->io);
    leave(arrival);
    listener->connection_gone(listener);
}

static bool is_trusted(const struct config_proxy_protocol *proxy, const struct net_addr *peer)
{
    struct ip_addr ip = net_addr_to_ip(peer);
    if (ip.family == 0) /* who may connect to a unix socket is decided by its file */
        return true;
    for (uint32_t i = 0; i < proxy->n_from; i++)
        if (ip_prefix_has(&proxy->from[i], &ip))
            return true;
    return false;
}

/* The address that a header gives; a unix client has none. */
static void set_peer(struct net_addr *peer, const struct proxyproto *header)
{
    if (header->src.family) {
        net_addr_ip(peer, &header->src, header->src_port);
        return;
    }
    peer->len = sizeof(peer->un.sun_family);
    peer->un.sun_family = AF_UNIX;
}

/* The header is whole: takes it off the socket, where it waits in full. False: the connection is of no use.
 */
static bool take_header(struct arrival *arrival, const struct proxyproto *header)
{
    struct worker *worker = worker_of(arrival);
    struct listener_counters *counters = arrival->listener->counters;
    ssize_t got;
    do
        got = recv(arrival->io.fd, worker->rbuf, header->len, 0);
    while (got < 0 && errno == EINTR);
    bool keeps = header->has_addresses && arrival->listener->current->keeps_headers;
    if (got != (ssize_t)header->len ||
        (keeps && !buf_append(&worker->bufs, &arrival->proxied, slice_of(worker->rbuf, header->len))))
        return false;
    counter_add(&counters->received_bytes, header->len);
    counter_add(header->has_addresses ? &counters->proxy_told : &counters->proxy_local, 1);
    if (header->has_addresses)
        set_peer(&arrival->peer, header);
    arrival->wants_header = false;
    return true;
}

static void hand_over(struct arrival *arrival, const struct client_hello *hello)
{
    struct worker_listener *listener = arrival->listener;
    struct net_addr peer = arrival->peer;
    struct arrival_facts facts = {.peer = &peer, .proxied = arrival->proxied};
    int fd = arrival->io.fd;
    if (arrival->wants_hello) {
        struct ip_addr ip = net_addr_to_ip(&peer);
        facts.server_name = hello->server_name;
        facts.rule = sni_match(listener->current->names, hello, &ip);
        counter_add(&listener->counters->hellos, 1);
    }
    arrival->proxied = NULL;
    if (arrival->io.is_armed)
        loop_disarm(&listener->worker->loop, &arrival->io);
    leave(arrival);
    accept_hand_over(listener, fd, &facts);
}

enum step {
    STEP_DONE, /* what was waited for is there */
    STEP_WAIT, /* more must come */
    STEP_END,  /* the connection is of no use */
};

/* Everything that has come and was not taken yet, in worker->rbuf. */
static enum step peek(const struct arrival *arrival, size_t *n)
{
    ssize_t got;
    do
        got = recv(arrival->io.fd, worker_of(arrival)->rbuf, WORKER_READ_BYTES, MSG_PEEK);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? STEP_WAIT : STEP_END;
    *n = (size_t)got;
    return got > 0 ? STEP_DONE : STEP_END;
}

static enum step read_header(struct arrival *arrival)
{
    struct proxyproto header;
    size_t n = 0;
    enum step step = peek(arrival, &n);
    if (step != STEP_DONE)
        return step;
    switch (proxyproto_read(worker_of(arrival)->rbuf, n, &header)) {
    case PROXYPROTO_COMPLETE:
        return take_header(arrival, &header) ? STEP_DONE : STEP_END;
    case PROXYPROTO_INCOMPLETE:
        return STEP_WAIT;
    case PROXYPROTO_INVALID:
        break;
    }
    counter_add(&arrival->listener->counters->proxy_invalid, 1);
    return STEP_END;
}

/* `*hello` borrows from the worker's buffers. */
static enum step read_hello(struct arrival *arrival, struct client_hello *hello)
{
    struct worker *worker = worker_of(arrival);
    size_t n = 0;
    enum step step = peek(arrival, &n);
    if (step != STEP_DONE)
        return step;
    switch (client_hello_peek(worker->rbuf, n, worker->scratch, hello)) {
    case CLIENT_HELLO_COMPLETE:
        return STEP_DONE;
    case CLIENT_HELLO_INCOMPLETE:
        return STEP_WAIT;
    case CLIENT_HELLO_INVALID:
        break;
    }
    counter_add(&arrival->listener->counters->hellos_invalid, 1);
    return STEP_END;
}

/* Looks at what has come. False: the connection has ended or was handed over. */
static bool advance(struct arrival *arrival)
{
    struct client_hello hello = {0};
    enum step step = arrival->wants_header ? read_header(arrival) : STEP_DONE;
    if (step == STEP_DONE && arrival->wants_hello)
        step = read_hello(arrival, &hello);
    switch (step) {
    case STEP_WAIT:
        return true;
    case STEP_DONE:
        hand_over(arrival, &hello);
        return false;
    case STEP_END:
        break;
    }
    end_arrival(arrival);
    return false;
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct arrival *arrival = container_of(io, struct arrival, io);
    if (advance(arrival) && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        end_arrival(arrival); /* nothing more will come */
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct arrival *arrival = container_of(timer, struct arrival, timer);
    struct listener_counters *counters = arrival->listener->counters;
    counter_add(arrival->wants_header ? &counters->proxy_timeouts : &counters->hellos_late, 1);
    end_arrival(arrival);
}

void arrival_init(struct worker *worker)
{
    slab_init(&worker->arrivals, sizeof(struct arrival));
}

static void refuse(struct worker_listener *listener, int fd)
{
    loop_close(&listener->worker->loop, &(struct loop_io){.fd = fd});
    listener->connection_gone(listener);
}

void arrival_open(struct worker_listener *listener, int fd, const struct net_addr *peer)
{
    struct worker *worker = listener->worker;
    const struct config_listener *config = listener->current->config;
    bool wants_header = config->proxy_protocol.set && is_trusted(&config->proxy_protocol, peer);
    if (config->proxy_protocol.set && !wants_header &&
        config->proxy_protocol.others == CONFIG_OTHERS_REFUSED) {
        counter_add(&listener->counters->proxy_untrusted, 1);
        refuse(listener, fd);
        return;
    }
    struct arrival *arrival = slab_try_take(&worker->arrivals);
    if (!arrival) {
        refuse(listener, fd);
        return;
    }
    *arrival = (struct arrival){.io = {.fd = fd, .on_ready = on_ready},
                                .listener = listener,
                                .peer = *peer,
                                .wants_header = wants_header,
                                .wants_hello = config->protocol == CONFIG_TLS};
    loop_timer_init(&arrival->timer, on_due);
    list_push_back(&listener->arrivals, &arrival->node);
    if (!advance(arrival))
        return;
    loop_timer_set(&worker->loop, &arrival->timer,
                   worker->loop.now_ns + config->timeouts.handshake_ms * NS_PER_MS);
    if (loop_arm(&worker->loop, &arrival->io))
        end_arrival(arrival);
}

void arrival_cut_all(struct worker_listener *listener)
{
    list_for_each_safe (node, after, &listener->arrivals) {
        end_arrival(container_of(node, struct arrival, node));
    }
}
