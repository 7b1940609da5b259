/* SPDX-License-Identifier: Apache-2.0 */
/* What limiter.c and limiter_fleet.c share. */
#ifndef ISOBAR_SHARED_LIMITER_INTERNAL_H
#define ISOBAR_SHARED_LIMITER_INTERNAL_H

#include "shared/keytable.h"
#include "shared/limiter.h"

/* Ticks of the token bucket, so that a token's time is rounded finely: 36 years fit into a word. */
enum { LIMITER_TICKS_PER_NS = 16 };

/* Of the sliding window: the piece in progress, six whole ones, and the one that the window is leaving. */
enum { LIMITER_PIECES = 8 };

/* The words of a client of a limit that all nodes share, behind those of a limit of this node alone. */
enum limiter_fleet_word {
    FLEET_CREDIT,   /* above: requests that may pass until the next answer; below: passed and not reported */
    FLEET_ASKING,   /* since when a report is under way; 0: none is */
    FLEET_REFUSING, /* until when the store has nothing left */
    FLEET_KNOWN,    /* when the store answered last; 0: never */
    FLEET_WORDS
};

struct limiter {
    struct limiter_policy policy;
    uint64_t token_ticks; /* token bucket: what a token costs */
    uint64_t depth_ticks; /* a full bucket */
    uint64_t piece_ns;    /* sliding window */
    uint32_t most;        /* that can be left: the burst, or the window's requests */
    uint32_t own_words;   /* of a client: when its bucket will be full, or its pieces */
    struct keytable *table;
};

/* This node's own count follows what passes for all nodes, for the time that the store may be away. */
void limiter_follow(const struct limiter *limiter, _Atomic uint64_t *words, uint64_t now_ns);
/* Until nothing of that is in use any more. */
uint64_t limiter_reset_ns(const struct limiter *limiter, const _Atomic uint64_t *words, uint64_t now_ns);

#endif
