/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/limiter_internal.h"

#include <stdlib.h>

enum { PIECES = LIMITER_PIECES, PIECES_IN_WINDOW = PIECES - 1 };

/* Until the bucket is full: what its client has used. */
static uint64_t bucket_weight(const void *context, const _Atomic uint64_t *words, uint64_t now_ns)
{
    uint64_t full_at = atomic_load_explicit((_Atomic uint64_t *)words, memory_order_relaxed);
    uint64_t now = now_ns * LIMITER_TICKS_PER_NS;
    return full_at > now ? full_at - now : 0;
}

static void take_token(const struct limiter *limiter, _Atomic uint64_t *word, uint64_t now_ns,
                       struct limiter_verdict *verdict)
{
    uint64_t now = now_ns * LIMITER_TICKS_PER_NS, token = limiter->token_ticks, depth = limiter->depth_ticks;
    uint64_t full_at = atomic_load_explicit(word, memory_order_relaxed), after;
    do {
        after = (full_at > now ? full_at : now) + token;
        verdict->passes = after - now <= depth;
    } while (verdict->passes && !atomic_compare_exchange_weak_explicit(
                                    word, &full_at, after, memory_order_relaxed, memory_order_relaxed));
    uint64_t used = verdict->passes ? after - now : after - token - now;
    verdict->limit = limiter->policy.burst;
    verdict->remaining = used < depth ? (uint32_t)((depth - used) / token) : 0;
    verdict->reset_ns = (used + LIMITER_TICKS_PER_NS - 1) / LIMITER_TICKS_PER_NS;
    verdict->retry_ns =
        verdict->passes ? 0 : (after - now - depth + LIMITER_TICKS_PER_NS - 1) / LIMITER_TICKS_PER_NS;
}

/* What a client's pieces hold, seen from piece `number`. A piece's word is its number (counted from 1, so
 * that 0 is none) above, its requests below. */
struct pieces {
    uint64_t own;
    uint64_t others;  /* within the window, whole; those of a worker whose clock is ahead too */
    uint64_t leaving; /* of the one that the window is leaving */
};

static struct pieces read_pieces(const _Atomic uint64_t *words, uint32_t number)
{
    struct pieces sum = {0};
    for (uint32_t i = 0; i < PIECES; i++) {
        uint64_t word = atomic_load_explicit((_Atomic uint64_t *)&words[i], memory_order_seq_cst);
        int32_t age = (int32_t)(number - (uint32_t)(word >> 32));
        if (age == 0)
            sum.own = (uint32_t)word;
        else if (age < PIECES_IN_WINDOW)
            sum.others += (uint32_t)word;
        else if (age == PIECES_IN_WINDOW)
            sum.leaving = (uint32_t)word;
    }
    return sum;
}

static uint32_t piece_at(const struct limiter *limiter, uint64_t now_ns)
{
    return (uint32_t)(now_ns / limiter->piece_ns) + 1;
}

/* What the window counts beside its own piece, `into_ns` into that. */
static uint64_t count_others(const struct limiter *limiter, const struct pieces *pieces, uint64_t into_ns)
{
    return pieces->others + pieces->leaving * (limiter->piece_ns - into_ns) / limiter->piece_ns;
}

static uint64_t window_weight(const void *context, const _Atomic uint64_t *words, uint64_t now_ns)
{
    const struct limiter *limiter = context;
    struct pieces pieces = read_pieces(words, piece_at(limiter, now_ns));
    return count_others(limiter, &pieces, now_ns % limiter->piece_ns) + pieces.own;
}

/* Counts a request into a piece and tells how many were there. False: the piece's word is in use for a later
 * one, by a worker whose clock is ahead by all of them. */
static bool piece_add(_Atomic uint64_t *words, uint32_t number, uint32_t *before)
{
    _Atomic uint64_t *word = &words[number % PIECES];
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed), new;
    do {
        int32_t age = (int32_t)(number - (uint32_t)(old >> 32));
        if (old && age < 0)
            return false;
        new = age == 0 ? old + 1 : (uint64_t)number << 32 | 1;
    } while (
        !atomic_compare_exchange_weak_explicit(word, &old, new, memory_order_seq_cst, memory_order_relaxed));
    *before = (uint32_t) new - 1;
    return true;
}

