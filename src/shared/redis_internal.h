/* SPDX-License-Identifier: Apache-2.0 */
/* What redis.c (calls and replies) and redis_link.c (the connection) share. The states: waiting for the next
 * attempt, resolving, connecting (socket, then TLS), greeting (AUTH, SELECT, PING or SUBSCRIBE are under
 * way), serving. Everything falls back to waiting through redis_lose(). */
#ifndef ISOBAR_SHARED_REDIS_INTERNAL_H
#define ISOBAR_SHARED_REDIS_INTERNAL_H

#include "net/conn.h"
#include "shared/lookup.h"
#include "shared/redis.h"

enum { REDIS_CALLS_MAX = 2048 /* under way; a power of two */, REDIS_IN_BYTES = 64 << 10 };

enum redis_state { REDIS_WAITING, REDIS_RESOLVING, REDIS_CONNECTING, REDIS_GREETING, REDIS_SERVING };

struct redis_pending {
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
    enum redis_state state;
    enum redis_health health;
    struct conn conn;
    struct lookup *lookup; /* owns */
    struct ip_addr peer;
    struct loop_timer timer; /* the next attempt, or the next look */
    struct loop_io alarm; /* a timerfd: the loop's own timers are too coarse for deadlines of milliseconds */
    bool is_alarm_set;
    struct redis_pending calls[REDIS_CALLS_MAX]; /* a ring: calls[first..end) by masking */
    uint32_t first, end, first_waiting;
    uint32_t late_in_a_row;
    uint32_t retry_ms;
    uint64_t began_ns, heard_ns;
    struct text out; /* of this turn, written at its end */
    struct loop_later flush;
    char *in; /* owns; REDIS_IN_BYTES */
    uint32_t in_len;
    bool is_freeing, has_pinged;
    struct loop_deferred deferred;
};

static inline bool redis_is_connected(const struct redis *redis)
{
    return redis->state == REDIS_CONNECTING || redis->state == REDIS_GREETING ||
           redis->state == REDIS_SERVING;
}

/* Tells the owner; `why` when not good. */
void redis_set_health(struct redis *redis, enum redis_health health, const char *why);
/* The greeting is over. */
void redis_serve(struct redis *redis);
/* Sends a command in any state with a connection; see redis_call(). */
bool redis_enqueue(struct redis *redis, const struct slice *args, size_t n, redis_reply_fn *reply, void *arg);
/* Answers every call under way with nothing. */
void redis_fail_calls(struct redis *redis);
/* Reads and takes replies as long as there are bytes. */
void redis_read_replies(struct redis *redis);

/* The connection ends; another attempt follows after a while. */
void redis_lose(struct redis *redis, const char *why);
/* Of redis->timer: the next attempt, or the next look at the connection. */
void redis_on_due(struct loop *loop, struct loop_timer *timer);

#endif
