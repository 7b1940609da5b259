/* SPDX-License-Identifier: Apache-2.0 */
/* The states: waiting for the next attempt, resolving, connecting (socket, then TLS), greeting (AUTH, SELECT,
 * PING or SUBSCRIBE are under way), serving. Everything falls back to waiting through lose(). */
#include "shared/redis.h"

#include "core/clock.h"
#include "core/log.h"
#include "net/conn.h"
#include "shared/lookup.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    CALLS_MAX = 2048, /* under way; a power of two */
    IN_BYTES = 64 << 10,
    OUT_BYTES_MAX = 256 << 10,
    SLOW_AFTER = 3,    /* calls in a row without an answer in time */
    CONNECT_MS = 2000, /* until the greeting is answered */
    STALL_MS = 2000,   /* without any byte although something is under way */
    WATCH_MS = 100,    /* between looks at the connection */
    IDLE_PING_MS = 1000,
    EARS_PING_MS = 5000, /* of a connection that only listens; given up at twice that */
    RETRY_MS = 100,      /* until the first further attempt; doubles */
    RETRY_MAX_MS = 5000,
};

enum state { WAITING, RESOLVING, CONNECTING, GREETING, SERVING };

struct call {
    redis_reply_fn *reply; /* NULL: answered with nothing already */
    void *arg;
    uint64_t due_ns;
};

struct redis {
    struct loop *loop;
    struct buf_pool *bufs;
    struct tls_thread *tls_thread;
    struct redis_events events;
    void *owner;
    char *host, *user, *password; /* owns */
    struct redis_options options;
    enum state state;
    enum redis_health health;
    struct conn conn;
    struct lookup *lookup; /* owns */
    struct ip_addr peer;
    struct loop_timer timer; /* the next attempt, or the next look */
    struct loop_io alarm; /* a timerfd: the loop's own timers are too coarse for deadlines of milliseconds */
    bool is_alarm_set;
    struct call calls[CALLS_MAX]; /* a ring: calls[first..end) by masking */
    uint32_t first, end, first_waiting;
    uint32_t late_in_a_row;
    uint32_t retry_ms;
    uint64_t began_ns, heard_ns;
    struct text out; /* of this turn, written at its end */
    struct loop_later flush;
    char *in; /* owns; IN_BYTES */
    uint32_t in_len;
    bool is_freeing, has_pinged;
    struct loop_deferred deferred;
};

static void set_health(struct redis *redis, enum redis_health health, const char *why)
{
    enum redis_health before = redis->health;
    redis->health = health;
    if (!redis->is_freeing && (health != before || (health == REDIS_AWAY && why)))
        redis->events.on_health(redis->owner, health, why);
}

static bool is_connected(const struct redis *redis)
{
    return redis->state == CONNECTING || redis->state == GREETING || redis->state == SERVING;
}

/* Answers every call under way with nothing. */
static void fail_calls(struct redis *redis)
{
    while (redis->first != redis->end) {
        struct call call = redis->calls[redis->first++ % CALLS_MAX];
        if (call.reply)
            call.reply(redis->owner, call.arg, NULL);
    }
    redis->first_waiting = redis->end;
}

static void wait_for_retry(struct redis *redis)
{
    redis->state = WAITING;
    redis->retry_ms = redis->retry_ms ? redis->retry_ms * 2 : RETRY_MS;
    if (redis->retry_ms > RETRY_MAX_MS)
        redis->retry_ms = RETRY_MAX_MS;
    loop_timer_set(redis->loop, &redis->timer, redis->loop->now_ns + redis->retry_ms * NS_PER_MS);
}

static void lose(struct redis *redis, const char *why)
{
    char reason[RESP_LINE_MAX];
    snprintf(reason, sizeof(reason), "%s", why); /* it may stand in the buffer that goes */
    if (is_connected(redis))
        conn_close(&redis->conn, redis->loop, redis->bufs);
    redis->state = WAITING; /* a call that is made from now on fails at once */
    redis->in_len = 0;
    redis->out.len = 0;
    redis->late_in_a_row = 0;
    loop_cancel_later(&redis->flush);
    set_health(redis, REDIS_AWAY, reason);
    fail_calls(redis);
    wait_for_retry(redis);
}

enum redis_health redis_health(const struct redis *redis)
{
    return redis->health;
}

/* ---- calls ---- */

