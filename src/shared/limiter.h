/* SPDX-License-Identifier: Apache-2.0 */
/* How many requests each client of a rule may still make (F1), exactly over all workers: one table of fixed
 * size (shared/keytable) with the state of each client, changed by one atomic step per request. Two ways of
 * counting:
 *
 * token_bucket: a bucket of `burst` tokens that refills with `requests` tokens per `period`, continuously.
 * One word: when the bucket will be full again (the virtual scheduling of ITU-T I.371, GCRA). A refused
 * request takes nothing. Rounding is in the client's favour, below 1/16 ns a token.
 *
 * sliding_window: at most `requests` within any `period`, by counts of its last eight pieces of period / 7;
 * the oldest, which the window has left in part, counts in that proportion, rounded down. Requests that come
 * evenly are never refused below the limit; a client that sends in bursts may gain what one piece holds.
 *
 * With is_fleet a limit belongs to all nodes: the bucket, or the pieces of the window, are in the store that
 * nodes share, and each node reports what it lets pass, in the background (shared/fleet). The answer says how
 * many requests are left; half of them the node may let pass until its next answer, and half of the limit
 * before its first. So nothing waits and nothing is tied up on a node that does not use it. Nodes that are
 * asked within the same round trip may together pass more than is left, at most half of it each; that is
 * charged all the same, so the next requests wait longer and the average is exact. While the store is away
 * limiter_take() counts by this node alone, and knows what passed here before.
 *
 * Memory per key: 18.3 bytes as token_bucket, 82.3 as sliding_window; 36.6 more with is_fleet. When more
 * clients than fit are known, the one of eight that has used the least of its limit is forgotten and starts
 * anew when it returns: whoever is being refused is forgotten last. */
#ifndef ISOBAR_SHARED_LIMITER_H
#define ISOBAR_SHARED_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

enum limiter_algorithm { LIMITER_TOKEN_BUCKET, LIMITER_SLIDING_WINDOW };

enum { LIMITER_REQUESTS_MAX = 1000000 };
/* Longest time from empty to full: a bucket of `burst` at `requests` per `period`. */
#define LIMITER_REFILL_MAX_S (30ull * 86400)

struct limiter_policy {
    enum limiter_algorithm algorithm;
    uint32_t requests;  /* 1 to LIMITER_REQUESTS_MAX */
    uint64_t period_ns; /* a second to a day */
    uint32_t burst;     /* token bucket: its size, 1 to LIMITER_REQUESTS_MAX */
    bool is_fleet;
};

struct limiter_verdict {
    bool passes;
    uint32_t limit;     /* most that can be remaining */
    uint32_t remaining; /* after this request */
    uint64_t retry_ns;  /* refused: until one would pass, if nobody else takes it; else 0 */
    uint64_t reset_ns;  /* until `remaining` is `limit`, without more requests */
};

struct limiter;

/* Of a sliding window: one of the eight pieces that it is counted in. */
uint64_t limiter_piece_ns(const struct limiter_policy *policy);

/* Room for at least `keys` clients. Threads: control. */
struct limiter *limiter_new(const struct limiter_policy *policy, uint32_t keys);
void limiter_free(struct limiter **limiter);

const struct limiter_policy *limiter_policy(const struct limiter *limiter);

/* Takes one request of a client from its limit, if there is one left. Units: `now_ns` monotonic; workers may
 * differ by the length of their turn, which moves nobody's limit. Threads: any. */
void limiter_take(struct limiter *limiter, uint64_t key, uint64_t now_ns, struct limiter_verdict *verdict);

/* What limiter_take() would say, without taking. Threads: any. */
void limiter_peek(const struct limiter *limiter, uint64_t key, uint64_t now_ns,
                  struct limiter_verdict *verdict);

/* The same of a limit that all nodes share. *wants_report: the caller is to send limiter_report() to the
 * store and to call limiter_answer() whatever becomes of it. Threads: any. */
void limiter_take_fleet(struct limiter *limiter, uint64_t key, uint64_t now_ns,
                        struct limiter_verdict *verdict, bool *wants_report);
/* What it would say, without taking. Threads: any. */
void limiter_peek_fleet(const struct limiter *limiter, uint64_t key, uint64_t now_ns,
                        struct limiter_verdict *verdict);
/* Requests of a client that have passed and were not reported yet; from now on they are. Threads: any. */
uint32_t limiter_report(struct limiter *limiter, uint64_t key, uint64_t now_ns);
/* What the store says of a client after a report. */
struct limiter_left {
    uint32_t tokens;   /* requests that may pass */
    uint64_t retry_ns; /* without any: until one may */
};
/* `left` NULL: it did not answer. True: more has passed meanwhile and is to be reported now, see
 * limiter_take_fleet(). Threads: any. */
bool limiter_answer(struct limiter *limiter, uint64_t key, uint64_t now_ns, const struct limiter_left *left);

/* Clients forgotten while part of their limit was used. Threads: any. */
uint64_t limiter_evicted(const struct limiter *limiter);
/* Clients that fit. */
uint32_t limiter_capacity(const struct limiter *limiter);

#endif
