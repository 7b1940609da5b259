/* SPDX-License-Identifier: Apache-2.0 */
/* One connection to a Redis or Valkey on a loop: kept open by itself (name, connect, TLS, AUTH, SELECT, then
 * again after a pause that grows), with calls pipelined and answered in order, each within the deadline or
 * with nothing. A server that keeps missing the deadline counts as slow until it answers in time again: then
 * nobody should wait for it. Everything here runs on the loop's thread and nothing waits.
 *
 * What a server sends is bounded (shared/resp); anything that is no reply, or that says the server cannot
 * serve us (a replica, a cluster that redirects, a wrong password), ends the connection with a reason. */
#ifndef ISOBAR_SHARED_REDIS_H
#define ISOBAR_SHARED_REDIS_H

#include "shared/resp.h"
#include "tls/client.h"
#include "tls/tls_layer.h"

#include "net/loop.h"

struct redis;

/* Where and how. Texts are copied. */
struct redis_options {
    struct slice host; /* a name or an address */
    uint16_t port;
    struct slice user, password; /* len 0: none */
    uint32_t db;
    struct tls_client *tls;      /* counted; NULL: plain */
    uint32_t timeout_ms;         /* for the answer to a call */
    const char *const *channels; /* to listen to, NULL behind the last; then no calls can be made */
};

enum redis_health {
    REDIS_AWAY, /* no connection that serves us */
    REDIS_SLOW, /* a connection, but it misses the deadline */
    REDIS_GOOD,
};

/* What the owner is told. */
struct redis_events {
    /* `why` in words, when not good. */
    void (*on_health)(void *owner, enum redis_health health, const char *why);
    /* Something came on a channel; may be NULL without channels. */
    void (*on_message)(void *owner, struct slice channel, struct slice text);
};

/* The answer to a call; NULL: none in time, or the connection has ended. May make calls. */
typedef void redis_reply_fn(void *owner, void *arg, const struct resp_value *reply);

/* Begins to connect. `loop`, `bufs` and `tls` are the thread's. Aborts when memory ends. */
struct redis *redis_new(struct loop *loop, struct buf_pool *bufs, struct tls_thread *tls,
                        const struct redis_options *options, const struct redis_events *events, void *owner);
/* Ends it; calls under way are answered with nothing, the owner hears no more of its health. */
void redis_free(struct redis **redis);

enum redis_health redis_health(const struct redis *redis);

/* Sends a command. False: not connected, or too much is under way; `reply` will not be called. */
bool redis_call(struct redis *redis, const struct slice *args, size_t n, redis_reply_fn *reply, void *arg);

#endif
