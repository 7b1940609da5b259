/* SPDX-License-Identifier: Apache-2.0 */
/* Building the table. Each target has a permutation of the slots, offset + j * skip mod m, and takes the
 * first free one of it whenever its turn comes; turns go round in the order of the names until all slots are
 * taken. Nearly all time goes into trying slots that are taken, so those are looked up in a bitmap (8 KiB for
 * 65537 slots, which stays in the first-level cache), and the permutation advances by an addition that wraps
 * instead of a division.
 *
 * With f slots free a turn tries m / f on the way, half of all tries for the last sqrt(m) slots. There the
 * question is turned round: each free slot is asked for its place in the taker's permutation, which is
 * (slot - at) / skip mod m, and the first of them is what the taker would have come to.
 *
 * Weights are frequencies of turns. In round 1 everybody has one, which gives each its slot however small its
 * weight; the k-th turn after that comes in round (k + 1/2) * heaviest / weight, so that a target's number of
 * slots is its share, rounded. */
#include "balance/maglev.h"
#include "balance/order.h"

#include "core/arena.h"
#include "core/check.h"
#include "core/hash.h"

enum { OFFSET_SEED = 0x6f666673, SKIP_SEED = 0x736b6970 };

enum { NOBODY = 0xffffffffu };

struct taker {
    uint32_t at;       /* the slot to try next */
    uint32_t skip;     /* 1..m-1 */
    uint32_t owner;    /* index into the input */
    uint32_t weight;   /* > 0 */
    uint32_t per_skip; /* 1 / skip mod m; 0: not computed yet */
};

struct filling {
    uint32_t *slots;
    uint64_t *taken; /* bitmap */
    uint32_t m, left;
    uint32_t scarce; /* with so many slots left they are listed in `free` */
    uint32_t *free;  /* [left], once left <= scarce */
    double per_m;    /* 1 / m */
};

bool maglev_size_is_valid(uint32_t m)
{
    if (m < 2 || m > MAGLEV_SIZE_MAX)
        return false;
    for (uint32_t d = 2; d * d <= m; d++)
        if (m % d == 0)
            return false;
    return true;
}

/* a * b mod m for a, b < m < 2^24: the product and the quotient are exact enough in a double that the
 * estimate is off by one at most, and the compiler can do several at once, which it cannot with a division.
 */
static inline uint32_t multiply_mod(uint32_t a, uint32_t b, uint32_t m, double per_m)
{
    int64_t product = (int64_t)a * b;
    int64_t rest = product - (int64_t)((double)product * per_m) * m;
    rest = rest < 0 ? rest + m : rest;
    return (uint32_t)(rest >= m ? rest - m : rest);
}

/* 1 / a mod the prime m, by the extended Euclidean algorithm. */
static uint32_t invert_mod(uint32_t a, uint32_t m)
{
    int64_t r0 = m, r1 = a, t0 = 0, t1 = 1;
    while (r1 != 0) {
        int64_t q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
        r0 = r1, r1 = r;
        t0 = t1, t1 = t;
    }
    return (uint32_t)(t0 < 0 ? t0 + m : t0);
}

static void list_free_slots(struct filling *f)
{
    uint32_t n = 0;
    for (uint32_t base = 0; base < f->m; base += 64) {
        uint64_t free = ~f->taken[base / 64];
        for (; free; free &= free - 1) {
            uint32_t at = base + (uint32_t)__builtin_ctzll(free);
            if (at < f->m)
                f->free[n++] = at;
        }
    }
    iso_assert(n == f->left);
}

/* The next free slot of the taker's permutation, by the few that are free. */
static void take_scarce_slot(struct filling *f, struct taker *taker)
{
    uint32_t m = f->m, best = 0, best_steps = m;
    if (f->left == f->scarce)
        list_free_slots(f);
    if (!taker->per_skip)
        taker->per_skip = invert_mod(taker->skip, m);
    for (uint32_t i = 0; i < f->left; i++) {
        uint32_t distance = f->free[i] >= taker->at ? f->free[i] - taker->at : f->free[i] + m - taker->at;
        uint32_t steps = multiply_mod(distance, taker->per_skip, m, f->per_m);
        if (steps < best_steps) {
            best_steps = steps;
            best = i;
        }
    }
    uint32_t at = f->free[best];
    f->slots[at] = taker->owner;
    f->free[best] = f->free[--f->left];
    taker->at = at + taker->skip >= m ? at + taker->skip - m : at + taker->skip;
}

