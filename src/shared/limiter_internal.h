/* SPDX-License-Identifier: Apache-2.0 */
/* What limiter.c and limiter_fleet.c share. */
#ifndef ISOBAR_SHARED_LIMITER_INTERNAL_H
#define ISOBAR_SHARED_LIMITER_INTERNAL_H

#include "shared/keytable.h"
#include "shared/limiter.h"

/* Ticks of the token bucket, so that a token's time is rounded finely: 36 years fit into a word. */
enum { LIMITER_TICKS_PER_NS = 16 };

/* The words of a client of a bucket that all nodes share; the first is that of a bucket of this node alone.
 */
enum limiter_fleet_word {
    FLEET_FULL_AT,  /* when this node's bucket would be full */
    FLEET_CREDIT,   /* above: requests that may pass until the next answer; below: passed and not reported */
    FLEET_ASKING,   /* since when a report is under way; 0: none is */
    FLEET_REFUSING, /* until when the store's bucket is empty */
    FLEET_KNOWN,    /* when the store answered last; 0: never */
    FLEET_WORDS
};

struct limiter {
    struct limiter_policy policy;
    uint64_t token_ticks; /* token bucket: what a token costs */
    uint64_t depth_ticks; /* a full bucket */
    uint64_t piece_ns;    /* sliding window */
    struct keytable *table;
};

#endif
