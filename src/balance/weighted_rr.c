/* SPDX-License-Identifier: Apache-2.0 */
/* Smooth weighted round robin: every usable target earns its weight, the richest is picked and pays what all
 * earned together. 3:1 gives A A B A, 5:1:1 gives A A B A C A A. Four targets at a time in vector registers;
 * a heap or a table of the whole period would be faster at thousands of targets but gives another order, or
 * none when targets come and go. Equal weights are plain turns. Source: B1, B3; case C-105; the algorithm is
 * nginx's (2012). */
#include "balance/builtin.h"
#include "balance/usable.h"

/* Four targets; loads and stores need no alignment. */
typedef int32_t lanes __attribute__((vector_size(16), aligned(4)));
enum { LANES = 4 };

/* Earnings stay within a few times the sum of weights, which must fit int32_t with room. */
enum { SUM_MAX = 1 << 26 };

struct balance_table {
    struct usable usable;
    int32_t *weights; /* divided by their gcd; padded with 0 to whole words of the bitmap */
};

struct balance_state {
    uint32_t next;    /* equal weights: whose turn it is */
    int32_t credit[]; /* unequal weights; padded like the weights */
};

static balance_build_fn weighted_rr_build;
static balance_state_bytes_fn weighted_rr_state_bytes;
static balance_pick_fn weighted_rr_pick;

static uint32_t gcd(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static iso_err weighted_rr_build(const struct balance_pool *pool, struct arena *arena,
                                 struct balance_table **table)
{
    struct balance_table *t = arena_new(arena, struct balance_table);
    usable_init(&t->usable, pool, arena);
    t->weights = arena_array(arena, int32_t, (size_t)t->usable.words * 64);
    uint32_t unit = 0;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < pool->n; i++) {
        unit = gcd(unit, pool->weights[i]);
        sum += pool->weights[i];
    }
    for (uint32_t i = 0; i < pool->n; i++) {
        uint64_t weight = unit ? pool->weights[i] / unit : 0;
        if (sum / (unit ? unit : 1) > SUM_MAX && weight > 0) {
            weight = weight * SUM_MAX / (sum / unit);
            weight = weight ? weight : 1;
        }
        t->weights[i] = (int32_t)weight;
    }
    *table = t;
    return ISO_OK;
}

static size_t weighted_rr_state_bytes(const struct balance_pool *pool)
{
    return sizeof(struct balance_state) + sizeof(int32_t) * 64 * ((pool->n + 63) / 64);
}

/* The bits of `word` whose targets take part in this decision. */
static uint64_t without_passing(const struct balance_pick *how, uint32_t word, uint64_t bits)
{
    for (uint64_t left = bits; left; left &= left - 1) {
        uint32_t bit = (uint32_t)__builtin_ctzll(left);
        if (!usable_takes_part(how, word * 64 + bit))
            bits &= ~(1ull << bit);
    }
    return bits;
}

static uint32_t pick_richest(const struct balance_table *table, struct balance_state *state,
                             const struct balance_pick *how, bool may_pass)
{
    const lanes bit_of_lane = {1, 2, 4, 8};
    lanes richest = {INT32_MIN, INT32_MIN, INT32_MIN, INT32_MIN};
    lanes who = {-1, -1, -1, -1}, earned = {0}, index;
    for (uint32_t word = 0; word < table->usable.words; word++) {
        uint64_t bits = usable_word(&table->usable, how, word);
        if (may_pass)
            bits = without_passing(how, word, bits);
        for (uint32_t at = word * 64; bits; at += LANES, bits >>= LANES) {
            lanes in = (bit_of_lane & (int32_t)(bits & 15)) != 0;
            lanes weight = *(const lanes *)(table->weights + at) & in;
            lanes credit = *(const lanes *)(state->credit + at) + weight;
            *(lanes *)(state->credit + at) = credit;
            earned += weight;
            index = (lanes){0, 1, 2, 3} + (int32_t)at;
            lanes better = (credit > richest) & in; /* strictly: of equals, the first in order */
            richest = (credit & better) | (richest & ~better);
            who = (index & better) | (who & ~better);
        }
    }
    int32_t best = -1, total = 0;
    for (int lane = 0; lane < LANES; lane++) {
        total += earned[lane];
        if (who[lane] < 0)
            continue;
        if (best < 0 || state->credit[who[lane]] > state->credit[best] ||
            (state->credit[who[lane]] == state->credit[best] && who[lane] < best))
            best = who[lane];
    }
    if (best < 0)
        return BALANCE_NONE;
    state->credit[best] -= total;
    return (uint32_t)best;
}

static uint32_t weighted_rr_pick(const struct balance_pool *pool, const struct balance_table *table,
                                 struct balance_state *state, const struct balance_pick *how)
{
    if (table->usable.uniform && !how->ramp) {
        uint32_t i = usable_next(&table->usable, how, state->next);
        state->next = i + 1; /* BALANCE_NONE + 1 is 0 */
        return i;
    }
    uint32_t i = BALANCE_NONE;
    if (how->ramp)
        i = pick_richest(table, state, how, true);
    if (i == BALANCE_NONE)
        i = pick_richest(table, state, how, false);
    return i;
}

const struct balance_method balance_method_WEIGHTED_ROUND_ROBIN = {
    .name = "weighted_round_robin",
    .build = weighted_rr_build,
    .state_bytes = weighted_rr_state_bytes,
    .pick = weighted_rr_pick,
};