/* Takes a refused request out again, unless its piece is gone. */
static void piece_undo(_Atomic uint64_t *words, uint32_t number)
{
    _Atomic uint64_t *word = &words[number % PIECES];
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (old >> 32 == number && (uint32_t)old > 0 &&
           !atomic_compare_exchange_weak_explicit(word, &old, old - 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

/* When the window will count fewer than it may, by walking the pieces that it is going to leave. */
static uint64_t window_retry_ns(const struct limiter *limiter, const _Atomic uint64_t *words, uint32_t number,
                                uint64_t into_ns)
{
    uint64_t limit = limiter->policy.requests, piece_ns = limiter->piece_ns, wait_ns = 0;
    for (uint32_t step = 0; step <= PIECES; step++) {
        struct pieces pieces = read_pieces(words, number + step);
        uint64_t whole = pieces.others + pieces.own;
        if (whole < limit) {
            /* leaving * left_ns / piece_ns, rounded down, must come to less than limit - whole. */
            uint64_t left_ns = pieces.leaving ? ((limit - whole) * piece_ns - 1) / pieces.leaving : piece_ns;
            uint64_t free_ns = left_ns < piece_ns ? piece_ns - left_ns : 0;
            return wait_ns + (free_ns > into_ns ? free_ns - into_ns : 0);
        }
        wait_ns += piece_ns - into_ns;
        into_ns = 0;
    }
    return wait_ns;
}

/* A request is counted first and judged then, by those that were counted before it: of two workers at the
 * same time, in the same piece or on both sides of its end, at least one sees the other. A request that is
 * being refused may refuse another one in the nanoseconds until it is taken out again; more than may pass
 * never do. */
static void take_from_window(const struct limiter *limiter, _Atomic uint64_t *words, uint64_t now_ns,
                             struct limiter_verdict *verdict)
{
    uint32_t number = piece_at(limiter, now_ns), rank;
    uint64_t into_ns = now_ns % limiter->piece_ns, limit = limiter->policy.requests;
    struct pieces pieces = read_pieces(words, number);
    uint64_t count = count_others(limiter, &pieces, into_ns) + pieces.own;
    verdict->passes = false;
    if (count < limit && piece_add(words, number, &rank)) {
        pieces = read_pieces(words, number);
        count = count_others(limiter, &pieces, into_ns) + rank;
        verdict->passes = count < limit;
        if (verdict->passes)
            count++;
        else
            piece_undo(words, number);
    }
    verdict->limit = limiter->policy.requests;
    verdict->remaining = (uint32_t)(count < limit ? limit - count : 0);
    verdict->retry_ns = verdict->passes ? 0 : window_retry_ns(limiter, words, number, into_ns);
    verdict->reset_ns = PIECES * limiter->piece_ns - into_ns;
}

uint64_t limiter_piece_ns(const struct limiter_policy *policy)
{
    return (policy->period_ns + PIECES_IN_WINDOW - 1) / PIECES_IN_WINDOW;
}

struct limiter *limiter_new(const struct limiter_policy *policy, uint32_t keys)
{
    struct limiter *limiter = calloc(1, sizeof(*limiter));
    keytable_weight_fn *weigh = bucket_weight;
    iso_assert(limiter != NULL && policy->requests > 0 && policy->period_ns > 0);
    limiter->policy = *policy;
    switch (policy->algorithm) {
    case LIMITER_TOKEN_BUCKET:
        limiter->token_ticks = policy->period_ns * LIMITER_TICKS_PER_NS / policy->requests;
        limiter->depth_ticks = limiter->token_ticks * policy->burst;
        limiter->most = policy->burst;
        limiter->own_words = 1;
        weigh = bucket_weight;
        break;
    case LIMITER_SLIDING_WINDOW:
        limiter->piece_ns = limiter_piece_ns(policy);
        limiter->most = policy->requests;
        limiter->own_words = PIECES;
        weigh = window_weight;
        break;
    }
    limiter->table =
        keytable_new(keys, limiter->own_words + (policy->is_fleet ? FLEET_WORDS : 0), weigh, limiter);
    return limiter;
}

const struct limiter_policy *limiter_policy(const struct limiter *limiter)
{
    return &limiter->policy;
}

void limiter_free(struct limiter **limiter)
{
    if (*limiter)
        keytable_free(&(*limiter)->table);
    free(*limiter);
    *limiter = NULL;
}

static void take(const struct limiter *limiter, _Atomic uint64_t *words, uint64_t now_ns,
                 struct limiter_verdict *verdict)
{
    if (limiter->policy.algorithm == LIMITER_TOKEN_BUCKET)
        take_token(limiter, words, now_ns, verdict);
    else
        take_from_window(limiter, words, now_ns, verdict);
}

void limiter_take(struct limiter *limiter, uint64_t key, uint64_t now_ns, struct limiter_verdict *verdict)
{
    take(limiter, keytable_get(limiter->table, key, now_ns), now_ns, verdict);
}

/* Takes from a copy. */
void limiter_peek(const struct limiter *limiter, uint64_t key, uint64_t now_ns,
                  struct limiter_verdict *verdict)
{
    _Atomic uint64_t copy[PIECES] = {0};
    _Atomic uint64_t *words = keytable_find(limiter->table, key);
    for (uint32_t i = 0; words && i < limiter->own_words; i++)
        copy[i] = atomic_load_explicit(&words[i], memory_order_relaxed);
    take(limiter, copy, now_ns, verdict);
}

void limiter_follow(const struct limiter *limiter, _Atomic uint64_t *words, uint64_t now_ns)
{
    uint32_t before;
    if (limiter->policy.algorithm == LIMITER_SLIDING_WINDOW) {
        piece_add(words, piece_at(limiter, now_ns), &before);
        return;
    }
    uint64_t now = now_ns * LIMITER_TICKS_PER_NS, after;
    uint64_t full_at = atomic_load_explicit(words, memory_order_relaxed);
    do {
        after = (full_at > now ? full_at : now) + limiter->token_ticks;
        if (after > now + limiter->depth_ticks)
            after = now + limiter->depth_ticks;
    } while (!atomic_compare_exchange_weak_explicit(words, &full_at, after, memory_order_relaxed,
                                                    memory_order_relaxed));
}

uint64_t limiter_reset_ns(const struct limiter *limiter, const _Atomic uint64_t *words, uint64_t now_ns)
{
    if (limiter->policy.algorithm == LIMITER_SLIDING_WINDOW)
        return PIECES * limiter->piece_ns - now_ns % limiter->piece_ns;
    return bucket_weight(limiter, words, now_ns) / LIMITER_TICKS_PER_NS;
}

uint64_t limiter_evicted(const struct limiter *limiter)
{
    return keytable_evicted(limiter->table);
}

uint32_t limiter_capacity(const struct limiter *limiter)
{
    return keytable_capacity(limiter->table);
}
