/* SPDX-License-Identifier: Apache-2.0 */
/* What state.c (the thread, its server, its configuration) and state_sessions.c (what workers ask and write)
 * share. */
#ifndef ISOBAR_SHARED_STATE_INTERNAL_H
#define ISOBAR_SHARED_STATE_INTERNAL_H

#include "shared/fleet.h"
#include "shared/outbox.h"
#include "shared/redis.h"
#include "shared/state.h"

#include <pthread.h>

struct state_counters {
    _Atomic uint64_t found, none, unanswered, outages, stored, errors, lost, waiting;
};

struct shared_state {
    struct loop loop;
    pthread_t thread;
    struct buf_pool bufs;
    struct tls_thread *tls;
    /* the thread's */
    struct redis *calls, *ears;  /* owns; NULL: no server is configured */
    struct roster *roster;       /* owns */
    struct fleet *fleet;         /* owns */
    struct outbox *outbox;       /* owns */
    struct shared_table *tables; /* owns */
    uint32_t n_tables;
    uint32_t n_writes; /* under way */
    uint64_t outage_ns;
    bool is_out; /* and it was said */
    struct loop_timer resend_timer;
    char endpoint[300];
    /* the control thread's */
    struct shared_options options; /* owns its texts; in force */
    bool has_options;
    /* any thread: atomic, relaxed */
    _Atomic uint32_t health; /* enum redis_health */
    _Atomic bool is_configured;
    struct state_counters counters;
};

static inline void state_count(_Atomic uint64_t *what)
{
    atomic_fetch_add_explicit(what, 1, memory_order_relaxed);
}

/* Sends what waits, as far as there is room for it. */
void state_send_writes(struct shared_state *state);
/* Writes a value, or with value.ptr NULL deletes the key, now or when the server is back. */
void state_put_write(struct shared_state *state, struct slice key, struct slice value, uint32_t ttl_s);
/* Of resend_timer. */
void state_on_resend(struct loop *loop, struct loop_timer *timer);

#endif
