/* SPDX-License-Identifier: Apache-2.0 */
/* A target group under load, in virtual time: the real snapshot, selection, passive checks, health thread and
 * states, with targets, network and clock simulated. A target does what its sim_target says at that moment; a
 * scenario changes it and lets time pass. Each second leaves a record. */
#ifndef ISOBAR_TESTS_SIM_WORLD_H
#define ISOBAR_TESTS_SIM_WORLD_H

#include "core/random.h"
#include "core/text.h"
#include "health/health.h"
#include "snapshot/snapshot.h"

enum { WORLD_ZONES = 3, WORLD_SECONDS_MAX = 1200 };

/* What a check of the target meets. */
enum sim_check { SIM_CHECK_PASSES, SIM_CHECK_FAILS, SIM_CHECK_REFUSED, SIM_CHECK_HANGS };

struct sim_target {
    uint32_t zone;
    bool refuses;         /* connections of requests */
    uint32_t failing_pct; /* of its answers are 500 */
    uint32_t latency_us;  /* of an answer, give or take a fifth */
    uint8_t check;        /* enum sim_check */
};

/* One second of the world. */
struct sim_second {
    uint32_t requests, good, failed, retried, no_target; /* failed: no_target included */
    uint32_t usable, ejected, unhealthy;                 /* targets, at its end */
    bool is_panicking;
    uint32_t watched; /* requests that targets with is_watched got */
    uint32_t slowest_us;
};

struct world {
    uint32_t n;
    struct sim_target *targets; /* [n] */
    bool *is_watched;           /* [n]; whose share the records count */
    uint32_t rate;              /* requests a second; owner may change it */
    uint32_t attempts;          /* tries of a request that met a refused connection */
    struct registry *registry;
    struct snapshot *snapshot;
    struct snap_group *group;
    struct health *health;
    struct rng rng;
    struct sim_queue *queue; /* answers under way */
    uint64_t started_ns, step;
    double owed; /* a part of a request, of the rate */
    struct sim_second seconds[WORLD_SECONDS_MAX];
    uint32_t n_seconds;
};

/* `settings`: keys of the target group as YAML, "algorithm: round_robin, ...". One second has passed: targets
 * are checked. */
struct world *world_new(uint32_t n, uint32_t rate, const char *settings);
void world_free(struct world *world);
void world_run(struct world *world, uint32_t seconds);
/* Changes of state of all targets so far. */
uint64_t world_transitions(const struct world *world);
/* Share of good answers in seconds [from, to). */
double world_goodput(const struct world *world, uint32_t from, uint32_t to);
double world_worst_second(const struct world *world, uint32_t from, uint32_t to);
double world_watched_share(const struct world *world, uint32_t from, uint32_t to);

/* A row for every `every` seconds, with a bar as long as the good share. */
void world_print(const struct world *world, uint32_t every, struct text *out);

/* For the simulated probe. */
const struct sim_target *world_target_at(const struct net_addr *addr);

#endif
