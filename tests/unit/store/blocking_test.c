/* SPDX-License-Identifier: Apache-2.0 */
#include "store/blocking.h"

#include "core/check.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static struct loop loop;
static pthread_t worked_on;
static int n_done, order[3], n_discarded;
static pthread_barrier_t begun, go_on;

struct numbered {
    struct blocking_job job;
    int number;
    bool waits;
};

static void work(struct blocking_job *job)
{
    struct numbered *numbered = container_of(job, struct numbered, job);
    worked_on = pthread_self();
    if (!numbered->waits)
        return;
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&go_on);
}

static void done(struct blocking_job *job)
{
    order[n_done++] = container_of(job, struct numbered, job)->number;
    if (n_done == 3)
        loop_stop(&loop);
}

static void discard(struct blocking_job *job)
{
    n_discarded++;
}

static struct numbered numbered(int number, bool waits)
{
    return (struct numbered){
        .job = {.work = work, .done = done, .discard = discard}, .number = number, .waits = waits};
}

static int begin(void **state)
{
    n_done = n_discarded = 0;
    pthread_barrier_init(&begun, NULL, 2);
    pthread_barrier_init(&go_on, NULL, 2);
    return loop_init(&loop);
}

static int end(void **state)
{
    loop_fini(&loop);
    pthread_barrier_destroy(&begun);
    pthread_barrier_destroy(&go_on);
    return 0;
}

static void jobs_are_done_elsewhere_in_order_and_come_back(void **state)
{
    struct blocking *blocking;
    struct numbered jobs[] = {numbered(1, false), numbered(2, false), numbered(3, false)};
    assert_int_equal(blocking_start(&loop, "test", &blocking), ISO_OK);
    for (int i = 0; i < 3; i++)
        blocking_do(blocking, &jobs[i].job);
    loop_run(&loop);
    assert_false(pthread_equal(worked_on, pthread_self()));
    for (int i = 0; i < 3; i++)
        assert_int_equal(order[i], i + 1);
    blocking_stop(&blocking);
    assert_null(blocking);
}

static void stopping_ends_all_jobs_and_discards_them(void **state)
{
    struct blocking *blocking;
    struct numbered jobs[] = {numbered(1, true), numbered(2, false)};
    assert_int_equal(blocking_start(&loop, "test", &blocking), ISO_OK);
    blocking_do(blocking, &jobs[0].job);
    blocking_do(blocking, &jobs[1].job);
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&go_on);
    blocking_stop(&blocking);
    loop_fini(&loop); /* what is left is discarded at the end of the turn */
    assert_int_equal(n_done, 0);
    assert_int_equal(n_discarded, 2);
    assert_int_equal(loop_init(&loop), ISO_OK);
}

static _Atomic int n_freed;

static void free_job(struct blocking_job *job)
{
    free(container_of(job, struct numbered, job));
    n_freed++;
}

static void leaving_waits_for_nothing(void **state)
{
    struct blocking *blocking;
    struct numbered *job = malloc(sizeof(*job));
    *job = numbered(1, true);
    job->job.discard = free_job;
    assert_int_equal(blocking_start(&loop, "test", &blocking), ISO_OK);
    blocking_do(blocking, &job->job);
    pthread_barrier_wait(&begun);
    blocking_leave(&blocking); /* while the job goes on */
    loop_fini(&loop);
    assert_int_equal(n_freed, 0);
    pthread_barrier_wait(&go_on);
    while (n_freed == 0)
        sched_yield();
    assert_int_equal(n_done, 0);
    assert_int_equal(loop_init(&loop), ISO_OK);
}

static void stopping_within_a_time_waits_for_a_job_that_ends_and_not_for_one_that_hangs(void **state)
{
    struct blocking *blocking;
    struct numbered quick[] = {numbered(1, false), numbered(2, false)}, *job = malloc(sizeof(*job));
    assert_int_equal(blocking_start(&loop, "test", &blocking), ISO_OK);
    blocking_do(blocking, &quick[0].job);
    blocking_do(blocking, &quick[1].job);
    assert_true(blocking_stop_within(&blocking, 60000));
    assert_int_equal(n_discarded, 2);

    *job = numbered(1, true);
    job->job.discard = free_job;
    n_freed = 0;
    assert_int_equal(blocking_start(&loop, "test", &blocking), ISO_OK);
    blocking_do(blocking, &job->job);
    pthread_barrier_wait(&begun);
    assert_false(blocking_stop_within(&blocking, 1));
    assert_null(blocking);
    loop_fini(&loop);
    assert_int_equal(n_freed, 0);
    pthread_barrier_wait(&go_on);
    while (n_freed == 0)
        sched_yield();
    assert_int_equal(loop_init(&loop), ISO_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(jobs_are_done_elsewhere_in_order_and_come_back, begin, end),
        cmocka_unit_test_setup_teardown(stopping_ends_all_jobs_and_discards_them, begin, end),
        cmocka_unit_test_setup_teardown(leaving_waits_for_nothing, begin, end),
        cmocka_unit_test_setup_teardown(
            stopping_within_a_time_waits_for_a_job_that_ends_and_not_for_one_that_hangs, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