static void set_alarm(struct redis *redis, uint64_t due_ns)
{
    struct itimerspec at = {.it_value = {(time_t)(due_ns / NS_PER_S), (long)(due_ns % NS_PER_S)}};
    if (timerfd_settime(redis->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL) < 0)
        log_error("timerfd: %m");
    redis->is_alarm_set = due_ns != 0;
}

static bool enqueue(struct redis *redis, const struct slice *args, size_t n, redis_reply_fn *reply, void *arg)
{
    if (!is_connected(redis) || redis->end - redis->first == CALLS_MAX || redis->out.len > OUT_BYTES_MAX)
        return false;
    uint64_t due_ns = UINT64_MAX; /* the greeting: watch() has an eye on it */
    if (redis->state == SERVING)
        due_ns = clock_mono_ns() + redis->options.timeout_ms * NS_PER_MS;
    if (redis->first == redis->end)
        redis->heard_ns = redis->loop->now_ns; /* it owes us nothing until now */
    redis->calls[redis->end++ % CALLS_MAX] = (struct call){reply, arg, due_ns};
    resp_command(&redis->out, args, n);
    if (!redis->is_alarm_set && redis->state == SERVING)
        set_alarm(redis, due_ns);
    loop_later(redis->loop, &redis->flush);
    return true;
}

bool redis_call(struct redis *redis, const struct slice *args, size_t n, redis_reply_fn *reply, void *arg)
{
    return redis->state == SERVING && enqueue(redis, args, n, reply, arg);
}

static void flush(struct loop *loop, struct loop_later *later)
{
    struct redis *redis = container_of(later, struct redis, flush);
    if (!is_connected(redis) || redis->conn.is_connecting || redis->conn.out || redis->out.len == 0)
        return;
    struct iovec piece = {redis->out.data, redis->out.len};
    enum conn_result result = conn_write(&redis->conn, redis->bufs, &piece, 1);
    redis->out.len = 0;
    if (result == CONN_FAILED)
        lose(redis, "the connection broke");
}

/* Calls whose time is over are answered with nothing; their replies are still awaited, in order. */
static void on_alarm(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct redis *redis = container_of(io, struct redis, alarm);
    uint64_t expirations, now_ns = clock_mono_ns();
    ssize_t got = read(io->fd, &expirations, sizeof(expirations));
    redis->is_alarm_set = false;
    if (got < 0 && errno != EAGAIN)
        log_error("timerfd: %m");
    while (redis->first_waiting != redis->end) {
        struct call *call = &redis->calls[redis->first_waiting % CALLS_MAX];
        if (call->reply && call->due_ns > now_ns) {
            set_alarm(redis, call->due_ns);
            break;
        }
        redis->first_waiting++;
        redis_reply_fn *reply = call->reply;
        call->reply = NULL;
        if (!reply)
            continue;
        if (++redis->late_in_a_row == SLOW_AFTER)
            set_health(redis, REDIS_SLOW, "it does not answer in time");
        reply(redis->owner, call->arg, NULL);
    }
}

/* ---- replies ---- */

/* Errors after which this server is of no use to us; NULL: others, which are the caller's. */
static const char *useless(const struct resp_value *value)
{
    static const char *const words[] = {"NOAUTH", "WRONGPASS", "LOADING",     "MASTERDOWN", "READONLY",
                                        "MOVED",  "ASK",       "CLUSTERDOWN", "MISCONF",    "NOPERM"};
    struct slice word = resp_error_word(value);
    for (size_t i = 0; value->type == RESP_ERROR && i < iso_countof(words); i++)
        if (slice_eq(word, slice_str(words[i])))
            return words[i];
    return NULL;
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
        lose(redis, why);
    }
}

static void serve(struct redis *redis)
{
    redis->state = SERVING;
    redis->late_in_a_row = 0;
    redis->first_waiting = redis->first;
    set_health(redis, REDIS_GOOD, NULL);
}

static void on_last_greeted(void *owner, void *arg, const struct resp_value *reply)
{
    struct redis *redis = arg;
    on_greeted(owner, arg, reply);
    if (reply && redis->state == GREETING)
        serve(redis);
}

