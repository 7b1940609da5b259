/* SPDX-License-Identifier: Apache-2.0 */
/* A running system as the admin pages see it, without one: two workers, a listener, a group of three targets.
 */
#ifndef ISOBAR_TESTS_CONTROL_FIXTURE_H
#define ISOBAR_TESTS_CONTROL_FIXTURE_H

#include "control/control.h"
#include "net/resolve.h"

#include <pthread.h>
#include <stdlib.h>

enum { FIXTURE_WORKERS = 2, FIXTURE_TARGETS = 3 };

struct fixture {
    struct worker_counters worker_counters[FIXTURE_WORKERS];
    struct control_worker workers[FIXTURE_WORKERS];
    struct listener_counters listener_counters[FIXTURE_WORKERS];
    struct listener_runtime listener;
    struct limit_counters limit_counters[FIXTURE_WORKERS];
    struct limit_runtime limit;
    struct snap_limit snap_limit;
    struct config_listener listener_config;
    struct snap_listener snap_listener;
    struct group_counters group_counters[FIXTURE_WORKERS];
    struct group_runtime group;
    struct config_target target_configs[FIXTURE_TARGETS];
    struct config_target_group group_config;
    struct snap_group snap_group;
    struct backend_worker backend_workers[FIXTURE_TARGETS][FIXTURE_WORKERS];
    struct backend backends[FIXTURE_TARGETS];
    struct backend *targets[FIXTURE_TARGETS];
    struct snapshot snapshot;
    struct control_view view;
};

static inline struct fixture *fixture_new(void)
{
    static char *const names[FIXTURE_TARGETS] = {(char *)"10.0.0.1:80", (char *)"10.0.0.2:80",
                                                 (char *)"[::1]:80"};
    static const struct limiter_policy policy = {LIMITER_TOKEN_BUCKET, 10, 1000000000, 10};
    struct fixture *f = aligned_alloc(ISO_CACHE_LINE, sizeof(*f));
    iso_assert(f != NULL);
    memset(f, 0, sizeof(*f));
    for (uint32_t i = 0; i < FIXTURE_WORKERS; i++)
        f->workers[i] = (struct control_worker){&f->worker_counters[i], pthread_self()};
    f->listener.n_workers = f->group.n_workers = FIXTURE_WORKERS;
    f->listener.workers = f->listener_counters;
    f->listener_config.name = SLICE("shop/8080");
    f->limit = (struct limit_runtime){
        .n_workers = FIXTURE_WORKERS, .workers = f->limit_counters, .limiter = limiter_new(&policy, 100)};
    f->snap_limit = (struct snap_limit){.runtime = &f->limit, .label = SLICE("login")};
    f->snap_listener = (struct snap_listener){
        .config = &f->listener_config, .runtime = &f->listener, .limits = &f->snap_limit, .n_limits = 1};
    f->group.workers = f->group_counters;
    for (uint32_t i = 0; i < FIXTURE_TARGETS; i++) {
        f->target_configs[i].weight = 100 + i;
        f->backends[i].name = names[i];
        f->backends[i].n_workers = FIXTURE_WORKERS;
        f->backends[i].workers = f->backend_workers[i];
        f->targets[i] = &f->backends[i];
    }
    f->group_config = (struct config_target_group){
        .name = SLICE("web"), .targets = f->target_configs, .n_targets = FIXTURE_TARGETS};
    f->snap_group = (struct snap_group){.config = &f->group_config,
                                        .runtime = &f->group,
                                        .targets = f->targets,
                                        .settings = f->target_configs,
                                        .n_targets = FIXTURE_TARGETS};
    f->snapshot = (struct snapshot){.version = 7,
                                    .n_workers = FIXTURE_WORKERS,
                                    .listeners = &f->snap_listener,
                                    .n_listeners = 1,
                                    .groups = &f->snap_group,
                                    .n_groups = 1};
    f->view = (struct control_view){
        .version = "1.2.3", .snapshot = &f->snapshot, .workers = f->workers, .n_workers = FIXTURE_WORKERS};
    return f;
}

static inline void fixture_free(struct fixture *f)
{
    limiter_free(&f->limit.limiter);
    free(f);
}

#endif
