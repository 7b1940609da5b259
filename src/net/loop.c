/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include "core/clock.h"
#include "core/fetch.h"
#include "core/log.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { EVENTS_PER_TURN = 512, LOOK_AHEAD_SLOTS = 64 };
#define TICK_NS (LOOP_TICK_MS * NS_PER_MS)

static void on_wake(struct loop *loop, struct loop_io *io, uint32_t events)
{
    uint64_t n;
    if (read(io->fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
        log_error("eventfd: %m");
    struct loop_call *calls = atomic_exchange_explicit(&loop->calls, NULL, memory_order_acquire);
    struct loop_call *in_order = NULL;
    while (calls) {
        struct loop_call *next = calls->next;
        calls->next = in_order;
        in_order = calls;
        calls = next;
    }
    while (in_order) {
        struct loop_call *next = in_order->next; /* fn may free or post the call again */
        in_order->fn(loop, in_order->arg);
        in_order = next;
    }
}

static void read_clock(struct loop *loop)
{
    loop->now_ns = clock_mono_ns();
    loop->wall_ns = clock_wall_ns();
}

iso_err loop_init(struct loop *loop)
{
    *loop = (struct loop){.epoll_fd = epoll_create1(EPOLL_CLOEXEC), .wake = {.fd = -1, .on_ready = on_wake}};
    loop->deferred_end = &loop->deferred;
    if (loop->epoll_fd < 0)
        goto fail;
    for (int i = 0; i < LOOP_WHEEL_SLOTS; i++)
        list_init(&loop->wheel[i]);
    list_init(&loop->later);
    read_clock(loop);
    loop->wheel_ns = loop->now_ns;
    loop->wake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake.fd < 0 || loop_arm_events(loop, &loop->wake, EPOLLIN | EPOLLET))
        goto fail;
    return ISO_OK;
fail:
    log_error("cannot make an event loop: %m");
    loop_fini(loop);
    return ISO_ERR_SYSTEM;
}

static void run_deferred(struct loop *loop)
{
    while (loop->deferred) {
        struct loop_deferred *deferred = loop->deferred;
        loop->deferred = deferred->next;
        if (!loop->deferred)
            loop->deferred_end = &loop->deferred;
        deferred->release(loop, deferred);
    }
}

void loop_fini(struct loop *loop)
{
    run_deferred(loop);
    loop_close(loop, &loop->wake);
    if (loop->epoll_fd >= 0)
        close(loop->epoll_fd);
    loop->epoll_fd = -1;
}

iso_err loop_arm_events(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = io};
    if (io->is_armed)
        return ISO_OK;
    if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, io->fd, &event) < 0)
        return ISO_ERR_SYSTEM;
    io->is_armed = true;
    return ISO_OK;
}

