/* SPDX-License-Identifier: Apache-2.0 */
/* The target with the lowest in_flight / weight. In-flight counts are shared by all workers and each has a
 * cache line of its own, so looking at all of them is what a pick costs: with equal weights the search starts
 * behind the last pick and ends at the first idle target. Targets of one score share by smooth weighted turns
 * (see weighted_rr.c), so that an idle pool is used by weight too. Source: B1, B3. */
#include "balance/builtin.h"
#include "balance/usable.h"

struct balance_table {
    struct usable usable;
};

struct balance_state {
    uint32_t next; /* equal weights: where the search starts */
    struct {
        int64_t credit;     /* unequal weights: earned in ties */
        uint32_t next_tied; /* during a pick: chain of the targets with the lowest score */
    } targets[];
};

static balance_build_fn least_conn_build;
static balance_state_bytes_fn least_conn_state_bytes;
static balance_pick_fn least_conn_pick;

static iso_err least_conn_build(const struct balance_pool *pool, struct arena *arena,
                                struct balance_table **table)
{
    *table = arena_new(arena, struct balance_table);
    usable_init(&(*table)->usable, pool, arena);
    return ISO_OK;
}

static size_t least_conn_state_bytes(const struct balance_pool *pool)
{
    struct balance_state *state;
    return sizeof(*state) + pool->n * sizeof(state->targets[0]);
}

static inline uint32_t load_of(const struct balance_pool *pool, uint32_t i)
{
    return atomic_load_explicit(pool->in_flight[i], memory_order_relaxed);
}

/* Equal weights: the first of the least loaded, counted from state->next. */
static uint32_t pick_of_equals(const struct balance_pool *pool, const struct usable *usable,
                               struct balance_state *state, const struct balance_pick *how)
{
    uint32_t best = BALANCE_NONE, least = UINT32_MAX;
    uint32_t from = state->next < usable->n ? state->next : 0, first = from / 64;
    for (uint32_t seen = 0; seen <= usable->words && least > 0; seen++) {
        uint32_t word = first + seen < usable->words ? first + seen : first + seen - usable->words;
        uint64_t bits = usable_word(usable, how, word);
        if (seen == 0)
            bits &= ~0ull << (from % 64);
        else if (seen == usable->words)
            bits &= ~(~0ull << (from % 64));
        for (; bits && least > 0; bits &= bits - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(bits);
            uint32_t load = load_of(pool, i);
            if (load < least || best == BALANCE_NONE) {
                best = i;
                least = load;
            }
        }
    }
    state->next = best + 1; /* BALANCE_NONE + 1 is 0 */
    return best;
}

/* One of the chain by smooth weighted turns. */
static uint32_t take_turn(const struct balance_pool *pool, struct balance_state *state, uint32_t tied)
{
    if (tied == BALANCE_NONE || state->targets[tied].next_tied == BALANCE_NONE)
        return tied;
    uint32_t best = tied;
    int64_t earned = 0;
    for (uint32_t i = tied; i != BALANCE_NONE; i = state->targets[i].next_tied) {
        int64_t weight = pool->weights[i]; /* the ramp has had its say: who passed is not tied */
        earned += weight;
        state->targets[i].credit += weight;
        if (state->targets[i].credit >= state->targets[best].credit)
            best = i; /* the chain runs backwards: of equals, the first in order */
    }
    state->targets[best].credit -= earned;
    return best;
}

static uint32_t pick_by_weight(const struct balance_pool *pool, const struct usable *usable,
                               struct balance_state *state, const struct balance_pick *how, bool may_pass)
{
    uint32_t tied = BALANCE_NONE;
    uint64_t least = 0, weight_of_least = 0; /* the lowest score so far is least / weight_of_least */
    for (uint32_t word = 0; word < usable->words; word++) {
        for (uint64_t bits = usable_word(usable, how, word); bits; bits &= bits - 1) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (may_pass && !usable_takes_part(how, i))
                continue;
            uint64_t load = load_of(pool, i), weight = usable_weight(pool, how, i);
            uint64_t mine = load * weight_of_least, its = least * weight;
            if (tied != BALANCE_NONE && mine > its)
                continue;
            state->targets[i].next_tied = tied != BALANCE_NONE && mine == its ? tied : BALANCE_NONE;
            tied = i;
            least = load;
            weight_of_least = weight;
        }
    }
    return take_turn(pool, state, tied);
}

static uint32_t least_conn_pick(const struct balance_pool *pool, const struct balance_table *table,
                                struct balance_state *state, const struct balance_pick *how)
{
    if (!how->ramp)
        return table->usable.uniform ? pick_of_equals(pool, &table->usable, state, how)
                                     : pick_by_weight(pool, &table->usable, state, how, false);
    uint32_t i = pick_by_weight(pool, &table->usable, state, how, true);
    return i != BALANCE_NONE ? i : pick_by_weight(pool, &table->usable, state, how, false);
}

const struct balance_method balance_method_LEAST_CONNECTIONS = {
    .name = "least_connections",
    .build = least_conn_build,
    .state_bytes = least_conn_state_bytes,
    .pick = least_conn_pick,
};
