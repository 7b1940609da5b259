/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of what passed under limits that all nodes share, to the Redis that holds the buckets. One script
 * charges a report and says what is left, by the server's clock: nodes need not agree on the time. Runs on
 * the thread of shared/state. Source: F1; the script is the GCRA of shared/limiter. */
#ifndef ISOBAR_SHARED_FLEET_H
#define ISOBAR_SHARED_FLEET_H

#include "shared/limiter.h"
#include "shared/redis.h"

enum { FLEET_NAME_MAX = 64 };

/* Which bucket: `name` in the store, `key` in the limiter of this process. */
struct fleet_bucket {
    struct limiter *limiter;
    uint64_t key;
    uint16_t name_len;
    char name[FLEET_NAME_MAX];
};

struct fleet;

/* `loop` is the thread's. */
struct fleet *fleet_new(struct loop *loop);
/* Every report must have been answered, or its connection ended. */
void fleet_free(struct fleet **fleet);
/* The limiters that exist from now on; an answer for another one is dropped. Takes the array. */
void fleet_set_limiters(struct fleet *fleet, struct limiter **limiters, uint32_t n);

/* Sends what has passed under the bucket, and again as long as more has. `redis` NULL or away: the limiter is
 * told that there is no answer. */
void fleet_report(struct fleet *fleet, struct redis *redis, const struct fleet_bucket *bucket);

#endif
