/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/thread.h"

#include "core/clock.h"
#include "core/log.h"
#include "downstream/client_h1.h"
#include "downstream/stream.h"
#include "guard/basic_auth.h"
#include "guard/jwt.h"
#include "guard/jwt_cache.h"
#include "guard/ratelimit.h"
#include "proxy/affinity_share.h"
#include "proxy/carrier_h2.h"
#include "proxy/exchange.h"
#include "proxy/forward.h"
#include "proxy/retry.h"
#include "proxy/tunnel_h2.h"
#include "relay/relay.h"
#include "relay/udp.h"
#include "serve/accept.h"
#include "serve/arrival.h"
#include "serve/drain.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static void retire_connections(struct worker *worker, struct backend *backend)
{
    pool_retire(&worker->pool, backend);
    mux_retire(&worker->muxes, backend);
}

/* The backends that the old snapshot names and the new one does not: their idle connections of this worker
 * end. */
static void retire_backends(struct worker *worker, const struct snapshot *old, const struct snapshot *now)
{
    for (uint32_t g = 0; g < old->n_groups; g++) {
        const struct snap_group *group = &old->groups[g];
        if (now && shape_is_in(group->shape, now->version))
            continue;
        for (uint32_t t = 0; t < group->n_targets; t++)
            if (!now || !snapshot_serves_backend(now, group->targets[t]))
                retire_connections(worker, group->targets[t]);
    }
}

static void adopt(struct worker *worker)
{
    struct snapshot *now = atomic_exchange_explicit(&worker->incoming, NULL, memory_order_acq_rel);
    struct snapshot *old = worker->snapshot;
    if (!now)
        return;
    worker->snapshot = now;
    if (!worker->is_stopping)
        accept_adopt(worker);
    if (old) {
        retire_backends(worker, old, now);
        drain_begin(worker);
        if (old->workers[worker->index].uses == 0)
            snapshot_unref(old);
    }
    atomic_store_explicit(&worker->version_in_force, now->version, memory_order_release);
}

static void on_publish(struct loop *loop, void *arg)
{
    struct worker *worker = arg;
    atomic_store_explicit(&worker->wake_queued, false, memory_order_release);
    adopt(worker);
}

void worker_publish(struct worker *worker, struct snapshot *snapshot)
{
    snapshot_ref(snapshot);
    struct snapshot *skipped = atomic_exchange_explicit(&worker->incoming, snapshot, memory_order_acq_rel);
    if (skipped)
        snapshot_unref(skipped);
    if (!atomic_exchange_explicit(&worker->wake_queued, true, memory_order_acq_rel))
        loop_post(&worker->loop, &worker->wake_call);
}

uint64_t worker_version(const struct worker *worker)
{
    return atomic_load_explicit(&((struct worker *)worker)->version_in_force, memory_order_acquire);
}

static void cut_everything(struct loop *loop, struct loop_timer *timer)
{
    struct worker *worker = container_of(timer, struct worker, stop_timer);
    list_for_each_safe (l, next_listener, &worker->listeners) {
        struct worker_listener *listener = container_of(l, struct worker_listener, node);
        list_for_each_safe (c, next, &listener->clients) {
            client_cut(container_of(c, struct client, node));
        }
        relay_cut_all(listener);
        arrival_cut_all(listener);
        if (listener->udp)
            udp_cut_all(listener);
    }
    loop_stop(loop);
}

static void on_wind_down(struct loop *loop, void *arg)
{
    struct worker *worker = arg;
    worker->says_close = true;
    list_for_each (l, &worker->listeners) {
        struct worker_listener *listener = container_of(l, struct worker_listener, node);
        list_for_each (c, &listener->clients) {
            struct client *client = container_of(c, struct client, node);
            if (client->h2)
                client_wind_down(client);
        }
    }
    if (worker->wind_down_closes)
        accept_stop(worker);
}

void worker_wind_down(struct worker *worker, bool stop_accepting)
{
    worker->wind_down_closes = stop_accepting;
    loop_post(&worker->loop, &worker->wind_down_call);
}

static void on_stop(struct loop *loop, void *arg)
{
    struct worker *worker = arg;
    atomic_store_explicit(&worker->stop_queued, false, memory_order_release);
    uint64_t until_ns = loop->now_ns + atomic_load_explicit(&worker->stop_within_ns, memory_order_relaxed);
    worker->is_stopping = worker->says_close = true;
    accept_stop(worker);
    list_for_each_safe (l, next_listener, &worker->listeners) {
        struct worker_listener *listener = container_of(l, struct worker_listener, node);
        list_for_each_safe (c, next, &listener->clients) {
            client_wind_down(container_of(c, struct client, node));
        }
        arrival_cut_all(listener);
    }
    loop_timer_set(loop, &worker->stop_timer, until_ns);
    drain_tunnels(worker, until_ns);
    if (worker->n_clients == 0)
        loop_stop(loop);
}

void worker_stop(struct worker *worker, uint32_t within_ms)
{
    atomic_store_explicit(&worker->stop_within_ns, within_ms * NS_PER_MS, memory_order_relaxed);
    if (!atomic_exchange_explicit(&worker->stop_queued, true, memory_order_acq_rel))
        loop_post(&worker->loop, &worker->stop_call);
}

/* Everything of this worker ends here, after its thread, so that a late message of the control thread still
 * finds an open mailbox. */