/* What a channel brings answers no call; neither does the answer to a ping there. */
static bool take_message(struct redis *redis, const struct resp_value *value)
{
    if (value->type != RESP_ARRAY)
        return false;
    if (value->n < 3)
        return true;
    if (slice_eq(value->elements[0].text, SLICE("message")))
        redis->events.on_message(redis->owner, value->elements[1].text, value->elements[2].text);
    else if (slice_eq(value->elements[0].text, SLICE("subscribe")) && redis->state == GREETING)
        serve(redis);
    return true;
}

static void take_reply(struct redis *redis, const struct resp_value *value)
{
    char why[RESP_LINE_MAX];
    if (redis->options.channels && take_message(redis, value))
        return;
    if (redis->first == redis->end) {
        snprintf(why, sizeof(why), "it answers what was not asked: %.*s", SLICE_ARG(value->text));
        lose(redis, why);
        return;
    }
    uint32_t index = redis->first++;
    struct call *call = &redis->calls[index % CALLS_MAX];
    bool in_time = call->reply != NULL;
    if ((int32_t)(redis->first_waiting - redis->first) < 0)
        redis->first_waiting = redis->first;
    if (redis->state == SERVING && useless(value)) {
        if (call->reply)
            call->reply(redis->owner, call->arg, NULL);
        snprintf(why, sizeof(why), "it answers %.*s", SLICE_ARG(value->text));
        lose(redis, why);
        return;
    }
    if (!in_time)
        return;
    redis->late_in_a_row = 0;
    if (redis->state == SERVING)
        redis->retry_ms = 0;
    if (redis->health == REDIS_SLOW)
        set_health(redis, REDIS_GOOD, NULL);
    call->reply(redis->owner, call->arg, value);
}

static void take_replies(struct redis *redis)
{
    size_t at = 0, used = 0;
    struct resp_value value;
    enum resp_result result = RESP_NEED_MORE;
    while (is_connected(redis) && at < redis->in_len) {
        result = resp_parse(slice_of(redis->in + at, redis->in_len - at), &value, &used);
        if (result != RESP_COMPLETE)
            break;
        at += used;
        take_reply(redis, &value);
    }
    if (!is_connected(redis))
        return;
    memmove(redis->in, redis->in + at, redis->in_len - at);
    redis->in_len -= (uint32_t)at;
    if (result == RESP_BAD || redis->in_len == IN_BYTES)
        lose(redis, "what it sends is no Redis reply");
}

static void read_replies(struct redis *redis)
{
    while (is_connected(redis) && redis->conn.can_read) {
        size_t n;
        switch (conn_read(&redis->conn, redis->in + redis->in_len, IN_BYTES - redis->in_len, &n)) {
        case CONN_OK:
            redis->in_len += (uint32_t)n;
            redis->heard_ns = redis->loop->now_ns;
            take_replies(redis);
            break;
        case CONN_BLOCKED:
            return;
        case CONN_EOF:
            lose(redis, "it closed the connection");
            return;
        case CONN_FAILED:
            lose(redis, "the connection broke");
            return;
        }
    }
}

/* ---- the connection ---- */

static void greet(struct redis *redis)
{
    struct slice user = slice_str(redis->user), password = slice_str(redis->password);
    char db[16];
    redis->state = GREETING;
    if (password.len && user.len)
        enqueue(redis, (struct slice[]){SLICE("AUTH"), user, password}, 3, on_greeted, redis);
    else if (password.len)
        enqueue(redis, (struct slice[]){SLICE("AUTH"), password}, 2, on_greeted, redis);
    if (redis->options.db) {
        snprintf(db, sizeof(db), "%u", redis->options.db);
        enqueue(redis, (struct slice[]){SLICE("SELECT"), slice_str(db)}, 2, on_greeted, redis);
    }
    if (!redis->options.channels) {
        enqueue(redis, &SLICE("PING"), 1, on_last_greeted, redis);
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
        lose(redis, strerror(err ? err : errno));
        return false;
    }
    if (redis->conn.layer) {
        enum conn_result result = conn_handshake(&redis->conn, redis->bufs);
        if (result == CONN_BLOCKED)
            return false;
        if (result != CONN_OK) {
            const char *why = tls_failure(&redis->conn);
            lose(redis, why ? why : "the TLS handshake failed");
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
        lose(redis, "the connection broke");
        return;
    }
    if (redis->out.len)
        loop_later(loop, &redis->flush);
    read_replies(redis);
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
        lose(redis, strerror(errno));
        return;
    }
    redis->peer = net_addr_to_ip(addr);
    conn_init(&redis->conn, fd, on_ready, on_unused_timer);
    redis->conn.is_connecting = true;
    redis->state = CONNECTING;
    redis->began_ns = redis->heard_ns = redis->loop->now_ns;
    if ((redis->options.tls &&
         !tls_connect(redis->tls_thread, &redis->conn, redis->options.tls, &redis->peer, NULL)) ||
        loop_arm(redis->loop, &redis->conn.io)) {
        lose(redis, "no memory");
        return;
    }
    loop_timer_set(redis->loop, &redis->timer, redis->loop->now_ns + WATCH_MS * NS_PER_MS);
}