static inline void take_slot(struct filling *f, struct taker *taker)
{
    uint32_t at = taker->at, skip = taker->skip, m = f->m;
    if (f->left <= f->scarce) {
        take_scarce_slot(f, taker);
        return;
    }
    while (f->taken[at / 64] >> (at % 64) & 1) {
        at += skip;
        at = at >= m ? at - m : at;
    }
    f->taken[at / 64] |= 1ull << (at % 64);
    f->slots[at] = taker->owner;
    f->left--;
    at += skip;
    taker->at = at >= m ? at - m : at;
}

/* Everybody in turn: the paper's loop. */
static void fill_evenly(struct filling *f, struct taker *takers, uint32_t n)
{
    while (f->left > 0)
        for (uint32_t i = 0; i < n && f->left > 0; i++)
            take_slot(f, &takers[i]);
}

/* Turns by weight: takers wait in a queue for each round and go on to the queue of the round of their next
 * turn, so that a build costs the same whatever the weights. */
static void fill_by_weight(struct filling *f, struct taker *takers, uint32_t n, struct arena *scratch)
{
    uint64_t heaviest = 0, sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += takers[i].weight;
        heaviest = takers[i].weight > heaviest ? takers[i].weight : heaviest;
    }
    /* Turn k (from 0) comes after (k + 1/2) * heaviest / weight rounds; kept as `due`, the whole rounds
     * before it, and `rest` parts of 2 * weight. */
    struct turn {
        uint64_t due, rest;
        uint32_t next; /* in the queue */
    } *turns = arena_array(scratch, struct turn, n);
    struct queue {
        uint32_t first, last; /* first NOBODY: empty */
    } * queues;
    uint64_t rounds = (f->m + n) * heaviest / sum + 2; /* enough for m turns */
    queues = arena_array(scratch, struct queue, rounds);
    for (uint64_t r = 0; r < rounds; r++)
        queues[r].first = NOBODY;
    queues[0] = (struct queue){0, n - 1};
    for (uint32_t i = 0; i < n; i++) {
        turns[i].due = (heaviest - 1) / (2ull * takers[i].weight);
        turns[i].rest = (heaviest - 1) % (2ull * takers[i].weight);
        turns[i].next = i + 1 < n ? i + 1 : NOBODY;
    }

    for (uint64_t round = 0; f->left > 0; round++) {
        iso_assert(round < rounds);
        for (uint32_t i = queues[round].first, after; i != NOBODY && f->left > 0; i = after) {
            struct turn *turn = &turns[i];
            after = turn->next;
            take_slot(f, &takers[i]);
            turn->due += heaviest / takers[i].weight;
            turn->rest += 2 * (heaviest % takers[i].weight);
            if (turn->rest >= 2ull * takers[i].weight) {
                turn->rest -= 2ull * takers[i].weight;
                turn->due++;
            }
            if (turn->due >= rounds)
                continue;
            struct queue *queue = &queues[turn->due];
            turn->next = NOBODY;
            if (queue->first == NOBODY)
                queue->first = i;
            else
                turns[queue->last].next = i;
            queue->last = i;
        }
    }
}

iso_err maglev_build(const struct slice *names, const uint32_t *weights, uint32_t n, uint32_t m,
                     uint32_t *slots)
{
    if (!maglev_size_is_valid(m))
        return ISO_ERR_INVALID;
    struct arena scratch;
    arena_init(&scratch);
    uint32_t *order = arena_array(&scratch, uint32_t, n);
    struct taker *takers = arena_array(&scratch, struct taker, n);
    uint32_t n_takers = 0;
    bool even = true;
    iso_err err = order_by_name(names, n, order);
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t i = order[rank];
        if (weights[i] == 0)
            continue;
        takers[n_takers++] = (struct taker){.at = (uint32_t)(iso_hash64(names[i], OFFSET_SEED) % m),
                                            .skip = (uint32_t)(iso_hash64(names[i], SKIP_SEED) % (m - 1) + 1),
                                            .owner = i,
                                            .weight = weights[i]};
        even = even && weights[i] == takers[0].weight;
    }
    if (!err && n_takers > m)
        err = ISO_ERR_INVALID;
    if (err)
        goto end;

    memset(slots, 0xff, sizeof(slots[0]) * m);
    struct filling f = {.slots = slots, .m = m, .left = m, .per_m = 1.0 / m};
    while ((f.scarce + 1) * (f.scarce + 1) <= m)
        f.scarce++;
    f.taken = arena_array(&scratch, uint64_t, (m + 63) / 64);
    f.free = arena_array(&scratch, uint32_t, f.scarce);
    if (n_takers > 0 && even)
        fill_evenly(&f, takers, n_takers);
    else if (n_takers > 0)
        fill_by_weight(&f, takers, n_takers, &scratch);
end:
    arena_fini(&scratch);
    return err;
}