iso_err loop_arm(struct loop *loop, struct loop_io *io)
{
    return loop_arm_events(loop, io, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

void loop_disarm(struct loop *loop, struct loop_io *io)
{
    if (io->is_armed)
        epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
    io->is_armed = false;
}

void loop_close(struct loop *loop, struct loop_io *io)
{
    if (io->fd >= 0)
        close(io->fd);
    io->fd = -1;
    io->is_armed = false;
}

void loop_timer_init(struct loop_timer *timer, loop_timer_fn *on_due)
{
    *timer = (struct loop_timer){.on_due = on_due};
    list_init(&timer->node);
}

static void wheel_insert(struct loop *loop, struct loop_timer *timer)
{
    /* At most one revolution ahead; a later deadline is looked at then and goes round again. */
    uint64_t furthest = loop->wheel_ns + (LOOP_WHEEL_SLOTS - 2) * TICK_NS;
    uint64_t at = timer->due_ns < loop->wheel_ns ? loop->wheel_ns : timer->due_ns;
    timer->slot_ns = at > furthest ? furthest : at;
    if (timer->slot_ns < loop->next_slot_ns)
        loop->next_slot_ns = timer->slot_ns / TICK_NS * TICK_NS;
    list_push_back(&loop->wheel[timer->slot_ns / TICK_NS % LOOP_WHEEL_SLOTS], &timer->node);
}

void loop_timer_set(struct loop *loop, struct loop_timer *timer, uint64_t due_ns)
{
    timer->due_ns = due_ns;
    if (list_is_empty(&timer->node)) {
        loop->n_timers++;
        wheel_insert(loop, timer);
    } else if (due_ns < timer->slot_ns) {
        list_remove(&timer->node);
        wheel_insert(loop, timer);
    }
}

void loop_timer_remove(struct loop *loop, struct loop_timer *timer)
{
    timer->due_ns = 0;
    if (list_is_empty(&timer->node))
        return;
    list_remove(&timer->node);
    loop->n_timers--;
}

/* Takes all nodes of `from` over, so that those added meanwhile wait for the next time. */
static void move_all(struct list *to, struct list *from)
{
    list_init(to);
    if (list_is_empty(from))
        return;
    *to = *from;
    to->next->prev = to->prev->next = to;
    list_init(from);
}

static void run_slot(struct loop *loop, struct list *slot)
{
    struct list ready;
    move_all(&ready, slot); /* a handler may set or remove any timer */
    while (!list_is_empty(&ready)) {
        struct loop_timer *timer = container_of(ready.next, struct loop_timer, node);
        list_remove(&timer->node);
        if (timer->due_ns == 0) {
            loop->n_timers--;
        } else if (timer->due_ns > loop->now_ns) {
            wheel_insert(loop, timer);
        } else {
            loop->n_timers--;
            timer->due_ns = 0;
            timer->on_due(loop, timer);
        }
    }
}

static void run_timers(struct loop *loop)
{
    if (loop->now_ns / TICK_NS - loop->wheel_ns / TICK_NS >= LOOP_WHEEL_SLOTS) {
        /* The thread slept longer than a revolution (there was no timer, or the process was stopped). What
         * was set in this turn stands where the old hand allowed: every slot is looked at from where the hand
         * is. */
        loop->wheel_ns = loop->now_ns;
        for (int i = 0; i < LOOP_WHEEL_SLOTS; i++)
            run_slot(loop, &loop->wheel[i]);
        return;
    }
    /* A slot is run once its whole tick has passed, so that nothing in it can be early. */
    while (loop->wheel_ns / TICK_NS < loop->now_ns / TICK_NS) {
        struct list *slot = &loop->wheel[loop->wheel_ns / TICK_NS % LOOP_WHEEL_SLOTS];
        loop->wheel_ns = (loop->wheel_ns / TICK_NS + 1) * TICK_NS;
        if (!list_is_empty(slot))
            run_slot(loop, slot);
    }
}

/* The first slot at or behind the hand that holds a timer, looked for a second ahead. */
static uint64_t find_next_slot(const struct loop *loop)
{
    uint64_t tick = loop->wheel_ns / TICK_NS, ahead = 0;
    while (ahead < LOOK_AHEAD_SLOTS && list_is_empty(&loop->wheel[(tick + ahead) % LOOP_WHEEL_SLOTS]))
        ahead++;
    return (tick + ahead) * TICK_NS;
}

/* How long epoll may sleep, in ms: to the end of the next slot. It is looked for only when the last one found
 * has passed; a slot that has lost its timers since costs one turn. */
static int sleep_ms(struct loop *loop)
{
    if (loop->n_timers == 0)
        return -1;
    if (loop->next_slot_ns < loop->wheel_ns / TICK_NS * TICK_NS)
        loop->next_slot_ns = find_next_slot(loop);
    uint64_t end_ns = loop->next_slot_ns + TICK_NS;
    return end_ns <= loop->now_ns ? 0 : (int)((end_ns - loop->now_ns) / NS_PER_MS) + 1;
}

/* What the event's handler reads first: a client, an upstream. */
static inline void fetch_owner(const struct epoll_event *event)
{
    enum { OWNER_BYTES = 256 };
    fetch(event->data.ptr, OWNER_BYTES);
}

void loop_run(struct loop *loop)
{
    struct epoll_event events[EVENTS_PER_TURN];
    while (!loop->stopping) {
        struct list todo;
        move_all(&todo, &loop->later);
        int timeout_ms = list_is_empty(&todo) ? sleep_ms(loop) : 0;
        int n = epoll_wait(loop->epoll_fd, events, EVENTS_PER_TURN, timeout_ms);
        if (n < 0 && errno != EINTR) {
            log_error("epoll_wait: %m");
            return;
        }
        if (n > 0)
            fetch_owner(&events[0]);
        fetch(loop->warm, loop->warm_bytes);
        read_clock(loop);
        for (int i = 0; i < n; i++) {
            struct loop_io *io = events[i].data.ptr;
            if (i + 1 < n)
                fetch_owner(&events[i + 1]);
            if (io->fd >= 0) /* not closed earlier in this turn */
                io->on_ready(loop, io, events[i].events);
        }
        while (!list_is_empty(&todo)) {
            struct loop_later *later = container_of(todo.next, struct loop_later, node);
            list_remove(&later->node);
            later->run(loop, later);
        }
        run_timers(loop);
        run_deferred(loop);
        loop->turns++;
        if (loop->turns_counter)
            counter_add(loop->turns_counter, 1);
    }
}

void loop_warm(struct loop *loop, const void *memory, size_t n)
{
    loop->warm = memory;
    loop->warm_bytes = n;
}

void loop_stop(struct loop *loop)
{
    loop->stopping = true;
}

void loop_later_init(struct loop_later *later, void (*run)(struct loop *loop, struct loop_later *later))
{
    *later = (struct loop_later){.run = run};
    list_init(&later->node);
}

void loop_later(struct loop *loop, struct loop_later *later)
{
    if (list_is_empty(&later->node))
        list_push_back(&loop->later, &later->node);
}

void loop_defer(struct loop *loop, struct loop_deferred *deferred)
{
    deferred->next = NULL;
    *loop->deferred_end = deferred;
    loop->deferred_end = &deferred->next;
}

void loop_post(struct loop *loop, struct loop_call *call)
{
    static const uint64_t one = 1;
    struct loop_call *head = atomic_load_explicit(&loop->calls, memory_order_relaxed);
    do
        call->next = head;
    while (!atomic_compare_exchange_weak_explicit(&loop->calls, &head, call, memory_order_release,
                                                  memory_order_relaxed));
    if (!head && write(loop->wake.fd, &one, sizeof(one)) < 0)
        log_error("eventfd: %m");
}
