/* SPDX-License-Identifier: Apache-2.0 */
/* One epoll set, edge-triggered, with timers and a mailbox: each thread owns exactly one loop. A descriptor
 * is registered once for life and for everything (in, out, hang-up); handlers read and write until the kernel
 * says no. One clock read per turn. Memory of objects that end while events for them may still be in the
 * current batch is given back at the end of the turn (loop_defer). Source: measured, see docs/performance.md.
 */
#ifndef ISOBAR_NET_LOOP_H
#define ISOBAR_NET_LOOP_H

#include "core/err.h"
#include "core/list.h"
#include "observe/counters.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;
struct loop_io;
struct loop_timer;

/* `events` are EPOLL* bits. */
typedef void loop_io_fn(struct loop *loop, struct loop_io *io, uint32_t events);
typedef void loop_timer_fn(struct loop *loop, struct loop_timer *timer);
typedef void loop_call_fn(struct loop *loop, void *arg);

/* Something with a descriptor; embedded in its owner. */
struct loop_io {
    int fd;
    bool is_armed; /* registered in epoll */
    loop_io_fn *on_ready;
};

/* A deadline; embedded in its owner. Lazy: moving `due_ns` later costs a store, the wheel finds out when the
 * old time comes. `on_due` runs once at or up to one tick (16 ms) after due_ns. */
struct loop_timer {
    struct list node;
    uint64_t due_ns;  /* 0: not set */
    uint64_t slot_ns; /* when the wheel will look at it */
    loop_timer_fn *on_due;
};

/* Work handed in from another thread. The caller owns the memory until `fn` has run. */
struct loop_call {
    struct loop_call *next;
    loop_call_fn *fn;
    void *arg;
};

/* Work for the next turn of the same loop: what must not run inside the handler that asked for it, or must
 * give way to others first. Embedded in its owner, which calls loop_cancel_later() when it ends. */
struct loop_later {
    struct list node;
    void (*run)(struct loop *loop, struct loop_later *later);
};

/* A deferred release: embedded in the object that ends. */
struct loop_deferred {
    struct loop_deferred *next;
    void (*release)(struct loop *loop, struct loop_deferred *deferred);
};

enum { LOOP_WHEEL_SLOTS = 1024, LOOP_TICK_MS = 16 };

struct loop {
    /* owner thread only */
    int epoll_fd;
    uint64_t now_ns;       /* monotonic, of this turn */
    uint64_t wall_ns;      /* of this turn */
    uint64_t wheel_ns;     /* the wheel has been looked at up to here */
    uint64_t next_slot_ns; /* no timer stands in a slot before; behind the hand: not known */
    struct list wheel[LOOP_WHEEL_SLOTS];
    uint32_t n_timers;
    struct list later;
    struct loop_deferred *deferred, **deferred_end; /* first in, first out */
    struct loop_io wake;
    bool stopping;
    const void *warm; /* see loop_warm() */
    size_t warm_bytes;
    uint64_t turns;
    counter *turns_counter; /* may be NULL; the same for other threads to read */
    /* any thread: atomic, release on push, acquire on take */
    _Atomic(struct loop_call *) calls;
};

iso_err loop_init(struct loop *loop) ISO_MUST_USE;
void loop_fini(struct loop *loop);
/* Turns until loop_stop(). Threads: the owner. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);
/* Memory that every turn's handlers touch, borrowed: the loop asks the cache for it when it wakes. */
void loop_warm(struct loop *loop, const void *memory, size_t n);

/* Registers io->fd for EPOLLIN|EPOLLOUT|EPOLLRDHUP, edge-triggered; a no-op when it is. */
iso_err loop_arm(struct loop *loop, struct loop_io *io) ISO_MUST_USE;
/* The same with other EPOLL* bits, for listeners (EPOLLIN level-triggered). */
iso_err loop_arm_events(struct loop *loop, struct loop_io *io, uint32_t events) ISO_MUST_USE;
/* Takes the descriptor out of epoll. Needed before closing one that another process has open too: the
 * kernel's registration lives as long as the socket does, and would swallow wake-ups meant for the other. */
void loop_disarm(struct loop *loop, struct loop_io *io);
/* Closes the descriptor, which also leaves epoll; io->fd becomes -1. */
void loop_close(struct loop *loop, struct loop_io *io);

void loop_timer_init(struct loop_timer *timer, loop_timer_fn *on_due);
/* Sets or moves the deadline. */
void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns);
/* No longer due; the node may stay in the wheel until its slot comes, so an owner that ends calls _remove. */
static inline void loop_timer_clear(struct loop_timer *timer)
{
    timer->due_ns = 0;
}
void loop_timer_remove(struct loop *loop, struct loop_timer *timer);

void loop_later_init(struct loop_later *later, void (*run)(struct loop *loop, struct loop_later *later));
/* Runs later->run once in the next turn, which comes without sleeping; asking twice is asking once. */
void loop_later(struct loop *loop, struct loop_later *later);
static inline void loop_cancel_later(struct loop_later *later)
{
    list_remove(&later->node);
}

/* Runs release(deferred) at the end of this turn. */
void loop_defer(struct loop *loop, struct loop_deferred *deferred);

/* Runs call->fn on the loop's thread in its next turn. Threads: any. */
void loop_post(struct loop *loop, struct loop_call *call);

#endif
