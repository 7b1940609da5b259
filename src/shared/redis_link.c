/* SPDX-License-Identifier: Apache-2.0 */
/* The connection: attempts, the greeting, and whether anybody is still there. */
#include "shared/redis_internal.h"

#include "core/clock.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
    CONNECT_MS = 2000, /* until the greeting is answered */
    STALL_MS = 2000,   /* without any byte although something is under way */
    WATCH_MS = 100,    /* between looks at the connection */
    IDLE_PING_MS = 1000,
    EARS_PING_MS = 5000, /* of a connection that only listens; given up at twice that */
    RETRY_MS = 100,      /* until the first further attempt; doubles */
    RETRY_MAX_MS = 5000,
};

static void wait_for_retry(struct redis *redis)
{
    redis->state = REDIS_WAITING;
    redis->retry_ms = redis->retry_ms ? redis->retry_ms * 2 : RETRY_MS;
    if (redis->retry_ms > RETRY_MAX_MS)
        redis->retry_ms = RETRY_MAX_MS;
    loop_timer_set(redis->loop, &redis->timer, redis->loop->now_ns + redis->retry_ms * NS_PER_MS);
}

void redis_lose(struct redis *redis, const char *why)
{
    char reason[RESP_LINE_MAX];
    snprintf(reason, sizeof(reason), "%s", why); /* it may stand in the buffer that goes */
    if (redis_is_connected(redis))
        conn_close(&redis->conn, redis->loop, redis->bufs);
    redis->state = REDIS_WAITING; /* a call that is made from now on fails at once */
    redis->in_len = 0;
    redis->out.len = 0;
    redis->late_in_a_row = 0;
    loop_cancel_later(&redis->flush);
    redis_set_health(redis, REDIS_AWAY, reason);
    redis_fail_calls(redis);
    wait_for_retry(redis);
}

static void on_ping(void *owner, void *arg, const struct resp_value *reply) {}

static void on_greeted(void *owner, void *arg, const struct resp_value *reply)
{
    struct redis *redis = arg;
    char why[RESP_LINE_MAX];
    if (!reply)
        return; /* the connection is lost already */
    if (reply->type == RESP_ERROR) {
        snprintf(why, sizeof(why), "it refuses us: %.*s", SLICE_ARG(reply->text));
        redis_lose(redis, why);
    }
}

static void on_last_greeted(void *owner, void *arg, const struct resp_value *reply)
{
    struct redis *redis = arg;
    on_greeted(owner, arg, reply);
    if (reply && redis->state == REDIS_GREETING)
        redis_serve(redis);
}

static void greet(struct redis *redis)
{
    struct slice user = slice_str(redis->user), password = slice_str(redis->password);
    char db[16];
    redis->state = REDIS_GREETING;
    if (password.len && user.len)
        redis_enqueue(redis, (struct slice[]){SLICE("AUTH"), user, password}, 3, on_greeted, redis);
    else if (password.len)
        redis_enqueue(redis, (struct slice[]){SLICE("AUTH"), password}, 2, on_greeted, redis);
    if (redis->options.db) {
        snprintf(db, sizeof(db), "%u", redis->options.db);
        redis_enqueue(redis, (struct slice[]){SLICE("SELECT"), slice_str(db)}, 2, on_greeted, redis);
    }
    if (!redis->options.channels) {
        redis_enqueue(redis, &SLICE("PING"), 1, on_last_greeted, redis);
        return;
    }
    struct slice args[8] = {SLICE("SUBSCRIBE")};
    size_t n = 1;
    for (size_t i = 0; redis->options.channels[i] && n < iso_countof(args); i++)
        args[n++] = slice_str(redis->options.channels[i]);
    resp_command(&redis->out, args, n); /* answered as messages are */
    loop_later(redis->loop, &redis->flush);
}