static void on_resolved(void *owner, const struct net_addr *addr, const char *why)
{
    struct redis *redis = owner;
    redis->lookup = NULL;
    redis->state = WAITING;
    if (addr)
        connect_to(redis, addr);
    else
        lose(redis, why);
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
    if (redis->state != SERVING && now_ns > redis->began_ns + CONNECT_MS * NS_PER_MS) {
        lose(redis, "it does not answer");
        return;
    }
    uint64_t patience_ms = redis->options.channels ? 2 * EARS_PING_MS : STALL_MS;
    if (redis->state == SERVING && (owes || redis->options.channels) &&
        now_ns > redis->heard_ns + patience_ms * NS_PER_MS) {
        lose(redis, "it has stopped answering");
        return;
    }
    if (redis->state == SERVING && !owes && !redis->options.channels &&
        (redis->health == REDIS_SLOW || now_ns > redis->heard_ns + IDLE_PING_MS * NS_PER_MS))
        enqueue(redis, &SLICE("PING"), 1, on_ping, NULL);
    if (redis->state == SERVING && redis->options.channels)
        watch_ears(redis);
    loop_timer_set(redis->loop, &redis->timer, now_ns + WATCH_MS * NS_PER_MS);
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct redis *redis = container_of(timer, struct redis, timer);
    if (is_connected(redis)) {
        watch(redis);
    } else if (redis->state == WAITING) {
        redis->state = RESOLVING;
        redis->lookup = lookup_start(loop, redis->host, redis->options.port, on_resolved, redis);
    }
}

static char *copy(struct slice s)
{
    char *text = strndup(s.ptr ? s.ptr : "", s.len);
    iso_assert(text != NULL);
    return text;
}

struct redis *redis_new(struct loop *loop, struct buf_pool *bufs, struct tls_thread *tls,
                        const struct redis_options *options, const struct redis_events *events, void *owner)
{
    struct redis *redis = calloc(1, sizeof(*redis));
    iso_assert(redis != NULL);
    redis->loop = loop;
    redis->bufs = bufs;
    redis->tls_thread = tls;
    redis->options = *options;
    redis->events = *events;
    redis->owner = owner;
    redis->host = copy(options->host);
    redis->user = copy(options->user);
    redis->password = copy(options->password);
    redis->in = malloc(IN_BYTES);
    iso_assert(redis->in != NULL);
    if (options->tls)
        redis->options.tls = tls_client_ref(options->tls);
    text_init(&redis->out);
    loop_later_init(&redis->flush, flush);
    loop_timer_init(&redis->timer, on_due);
    redis->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    redis->alarm.on_ready = on_alarm;
    iso_assert(redis->alarm.fd >= 0 && loop_arm_events(loop, &redis->alarm, EPOLLIN) == ISO_OK);
    loop_timer_set(loop, &redis->timer, loop->now_ns);
    return redis;
}

/* Events of this turn may still name it. */
static void release(struct loop *loop, struct loop_deferred *deferred)
{
    free(container_of(deferred, struct redis, deferred));
}

void redis_free(struct redis **freed)
{
    struct redis *redis = *freed;
    *freed = NULL;
    if (!redis)
        return;
    redis->is_freeing = true;
    lose(redis, "");
    loop_timer_remove(redis->loop, &redis->timer);
    loop_close(redis->loop, &redis->alarm);
    lookup_end(&redis->lookup);
    if (redis->options.tls)
        tls_client_unref(&redis->options.tls);
    text_fini(&redis->out);
    free(redis->in);
    free(redis->host);
    free(redis->user);
    free(redis->password);
    redis->deferred.release = release;
    loop_defer(redis->loop, &redis->deferred);
}
