/* SPDX-License-Identifier: Apache-2.0 */
#include "upstream/pool.h"

#include "core/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Below this the kernel has had no time to tell us of a close that we would not see in the same turn. */
static const uint64_t PROBE_AFTER_IDLE_NS = 20 * NS_PER_MS;

void pool_init(struct pool *pool, struct loop *loop, struct buf_pool *bufs, struct tls_thread *tls,
               uint32_t worker)
{
    *pool = (struct pool){.loop = loop, .bufs = bufs, .tls = tls, .worker = worker};
    slab_init(&pool->slab, sizeof(struct upstream));
}

void pool_fini(struct pool *pool)
{
    slab_fini(&pool->slab);
}

static struct backend_worker *mine(struct upstream *upstream)
{
    return &upstream->backend->workers[upstream->pool->worker];
}

/* An idle connection should be silent: a close, an error and bytes are all the end of it. Over TLS some bytes
 * are no data (tickets): the layer takes those in. */
static bool has_something_to_say(struct upstream *upstream)
{
    char byte;
    size_t len;
    if (upstream->conn.layer) {
        upstream->conn.can_read = true;
        return conn_read(&upstream->conn, &byte, 1, &len) != CONN_BLOCKED;
    }
    ssize_t n = recv(upstream->conn.io.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return !(n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
}

/* Anything that an idle connection says ends it: a close, or bytes that nobody asked for. */
static void idle_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct upstream *upstream = container_of(io, struct upstream, conn.io);
    conn_note_events(&upstream->conn, events);
    if (upstream->conn.can_read && (!upstream->conn.layer || has_something_to_say(upstream)))
        pool_close(upstream->pool, &upstream);
}

static void idle_due(struct loop *loop, struct loop_timer *timer)
{
    struct upstream *upstream = container_of(timer, struct upstream, conn.timer);
    pool_close(upstream->pool, &upstream);
}

static void leave_idle(struct upstream *upstream)
{
    list_remove(&upstream->node);
    if (upstream->place)
        *upstream->place = NULL;
    upstream->place = NULL;
    mine(upstream)->n_idle--;
    gauge_add(&mine(upstream)->counters.idle_connections, -1);
    loop_timer_clear(&upstream->conn.timer);
}

/* Lends an idle connection, or ends it and is false. */
static bool lend(struct pool *pool, struct upstream *upstream, const struct tls_client *tls,
                 bool must_be_fresh)
{
    bool is_stale = must_be_fresh && pool->loop->now_ns - upstream->idle_since_ns > PROBE_AFTER_IDLE_NS &&
                    has_something_to_say(upstream);
    if (is_stale || upstream->tls_id != tls_client_id(tls)) {
        pool_close(pool, &upstream);
        return false;
    }
    leave_idle(upstream);
    counter_add(&mine(upstream)->counters.pool_hits, 1);
    upstream->uses++;
    return true;
}

struct upstream *pool_take(struct pool *pool, struct backend *backend, const struct tls_client *tls,
                           bool must_be_fresh)
{
    struct list *idle = &backend->workers[pool->worker].idle;
    while (!list_is_empty(idle)) {
        struct upstream *upstream = container_of(idle->next, struct upstream, node);
        if (lend(pool, upstream, tls, must_be_fresh))
            return upstream;
    }
    return NULL;
}

struct upstream *pool_take_kept(struct pool *pool, struct upstream **place, struct backend *backend,
                                const struct tls_client *tls, bool must_be_fresh)
{
    struct upstream *upstream = *place;
    if (!upstream)
        return NULL;
    if (upstream->backend == backend)
        return lend(pool, upstream, tls, must_be_fresh) ? upstream : NULL;
    pool_close(pool, &upstream);
    return NULL;
}

static int open_socket(const struct net_addr *addr)
{
    static const int on = 1;
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (addr->sa.sa_family != AF_UNIX && (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) < 0 ||
                                          setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) < 0))
        goto fail;
    if (connect(fd, &addr->sa, addr->len) < 0 && errno != EINPROGRESS)
        goto fail;
    return fd;
fail:;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}

/* Puts TLS on a new connection; its last session with the target is tried again. */
static bool add_tls(struct upstream *upstream, struct tls_client *tls)
{
    struct ip_addr ip = net_addr_to_ip(&upstream->backend->addr);
    upstream->tls_id = tls_client_id(tls);
    upstream->conn.is_connecting = true;
    return tls_connect(upstream->pool->tls, &upstream->conn, tls, &ip, &mine(upstream)->session);
}

