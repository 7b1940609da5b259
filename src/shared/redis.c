/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and their replies, in order, each within the deadline or with nothing. */
#include "shared/redis_internal.h"

#include "core/clock.h"
#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
    OUT_BYTES_MAX = 256 << 10,
    SLOW_AFTER = 3, /* calls in a row without an answer in time */
};

void redis_set_health(struct redis *redis, enum redis_health health, const char *why)
{
    enum redis_health before = redis->health;
    redis->health = health;
    if (!redis->is_freeing && (health != before || (health == REDIS_AWAY && why)))
        redis->events.on_health(redis->owner, health, why);
}

/* Answers every call under way with nothing. */
void redis_fail_calls(struct redis *redis)
{
    while (redis->first != redis->end) {
        struct redis_pending call = redis->calls[redis->first++ % REDIS_CALLS_MAX];
        if (call.reply)
            call.reply(redis->owner, call.arg, NULL);
    }
    redis->first_waiting = redis->end;
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

bool redis_enqueue(struct redis *redis, const struct slice *args, size_t n, redis_reply_fn *reply, void *arg)
{
    if (!redis_is_connected(redis) || redis->end - redis->first == REDIS_CALLS_MAX ||
        redis->out.len > OUT_BYTES_MAX)
        return false;
    uint64_t due_ns = UINT64_MAX; /* the greeting: watch() has an eye on it */
    if (redis->state == REDIS_SERVING)
        due_ns = clock_mono_ns() + redis->options.timeout_ms * NS_PER_MS;
    if (redis->first == redis->end)
        redis->heard_ns = redis->loop->now_ns; /* it owes us nothing until now */
    redis->calls[redis->end++ % REDIS_CALLS_MAX] = (struct redis_pending){reply, arg, due_ns};
    resp_command(&redis->out, args, n);
    if (!redis->is_alarm_set && redis->state == REDIS_SERVING)
        set_alarm(redis, due_ns);
    loop_later(redis->loop, &redis->flush);
    return true;
}

bool redis_call(struct redis *redis, const struct slice *args, size_t n, redis_reply_fn *reply, void *arg)
{
    return redis->state == REDIS_SERVING && redis_enqueue(redis, args, n, reply, arg);
}

static void flush(struct loop *loop, struct loop_later *later)
{
    struct redis *redis = container_of(later, struct redis, flush);
    if (!redis_is_connected(redis) || redis->conn.is_connecting || redis->conn.out || redis->out.len == 0)
        return;
    struct iovec piece = {redis->out.data, redis->out.len};
    enum conn_result result = conn_write(&redis->conn, redis->bufs, &piece, 1);
    redis->out.len = 0;
    if (result == CONN_FAILED)
        redis_lose(redis, "the connection broke");
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
        struct redis_pending *call = &redis->calls[redis->first_waiting % REDIS_CALLS_MAX];
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
            redis_set_health(redis, REDIS_SLOW, "it does not answer in time");
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

void redis_serve(struct redis *redis)
{
    redis->state = REDIS_SERVING;
    redis->late_in_a_row = 0;
    redis->first_waiting = redis->first;
    redis_set_health(redis, REDIS_GOOD, NULL);
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
    else if (slice_eq(value->elements[0].text, SLICE("subscribe")) && redis->state == REDIS_GREETING)
        redis_serve(redis);
    return true;
}

static void take_reply(struct redis *redis, const struct resp_value *value)
{
    char why[RESP_LINE_MAX];
    if (redis->options.channels && take_message(redis, value))
        return;
    if (redis->first == redis->end) {
        snprintf(why, sizeof(why), "it answers what was not asked: %.*s", SLICE_ARG(value->text));
        redis_lose(redis, why);
        return;
    }
    uint32_t index = redis->first++;
    struct redis_pending *call = &redis->calls[index % REDIS_CALLS_MAX];
    bool in_time = call->reply != NULL;
    if ((int32_t)(redis->first_waiting - redis->first) < 0)
        redis->first_waiting = redis->first;
    if (redis->state == REDIS_SERVING && useless(value)) {
        if (call->reply)
            call->reply(redis->owner, call->arg, NULL);
        snprintf(why, sizeof(why), "it answers %.*s", SLICE_ARG(value->text));
        redis_lose(redis, why);
        return;
    }
    if (!in_time)
        return;
    redis->late_in_a_row = 0;
    if (redis->state == REDIS_SERVING)
        redis->retry_ms = 0;
    if (redis->health == REDIS_SLOW)
        redis_set_health(redis, REDIS_GOOD, NULL);
    call->reply(redis->owner, call->arg, value);
}

static void take_replies(struct redis *redis)
{
    size_t at = 0, used = 0;
    struct resp_value value;
    enum resp_result result = RESP_NEED_MORE;
    while (redis_is_connected(redis) && at < redis->in_len) {
        result = resp_parse(slice_of(redis->in + at, redis->in_len - at), &value, &used);
        if (result != RESP_COMPLETE)
            break;
        at += used;
        take_reply(redis, &value);
    }
    if (!redis_is_connected(redis))
        return;
    memmove(redis->in, redis->in + at, redis->in_len - at);
    redis->in_len -= (uint32_t)at;
    if (result == RESP_BAD || redis->in_len == REDIS_IN_BYTES)
        redis_lose(redis, "what it sends is no Redis reply");
}

void redis_read_replies(struct redis *redis)
{
    while (redis_is_connected(redis) && redis->conn.can_read) {
        size_t n;
        switch (conn_read(&redis->conn, redis->in + redis->in_len, REDIS_IN_BYTES - redis->in_len, &n)) {
        case CONN_OK:
            redis->in_len += (uint32_t)n;
            redis->heard_ns = redis->loop->now_ns;
            take_replies(redis);
            break;
        case CONN_BLOCKED:
            return;
        case CONN_EOF:
            redis_lose(redis, "it closed the connection");
            return;
        case CONN_FAILED:
            redis_lose(redis, "the connection broke");
            return;
        }
    }
}

/* ---- its life ---- */

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
    redis->in = malloc(REDIS_IN_BYTES);
    iso_assert(redis->in != NULL);
    if (options->tls)
        redis->options.tls = tls_client_ref(options->tls);
    text_init(&redis->out);
    loop_later_init(&redis->flush, flush);
    loop_timer_init(&redis->timer, redis_on_due);
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
    redis_lose(redis, "");
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
