/* SPDX-License-Identifier: Apache-2.0 */
/* Counters: one block per owner and worker on cache lines of its own. Only the worker writes (a plain add, no
 * locked instruction); any thread reads with relaxed loads and sums over workers. A reader may see one
 * counter a moment before another, never a torn value. */
#ifndef ISOBAR_OBSERVE_COUNTERS_H
#define ISOBAR_OBSERVE_COUNTERS_H

#include "core/check.h"

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic uint64_t counter;

static inline void counter_add(counter *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}

static inline uint64_t counter_read(const counter *c)
{
    return atomic_load_explicit((counter *)c, memory_order_relaxed);
}

/* Gauges are counters that also go down; the sum over workers is what counts, one worker's share may wrap. */
static inline void gauge_add(counter *c, int64_t n)
{
    counter_add(c, (uint64_t)n);
}

/* Latency histogram with fixed bounds, in microseconds; the last bucket is +Inf. */
#define HISTOGRAM_BOUNDS_US                                                                                  \
    {                                                                                                        \
        250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000,  \
            10000000, 30000000                                                                               \
    }
enum { HISTOGRAM_BUCKETS = 17 };

struct histogram {
    counter buckets[HISTOGRAM_BUCKETS];
    counter sum_us;
};

/* O(log buckets); no division. Threads: owner worker. */
static inline void histogram_add(struct histogram *h, uint64_t us)
{
    static const uint32_t bounds[] = HISTOGRAM_BOUNDS_US;
    unsigned lo = 0, hi = HISTOGRAM_BUCKETS - 1;
    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;
        if (us <= bounds[mid])
            hi = mid;
        else
            lo = mid + 1;
    }
    counter_add(&h->buckets[lo], 1);
    counter_add(&h->sum_us, us);
}

struct worker_counters {
#define COUNTER(scope, id, metric, help) COUNTER_IN_WORKER_##scope(id)
#define COUNTER_IN_WORKER_WORKER(id)     counter id;
#define COUNTER_IN_WORKER_LISTENER(id)
#define COUNTER_IN_WORKER_LIMIT(id)
#define COUNTER_IN_WORKER_GROUP(id)
#define COUNTER_IN_WORKER_TARGET(id)
#include "observe/counters.def"
#undef COUNTER
    counter h2_window_growth; /* gauge */
} ISO_CACHE_ALIGN;

struct listener_counters {
#define COUNTER(scope, id, metric, help) COUNTER_IN_LISTENER_##scope(id)
#define COUNTER_IN_LISTENER_WORKER(id)
#define COUNTER_IN_LISTENER_LISTENER(id) counter id;
#define COUNTER_IN_LISTENER_LIMIT(id)
#define COUNTER_IN_LISTENER_GROUP(id)
#define COUNTER_IN_LISTENER_TARGET(id)
#include "observe/counters.def"
#undef COUNTER
    counter active_connections, active_requests, active_tunnels; /* gauges */
    struct histogram latency;
} ISO_CACHE_ALIGN;

/* Of one rule's rate limit. */
struct limit_counters {
#define COUNTER(scope, id, metric, help) COUNTER_IN_LIMIT_##scope(id)
#define COUNTER_IN_LIMIT_WORKER(id)
#define COUNTER_IN_LIMIT_LISTENER(id)
#define COUNTER_IN_LIMIT_LIMIT(id) counter id;
#define COUNTER_IN_LIMIT_GROUP(id)
#define COUNTER_IN_LIMIT_TARGET(id)
#include "observe/counters.def"
#undef COUNTER
} ISO_CACHE_ALIGN;

struct group_counters {
#define COUNTER(scope, id, metric, help) COUNTER_IN_GROUP_##scope(id)
#define COUNTER_IN_GROUP_WORKER(id)
#define COUNTER_IN_GROUP_LISTENER(id)
#define COUNTER_IN_GROUP_LIMIT(id)
#define COUNTER_IN_GROUP_GROUP(id) counter id;
#define COUNTER_IN_GROUP_TARGET(id)
#include "observe/counters.def"
#undef COUNTER
    counter pending; /* gauge */
} ISO_CACHE_ALIGN;

struct target_counters {
#define COUNTER(scope, id, metric, help) COUNTER_IN_TARGET_##scope(id)
#define COUNTER_IN_TARGET_WORKER(id)
#define COUNTER_IN_TARGET_LISTENER(id)
#define COUNTER_IN_TARGET_LIMIT(id)
#define COUNTER_IN_TARGET_GROUP(id)
#define COUNTER_IN_TARGET_TARGET(id) counter id;
#include "observe/counters.def"
#undef COUNTER
    counter idle_connections, open_connections; /* gauges */
    struct histogram latency;
} ISO_CACHE_ALIGN;

#endif