enum pool_open_result pool_open(struct pool *pool, struct backend *backend, struct tls_client *tls,
                                uint32_t limit, struct upstream **out)
{
    struct upstream *upstream = NULL;
    if (!backend_reserve(&backend->connections, limit))
        return POOL_OPEN_FULL;
    int fd = open_socket(&backend->addr);
    if (fd < 0)
        goto fail;
    upstream = slab_try_take(&pool->slab);
    if (!upstream) {
        close(fd);
        errno = ENOMEM;
        goto fail;
    }
    *upstream = (struct upstream){.pool = pool, .backend = backend, .uses = 1};
    conn_init(&upstream->conn, fd, idle_ready, idle_due);
    upstream->conn.is_connecting = backend->addr.sa.sa_family != AF_UNIX;
    upstream->conn.can_read = false;
    list_init(&upstream->node);
    errno = ENOMEM;
    if ((tls && !add_tls(upstream, tls)) || loop_arm(pool->loop, &upstream->conn.io)) {
        int err = errno;
        conn_close(&upstream->conn, pool->loop, pool->bufs);
        slab_give(&pool->slab, upstream);
        errno = err;
        goto fail;
    }
    counter_add(&mine(upstream)->counters.connects, 1);
    gauge_add(&mine(upstream)->counters.open_connections, 1);
    *out = upstream;
    return POOL_OPEN_STARTED;
fail:
    atomic_fetch_sub_explicit(&backend->connections, 1, memory_order_relaxed);
    return POOL_OPEN_FAILED;
}

/* All of it or nothing: a new socket has room for a header. */
static bool send_preface(struct upstream *upstream, struct slice bytes)
{
    ssize_t sent;
    do
        sent = send(upstream->conn.io.fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 || (size_t)sent == bytes.len)
        return sent >= 0;
    errno = ENOBUFS;
    return false;
}

bool pool_preface(struct upstream *upstream, struct slice bytes)
{
    if (!upstream->conn.is_connecting)
        return send_preface(upstream, bytes);
    return buf_append(upstream->pool->bufs, &upstream->preface, bytes);
}

static enum pool_connect_result note_open(struct upstream *upstream, int *err)
{
    struct buf *preface = upstream->preface;
    bool ok = !preface || send_preface(upstream, slice_of(preface->data + preface->start, buf_len(preface)));
    if (!ok)
        *err = errno;
    buf_give(upstream->pool->bufs, &upstream->preface);
    return ok ? POOL_CONNECT_OPEN : POOL_CONNECT_FAILED;
}

enum pool_connect_result pool_connect_check(struct upstream *upstream, uint32_t events, int *err)
{
    socklen_t len = sizeof(*err);
    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        return POOL_CONNECT_WAITS;
    if (!(events & (EPOLLERR | EPOLLHUP)))
        return note_open(upstream, err);
    if (getsockopt(upstream->conn.io.fd, SOL_SOCKET, SO_ERROR, err, &len) < 0)
        *err = errno;
    return *err ? POOL_CONNECT_FAILED : note_open(upstream, err);
}

/* From now on it is idle in that list, unless its peer has said something: then it ends, and this is false.
 */
static bool rest(struct pool *pool, struct upstream *upstream, uint32_t idle_ms, struct list *idle)
{
    iso_assert(!upstream->conn.out && !upstream->in && list_is_empty(&upstream->node));
    /* Bytes that wait already would be taken for the next answer, and make no new event. */
    if (upstream->conn.saw_hangup || (upstream->conn.can_read && has_something_to_say(upstream))) {
        pool_close(pool, &upstream);
        return false;
    }
    upstream->conn.can_read = false;
    upstream->owner = NULL;
    upstream->conn.io.on_ready = idle_ready;
    upstream->conn.timer.on_due = idle_due;
    upstream->idle_since_ns = pool->loop->now_ns;
    loop_timer_set(pool->loop, &upstream->conn.timer, pool->loop->now_ns + idle_ms * NS_PER_MS);
    list_push_front(idle, &upstream->node);
    mine(upstream)->n_idle++;
    gauge_add(&mine(upstream)->counters.idle_connections, 1);
    return true;
}

void pool_give(struct pool *pool, struct upstream **given, uint32_t idle_ms)
{
    struct upstream *upstream = *given;
    *given = NULL;
    (void)rest(pool, upstream, idle_ms, &mine(upstream)->idle);
}

void pool_keep(struct pool *pool, struct upstream **given, uint32_t idle_ms, struct upstream **place)
{
    struct upstream *upstream = *given, *before = *place;
    *given = NULL;
    if (before)
        pool_close(pool, &before);
    if (!rest(pool, upstream, idle_ms, &mine(upstream)->kept))
        return;
    upstream->place = place;
    *place = upstream;
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct upstream *upstream = container_of(deferred, struct upstream, deferred);
    slab_give(&upstream->pool->slab, upstream);
}

void pool_close(struct pool *pool, struct upstream **given)
{
    struct upstream *upstream = *given;
    *given = NULL;
    if (!list_is_empty(&upstream->node))
        leave_idle(upstream);
    gauge_add(&mine(upstream)->counters.open_connections, -1);
    atomic_fetch_sub_explicit(&upstream->backend->connections, 1, memory_order_relaxed);
    conn_close(&upstream->conn, pool->loop, pool->bufs);
    buf_give(pool->bufs, &upstream->in);
    buf_give(pool->bufs, &upstream->preface);
    upstream->owner = NULL;
    upstream->deferred.release = release;
    loop_defer(pool->loop, &upstream->deferred);
}

void pool_retire(struct pool *pool, struct backend *backend)
{
    struct backend_worker *mine = &backend->workers[pool->worker];
    struct list *lists[] = {&mine->idle, &mine->kept};
    for (size_t i = 0; i < iso_countof(lists); i++)
        while (!list_is_empty(lists[i])) {
            struct upstream *upstream = container_of(lists[i]->next, struct upstream, node);
            pool_close(pool, &upstream);
        }
}