static void wind_up(struct worker *worker)
{
    struct snapshot *unseen = atomic_exchange_explicit(&worker->incoming, NULL, memory_order_acq_rel);
    if (unseen)
        snapshot_unref(unseen);
    if (worker->snapshot) {
        retire_backends(worker, worker->snapshot, NULL);
        snapshot_unref(worker->snapshot);
        worker->snapshot = NULL;
    }
    list_for_each_safe (l, next, &worker->listeners) {
        struct worker_listener *listener = container_of(l, struct worker_listener, node);
        if (listener->holds)
            snapshot_unref(listener->holds);
        loop_timer_remove(&worker->loop, &listener->retry_timer);
        udp_free(listener->udp);
        free(listener);
    }
    pipes_fini(&worker->pipes);
    loop_timer_remove(&worker->loop, &worker->stop_timer);
    loop_timer_remove(&worker->loop, &worker->pending_timer);
    loop_timer_remove(&worker->loop, &worker->backoff_timer);
    loop_timer_remove(&worker->loop, &worker->drain_timer);
    tls_thread_free(worker->tls);
    basic_auth_fini(worker);
    pieces_fini(&worker->pieces);
    loop_fini(&worker->loop);
    muxes_fini(&worker->muxes);
    pool_fini(&worker->pool);
    slab_fini(&worker->clients);
    slab_fini(&worker->exchanges);
    slab_fini(&worker->streams);
    slab_fini(&worker->far_ends);
    slab_fini(&worker->relays);
    share_fini(worker);
    ratelimit_fini(worker);
    slab_fini(&worker->arrivals);
    slab_fini(&worker->names);
    udp_memory_free(worker->udp);
    buf_pool_fini(&worker->bufs);
    route_scratch_free(worker->route_scratch);
    free(worker->rbuf);
    free(worker->scratch);
    free(worker->token);
    jwt_cache_free(&worker->tokens);
    free(worker->msg);
    free(worker->trailers);
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    tls_memory_begin(&worker->pieces);
    loop_run(&worker->loop);
    tls_memory_end();
    atomic_store_explicit(&worker->has_ended, true, memory_order_release);
    return NULL;
}

iso_err worker_start(struct worker **out, uint32_t index)
{
    struct worker *worker =
        aligned_alloc(ISO_CACHE_LINE, (sizeof(*worker) + ISO_CACHE_LINE - 1) & ~(size_t)(ISO_CACHE_LINE - 1));
    iso_assert(worker != NULL);
    memset(worker, 0, sizeof(*worker));
    if (loop_init(&worker->loop)) {
        free(worker);
        return ISO_ERR_SYSTEM;
    }
    /* All of it but the loop, whose wheel is large and seldom looked at. */
    loop_warm(&worker->loop, &worker->index, sizeof(*worker) - offsetof(struct worker, index));
    worker->index = index;
    list_init(&worker->listeners);
    buf_pool_init(&worker->bufs);
    worker->loop.turns_counter = &worker->counters.loop_turns;
    worker->bufs.denied_counter = &worker->counters.buffers_denied;
    slab_init(&worker->clients, sizeof(struct client));
    slab_init(&worker->exchanges, sizeof(struct exchange));
    slab_init(&worker->streams, sizeof(struct stream));
    tunnel_h2_init(worker);
    share_init(worker);
    ratelimit_init(worker);
    relay_init(worker);
    arrival_init(worker);
    basic_auth_init(worker);
    worker->tls = tls_thread_new(&worker->loop, &worker->bufs);
    pool_init(&worker->pool, &worker->loop, &worker->bufs, worker->tls, index);
    uint64_t seed = clock_wall_ns() + index;
    if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed))
        log_debug("no random seed from the kernel yet; the clock serves");
    rng_init(&worker->rng, seed);
    worker->route_scratch = route_scratch_new();
    route_scratch_count(worker->route_scratch, &worker->counters.patterns_gave_up);
    worker->rbuf = malloc(WORKER_HEAD_BYTES + WORKER_READ_BYTES);
    worker->scratch = malloc(WORKER_SCRATCH_BYTES);
    worker->token = malloc(JWT_ROOM_BYTES);
    worker->tokens = jwt_cache_new();
    worker->msg = malloc(sizeof(*worker->msg));
    worker->trailers = malloc(sizeof(*worker->trailers));
    iso_assert(worker->rbuf && worker->scratch && worker->token && worker->msg && worker->trailers);
    muxes_init(&worker->muxes, &worker->pool, &carrier_h2_mux_events, worker->rbuf, WORKER_READ_BYTES,
               &worker->counters.h2_window_growth);
    forward_pending_init(worker);
    retry_init(worker);
    drain_init(worker);
    loop_timer_init(&worker->stop_timer, cut_everything);
    worker->wake_call = (struct loop_call){.fn = on_publish, .arg = worker};
    worker->wind_down_call = (struct loop_call){.fn = on_wind_down, .arg = worker};
    worker->stop_call = (struct loop_call){.fn = on_stop, .arg = worker};
    if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0) {
        wind_up(worker);
        free(worker);
        return ISO_ERR_SYSTEM;
    }
    char name[16];
    snprintf(name, sizeof(name), "worker/%u", index % 10000);
    pthread_setname_np(worker->thread, name);
    *out = worker;
    return ISO_OK;
}

bool worker_has_ended(const struct worker *worker)
{
    return atomic_load_explicit(&((struct worker *)worker)->has_ended, memory_order_acquire);
}

void worker_join(struct worker **joined)
{
    pthread_join((*joined)->thread, NULL);
    wind_up(*joined);
    free(*joined);
    *joined = NULL;
}
