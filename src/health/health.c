/* SPDX-License-Identifier: Apache-2.0 */
#include "health/health.h"

#include "core/clock.h"
#include "core/log.h"
#include "health/watch.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

struct apply {
    struct loop_call call;
    struct health *health;
    const struct health_spec *specs;
    uint32_t n;
    const struct slice *groups; /* [n_groups]: all others stay; NULL: these are all there are */
    uint32_t n_groups;
    sem_t done;
};

static void apply(struct loop *loop, void *arg)
{
    struct apply *apply = arg;
    set_apply(apply->health, apply->specs, apply->n, apply->groups, apply->n_groups);
    sem_post(&apply->done);
}

static void on_rung(struct loop *loop, void *arg)
{
    struct health *health = arg;
    atomic_exchange_explicit(&health->is_rung, false, memory_order_acq_rel);
    for (uint32_t g = 0; g < health->n_groups; g++)
        group_judge(health->groups[g]);
    for (uint32_t i = 0; i < health->n_watches; i++)
        if (atomic_exchange_explicit(&health->watches[i]->status->is_suspect, 0, memory_order_relaxed))
            watch_check_now(health->watches[i]);
}

void health_ring(struct health *health)
{
    if (!atomic_exchange_explicit(&health->is_rung, true, memory_order_acq_rel))
        loop_post(&health->loop, &health->ring_call);
}

void health_suspect(void *arg)
{
    struct health_status *status = arg;
    atomic_store_explicit(&status->is_suspect, 1, memory_order_relaxed);
    if (status->watcher)
        health_ring(status->watcher);
}

static void stop(struct loop *loop, void *arg)
{
    loop_stop(loop);
}

static void *run(void *arg)
{
    struct health *health = arg;
    pthread_setname_np(pthread_self(), "isobar-health");
    loop_run(&health->loop);
    set_free(health);
    tls_thread_free(health->tls);
    http2_client_thread_free(health->http2);
    loop_fini(&health->loop);
    buf_pool_fini(&health->bufs);
    return NULL;
}

iso_err health_start(struct health **out)
{
    struct health *health = calloc(1, sizeof(*health));
    iso_assert(health != NULL);
    rng_init(&health->rng, clock_mono_ns());
    health->ring_call = (struct loop_call){.fn = on_rung, .arg = health};
    if (loop_init(&health->loop)) {
        free(health);
        return ISO_ERR_SYSTEM;
    }
    buf_pool_init(&health->bufs);
    health->tls = tls_thread_new(&health->loop, &health->bufs);
    health->http2 = http2_client_thread_new(&health->bufs, NULL);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread takes no signal */
    int failed = pthread_create(&health->thread, NULL, run, health);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        log_error("cannot start the health thread: %s", strerror(failed));
        tls_thread_free(health->tls);
        http2_client_thread_free(health->http2);
        loop_fini(&health->loop);
        buf_pool_fini(&health->bufs);
        free(health);
        return ISO_ERR_SYSTEM;
    }
    *out = health;
    return ISO_OK;
}

static void call_apply(struct health *health, struct apply *call)
{
    call->call = (struct loop_call){.fn = apply, .arg = call};
    call->health = health;
    sem_init(&call->done, 0, 0);
    loop_post(&health->loop, &call->call);
    while (sem_wait(&call->done) < 0 && errno == EINTR)
        continue;
    sem_destroy(&call->done);
}

void health_apply(struct health *health, const struct health_spec *specs, uint32_t n)
{
    call_apply(health, &(struct apply){.specs = specs, .n = n});
}

void health_apply_groups(struct health *health, const struct slice *groups, uint32_t n_groups,
                         const struct health_spec *specs, uint32_t n)
{
    call_apply(health, &(struct apply){.specs = specs, .n = n, .groups = groups, .n_groups = n_groups});
}

bool health_settle(struct health *health, uint32_t timeout_ms)
{
    const struct timespec pause = {0, 2 * (long)NS_PER_MS};
    uint64_t until_ns = clock_mono_ns() + timeout_ms * NS_PER_MS;
    while (atomic_load_explicit(&health->n_unsettled, memory_order_relaxed)) {
        if (clock_mono_ns() >= until_ns)
            return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

void health_stop(struct health **health)
{
    if (!*health)
        return;
    struct loop_call call = {.fn = stop};
    loop_post(&(*health)->loop, &call);
    pthread_join((*health)->thread, NULL);
    free(*health);
    *health = NULL;
}
