/* SPDX-License-Identifier: Apache-2.0 */
#include "net/loop.h"

#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

/* The loop runs until something stops it; a test that hangs is ended by the runner. */
struct probe {
    struct loop_timer timer;
    struct loop_later later;
    struct loop_io io;
    struct loop_deferred deferred;
    struct probe *other;
    uint64_t ran_ns;
    int runs;
};

static void start(struct loop *loop)
{
    assert_int_equal(loop_init(loop), ISO_OK);
}

static void stop_on_due(struct loop *loop, struct loop_timer *timer)
{
    struct probe *probe = container_of(timer, struct probe, timer);
    probe->ran_ns = loop->now_ns;
    probe->runs++;
    loop_stop(loop);
}

static void a_timer_is_never_early(void **state)
{
    struct loop loop;
    struct probe probe = {0};
    start(&loop);
    loop_timer_init(&probe.timer, stop_on_due);
    uint64_t due_ns = loop.now_ns + 20 * NS_PER_MS;
    loop_timer_set(&loop, &probe.timer, due_ns);
    loop_run(&loop);
    assert_int_equal(probe.runs, 1);
    assert_true(probe.ran_ns >= due_ns);
    loop_fini(&loop);
}

static void count_run(struct loop *loop, struct loop_timer *timer)
{
    container_of(timer, struct probe, timer)->runs++;
}

static void a_deadline_that_moved_later_fires_once_at_the_new_time(void **state)
{
    struct loop loop;
    struct probe moved = {0}, last = {0};
    start(&loop);
    loop_timer_init(&moved.timer, stop_on_due);
    loop_timer_init(&last.timer, count_run);
    loop_timer_set(&loop, &moved.timer, loop.now_ns + 5 * NS_PER_MS);
    uint64_t due_ns = loop.now_ns + 60 * NS_PER_MS;
    loop_timer_set(&loop, &moved.timer, due_ns);
    loop_run(&loop);
    assert_int_equal(moved.runs, 1);
    assert_true(moved.ran_ns >= due_ns);
    loop_fini(&loop);
}

static void a_cleared_timer_does_not_fire(void **state)
{
    struct loop loop;
    struct probe cleared = {0}, stopper = {0};
    start(&loop);
    loop_timer_init(&cleared.timer, count_run);
    loop_timer_init(&stopper.timer, stop_on_due);
    loop_timer_set(&loop, &cleared.timer, loop.now_ns + NS_PER_MS);
    loop_timer_clear(&cleared.timer);
    loop_timer_set(&loop, &stopper.timer, loop.now_ns + 50 * NS_PER_MS);
    loop_run(&loop);
    assert_int_equal(cleared.runs, 0);
    loop_fini(&loop);
}

static void set_timer(struct loop *loop, struct loop_later *later)
{
    struct probe *probe = container_of(later, struct probe, later);
    loop_timer_set(loop, &probe->timer, loop->now_ns + 20 * NS_PER_MS);
}

static void stop_and_note_slot(struct loop *loop, struct loop_timer *timer)
{
    container_of(timer, struct probe, timer)->ran_ns = timer->slot_ns;
    loop_stop(loop);
}

static void a_timer_set_after_a_long_sleep_is_not_late(void **state)
{
    struct loop loop;
    struct probe probe = {0};
    start(&loop);
    loop.wheel_ns -= 40 * NS_PER_S; /* as if the loop had slept without a timer since */
    loop_timer_init(&probe.timer, stop_and_note_slot);
    loop_later_init(&probe.later, set_timer);
    loop_later(&loop, &probe.later);
    loop_run(&loop);
    assert_true(loop.now_ns - probe.ran_ns < NS_PER_S); /* it stood in the slot that it fired from */
    loop_fini(&loop);
}

static void on_later(struct loop *loop, struct loop_later *later)
{
    struct probe *probe = container_of(later, struct probe, later);
    if (++probe->runs == 3)
        loop_stop(loop);
    else
        loop_later(loop, later);
}

static void later_work_runs_a_turn_each(void **state)
{
    struct loop loop;
    struct probe probe = {0};
    start(&loop);
    loop_later_init(&probe.later, on_later);
    loop_later(&loop, &probe.later);
    loop_later(&loop, &probe.later);
    loop_run(&loop);
    assert_int_equal(probe.runs, 3);
    assert_int_equal(loop.turns, 3);
    loop_fini(&loop);
}

static void release_probe(struct loop *loop, struct loop_deferred *deferred)
{
    container_of(deferred, struct probe, deferred)->runs += 100;
}

/* Both ends of a pair are ready in one turn; whoever comes first ends the other. */
static void close_the_other(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct probe *self = container_of(io, struct probe, io);
    struct probe *pair = self->other;
    self->runs++;
    assert_int_equal(pair->runs % 100, 0);
    loop_close(loop, &pair->io);
    pair->deferred.release = release_probe;
    loop_defer(loop, &pair->deferred);
    loop_stop(loop);
}

static void a_closed_descriptor_gets_no_event_of_the_same_turn(void **state)
{
    struct loop loop;
    struct probe a = {0}, b = {0};
    int fds[2];
    start(&loop);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    a.io = (struct loop_io){.fd = fds[0], .on_ready = close_the_other};
    b.io = (struct loop_io){.fd = fds[1], .on_ready = close_the_other};
    a.other = &b;
    b.other = &a;
    assert_int_equal(loop_arm(&loop, &a.io), ISO_OK);
    assert_int_equal(loop_arm(&loop, &b.io), ISO_OK);
    loop_run(&loop);
    assert_int_equal(a.runs + b.runs, 101);
    loop_close(&loop, &a.io);
    loop_close(&loop, &b.io);
    loop_fini(&loop);
}

static int calls_run;

static void on_call(struct loop *loop, void *arg)
{
    assert_int_equal(*(int *)arg, calls_run);
    if (++calls_run == 100)
        loop_stop(loop);
}

static void *post_calls(void *arg)
{
    static struct loop_call calls[100];
    static int order[100];
    for (int i = 0; i < 100; i++) {
        order[i] = i;
        calls[i] = (struct loop_call){.fn = on_call, .arg = &order[i]};
        loop_post(arg, &calls[i]);
    }
    return NULL;
}

static void calls_from_another_thread_run_in_order(void **state)
{
    struct loop loop;
    pthread_t thread;
    start(&loop);
    calls_run = 0;
    assert_int_equal(pthread_create(&thread, NULL, post_calls, &loop), 0);
    loop_run(&loop);
    pthread_join(thread, NULL);
    assert_int_equal(calls_run, 100);
    loop_fini(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_is_never_early),
        cmocka_unit_test(a_deadline_that_moved_later_fires_once_at_the_new_time),
        cmocka_unit_test(a_cleared_timer_does_not_fire),
        cmocka_unit_test(a_timer_set_after_a_long_sleep_is_not_late),
        cmocka_unit_test(later_work_runs_a_turn_each),
        cmocka_unit_test(a_closed_descriptor_gets_no_event_of_the_same_turn),
        cmocka_unit_test(calls_from_another_thread_run_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
