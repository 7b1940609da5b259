/* SPDX-License-Identifier: Apache-2.0 */
/* One mutex covers everything that both sides touch. The thread's way back is an eventfd of its own rather
 * than loop_post(), so that nothing is left in the loop's mailbox once the owner has stopped it. */
#include "store/blocking.h"

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct blocking {
    /* set once before the thread starts */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t asked, ended; /* ended: by the monotonic clock */
    /* under the lock */
    struct blocking_job *todo, **todo_end;
    struct blocking_job *finished, **finished_end;
    bool is_stopping;
    bool is_left; /* nobody waits: what was not begun is not done */
    bool has_ended;
    /* loop's thread only */
    struct loop *loop;
    struct loop_io woken; /* fd also written by the thread, under the lock while not stopping */
    struct loop_deferred deferred;
    /* any thread: atomic */
    _Atomic uint32_t refs; /* the thread's and the loop's; the last one frees */
};

static void push(struct blocking_job ***end, struct blocking_job *job)
{
    job->next = NULL;
    **end = job;
    *end = &job->next;
}

static struct blocking_job *take_all(struct blocking_job **first, struct blocking_job ***end)
{
    struct blocking_job *jobs = *first;
    *first = NULL;
    *end = first;
    return jobs;
}

static void discard_all(struct blocking_job *jobs)
{
    while (jobs) {
        struct blocking_job *next = jobs->next;
        jobs->discard(jobs);
        jobs = next;
    }
}

static void unref(struct blocking *blocking)
{
    if (atomic_fetch_sub_explicit(&blocking->refs, 1, memory_order_acq_rel) > 1)
        return;
    discard_all(take_all(&blocking->todo, &blocking->todo_end));
    discard_all(take_all(&blocking->finished, &blocking->finished_end));
    pthread_cond_destroy(&blocking->asked);
    pthread_cond_destroy(&blocking->ended);
    pthread_mutex_destroy(&blocking->lock);
    free(blocking);
}

static void *run(void *arg)
{
    static const uint64_t one = 1;
    struct blocking *blocking = arg;
    pthread_mutex_lock(&blocking->lock);
    while (!blocking->is_stopping || (blocking->todo && !blocking->is_left)) {
        struct blocking_job *job = blocking->todo;
        if (!job) {
            pthread_cond_wait(&blocking->asked, &blocking->lock);
            continue;
        }
        blocking->todo = job->next;
        if (!blocking->todo)
            blocking->todo_end = &blocking->todo;
        pthread_mutex_unlock(&blocking->lock);
        job->work(job);
        pthread_mutex_lock(&blocking->lock);
        push(&blocking->finished_end, job);
        if (!blocking->is_stopping && write(blocking->woken.fd, &one, sizeof(one)) < 0)
            log_error("eventfd: %m");
    }
    blocking->has_ended = true;
    pthread_cond_signal(&blocking->ended);
    pthread_mutex_unlock(&blocking->lock);
    unref(blocking);
    return NULL;
}

static void on_woken(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct blocking *blocking = container_of(io, struct blocking, woken);
    uint64_t n;
    if (read(io->fd, &n, sizeof(n)) < 0)
        return;
    for (;;) { /* one at a time: a job's done may stop us */
        pthread_mutex_lock(&blocking->lock);
        struct blocking_job *job = blocking->is_stopping ? NULL : blocking->finished;
        if (job) {
            blocking->finished = job->next;
            if (!blocking->finished)
                blocking->finished_end = &blocking->finished;
        }
        pthread_mutex_unlock(&blocking->lock);
        if (!job)
            return;
        job->done(job);
    }
}

static void init_ended(struct blocking *blocking)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&blocking->ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

iso_err blocking_start(struct loop *loop, const char *name, struct blocking **out)
{
    struct blocking *blocking = calloc(1, sizeof(*blocking));
    iso_assert(blocking != NULL);
    blocking->loop = loop;
    blocking->refs = 2;
    blocking->todo_end = &blocking->todo;
    blocking->finished_end = &blocking->finished;
    blocking->woken = (struct loop_io){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), .on_ready = on_woken};
    pthread_mutex_init(&blocking->lock, NULL);
    pthread_cond_init(&blocking->asked, NULL);
    init_ended(blocking);
    if (blocking->woken.fd < 0 || loop_arm_events(loop, &blocking->woken, EPOLLIN) ||
        pthread_create(&blocking->thread, NULL, run, blocking)) {
        log_error("cannot start the thread %s: %m", name);
        loop_close(loop, &blocking->woken);
        atomic_store_explicit(&blocking->refs, 1, memory_order_relaxed);
        unref(blocking);
        return ISO_ERR_SYSTEM;
    }
    pthread_setname_np(blocking->thread, name);
    *out = blocking;
    return ISO_OK;
}

void blocking_do(struct blocking *blocking, struct blocking_job *job)
{
    pthread_mutex_lock(&blocking->lock);
    push(&blocking->todo_end, job);
    pthread_cond_signal(&blocking->asked);
    pthread_mutex_unlock(&blocking->lock);
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    unref(container_of(deferred, struct blocking, deferred));
}

/* What is not begun is not done any more when the thread is `left`. */
static void tell_to_end(struct blocking *blocking, bool left)
{
    pthread_mutex_lock(&blocking->lock);
    blocking->is_stopping = true;
    blocking->is_left = left;
    pthread_cond_signal(&blocking->asked);
    pthread_mutex_unlock(&blocking->lock);
}

static void release_soon(struct blocking *blocking)
{
    loop_close(blocking->loop, &blocking->woken);
    blocking->deferred.release = release; /* an event of this turn may still name it */
    loop_defer(blocking->loop, &blocking->deferred);
}

static void end_joined(struct blocking *blocking)
{
    /* Now, not with the rest: jobs may be a part of what the caller frees next. */
    discard_all(take_all(&blocking->todo, &blocking->todo_end));
    discard_all(take_all(&blocking->finished, &blocking->finished_end));
    release_soon(blocking);
}

void blocking_stop(struct blocking **taken)
{
    struct blocking *blocking = *taken;
    *taken = NULL;
    tell_to_end(blocking, false);
    pthread_join(blocking->thread, NULL);
    end_joined(blocking);
}

static bool waits_until_ended(struct blocking *blocking, uint64_t until_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S),
                                   .tv_nsec = (long)(until_ns % NS_PER_S)};
    pthread_mutex_lock(&blocking->lock);
    while (!blocking->has_ended &&
           pthread_cond_timedwait(&blocking->ended, &blocking->lock, &until) != ETIMEDOUT)
        ;
    bool has_ended = blocking->has_ended;
    pthread_mutex_unlock(&blocking->lock);
    return has_ended;
}

bool blocking_stop_within(struct blocking **taken, uint32_t ms)
{
    struct blocking *blocking = *taken;
    tell_to_end(blocking, false);
    if (!waits_until_ended(blocking, clock_mono_ns() + ms * NS_PER_MS)) {
        blocking_leave(taken);
        return false;
    }
    blocking_stop(taken);
    return true;
}

void blocking_leave(struct blocking **taken)
{
    struct blocking *blocking = *taken;
    *taken = NULL;
    pthread_t thread = blocking->thread;
    tell_to_end(blocking, true);
    pthread_detach(thread);
    release_soon(blocking);
}