/* True once the socket and its layer are open. */
static bool finish_connecting(struct redis *redis, uint32_t events)
{
    int err = 0;
    socklen_t len = sizeof(err);
    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
        return false;
    if ((events & (EPOLLERR | EPOLLHUP)) &&
        (getsockopt(redis->conn.io.fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0 || err)) {
        redis_lose(redis, strerror(err ? err : errno));
        return false;
    }
    if (redis->conn.layer) {
        enum conn_result result = conn_handshake(&redis->conn, redis->bufs);
        if (result == CONN_BLOCKED)
            return false;
        if (result != CONN_OK) {
            const char *why = tls_failure(&redis->conn);
            redis_lose(redis, why ? why : "the TLS handshake failed");
            return false;
        }
    }
    redis->conn.is_connecting = false;
    greet(redis);
    return true;
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct redis *redis = container_of(io, struct redis, conn.io);
    conn_note_events(&redis->conn, events);
    if (redis->conn.is_connecting && !finish_connecting(redis, events))
        return;
    if (conn_flush(&redis->conn, redis->bufs) == CONN_FAILED) {
        redis_lose(redis, "the connection broke");
        return;
    }
    if (redis->out.len)
        loop_later(loop, &redis->flush);
    redis_read_replies(redis);
}

static void on_unused_timer(struct loop *loop, struct loop_timer *timer) {}

static int open_socket(const struct net_addr *addr)
{
    static const int on = 1;
    int fd = socket(addr->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)) == 0 &&
        (connect(fd, &addr->sa, addr->len) == 0 || errno == EINPROGRESS))
        return fd;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}

static void connect_to(struct redis *redis, const struct net_addr *addr)
{
    int fd = open_socket(addr);
    if (fd < 0) {
        redis_lose(redis, strerror(errno));
        return;
    }
    redis->peer = net_addr_to_ip(addr);
    conn_init(&redis->conn, fd, on_ready, on_unused_timer);
    redis->conn.is_connecting = true;
    redis->state = REDIS_CONNECTING;
    redis->began_ns = redis->heard_ns = redis->loop->now_ns;
    if ((redis->options.tls &&
         !tls_connect(redis->tls_thread, &redis->conn, redis->options.tls, &redis->peer, NULL)) ||
        loop_arm(redis->loop, &redis->conn.io)) {
        redis_lose(redis, "no memory");
        return;
    }
    loop_timer_set(redis->loop, &redis->timer, redis->loop->now_ns + WATCH_MS * NS_PER_MS);
}

static void on_resolved(void *owner, const struct net_addr *addr, const char *why)
{
    struct redis *redis = owner;
    redis->lookup = NULL;
    redis->state = REDIS_WAITING;
    if (addr)
        connect_to(redis, addr);
    else
        redis_lose(redis, why);
}

/* Nothing may come on a channel for hours: whether anybody is there is asked. */
static void watch_ears(struct redis *redis)
{
    uint64_t silent_ms = (redis->loop->now_ns - redis->heard_ns) / NS_PER_MS;
    if (silent_ms > EARS_PING_MS && !redis->has_pinged) {
        resp_command(&redis->out, &SLICE("PING"), 1);
        loop_later(redis->loop, &redis->flush);
    }
    redis->has_pinged = silent_ms > EARS_PING_MS;
}

/* A connection that owes us an answer and says nothing is given up; one that is idle or slow is asked. */
static void watch(struct redis *redis)
{
    uint64_t now_ns = redis->loop->now_ns;
    bool owes = redis->first != redis->end;
    if (redis->state != REDIS_SERVING && now_ns > redis->began_ns + CONNECT_MS * NS_PER_MS) {
        redis_lose(redis, "it does not answer");
        return;
    }
    uint64_t patience_ms = redis->options.channels ? 2 * EARS_PING_MS : STALL_MS;
    if (redis->state == REDIS_SERVING && (owes || redis->options.channels) &&
        now_ns > redis->heard_ns + patience_ms * NS_PER_MS) {
        redis_lose(redis, "it has stopped answering");
        return;
    }
    if (redis->state == REDIS_SERVING && !owes && !redis->options.channels &&
        (redis->health == REDIS_SLOW || now_ns > redis->heard_ns + IDLE_PING_MS * NS_PER_MS))
        redis_enqueue(redis, &SLICE("PING"), 1, on_ping, NULL);
    if (redis->state == REDIS_SERVING && redis->options.channels)
        watch_ears(redis);
    loop_timer_set(redis->loop, &redis->timer, now_ns + WATCH_MS * NS_PER_MS);
}

void redis_on_due(struct loop *loop, struct loop_timer *timer)
{
    struct redis *redis = container_of(timer, struct redis, timer);
    if (redis_is_connected(redis)) {
        watch(redis);
    } else if (redis->state == REDIS_WAITING) {
        redis->state = REDIS_RESOLVING;
        redis->lookup = lookup_start(loop, redis->host, redis->options.port, on_resolved, redis);
    }
}
