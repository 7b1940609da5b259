/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/draw.h"

void draw_build(struct draw *draw, const struct balance_pool *pool, struct arena *arena)
{
    usable_init(&draw->usable, pool, arena);
    draw->slots = arena_alloc(arena, sizeof(draw->slots[0]) * pool->n);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < pool->n; i++)
        sum += pool->weights[i];
    if (sum == 0)
        return;

    /* Each slot is worth `sum`; a target brings weight * n. Slots that their own target does not fill are
     * topped up by one that has more than fits. `todo` holds the short ones from the front and the others
     * from the back. */
    struct arena scratch;
    arena_init(&scratch);
    uint64_t *rest = arena_array(&scratch, uint64_t, pool->n);
    uint32_t *todo = arena_array(&scratch, uint32_t, pool->n);
    uint32_t n_short = 0, rich = pool->n;
    for (uint32_t i = 0; i < pool->n; i++) {
        rest[i] = (uint64_t)pool->weights[i] * pool->n;
        draw->slots[i].keep = UINT32_MAX;
        draw->slots[i].other = i;
        todo[rest[i] < sum ? n_short++ : --rich] = i;
    }
    while (n_short > 0 && rich < pool->n) {
        uint32_t low = todo[--n_short], high = todo[rich];
        draw->slots[low].keep = (uint32_t)(((unsigned __int128)rest[low] << 32) / sum);
        draw->slots[low].other = high;
        rest[high] -= sum - rest[low];
        if (rest[high] < sum) {
            rich++;
            todo[n_short++] = high;
        }
    }
    arena_fini(&scratch);
}

/* Exact and O(n): for pools of which few are usable, or of which one has nearly all the weight. */
static uint32_t draw_of_usable(const struct draw *draw, const struct balance_pool *pool,
                               const struct balance_pick *how, uint32_t except)
{
    uint64_t sum = 0, at = 0;
    for (int round = 0; round < 2; round++) {
        uint64_t passed = 0;
        for (uint32_t word = 0; word < draw->usable.words; word++) {
            for (uint64_t bits = usable_word(&draw->usable, how, word); bits; bits &= bits - 1) {
                uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(bits);
                if (i == except)
                    continue;
                passed += usable_weight(pool, how, i);
                if (round == 1 && passed > at)
                    return i;
            }
        }
        sum = passed;
        if (sum == 0)
            return BALANCE_NONE;
        at = (uint64_t)((unsigned __int128)rng_next(how->rng) * sum >> 64);
    }
    return BALANCE_NONE;
}

/* With half of the targets usable one pick in 256 goes on to the exact draw; a small pool goes there sooner,
 * since looking at all of it costs no more than a few tries. */
enum { DRAW_TRIES = 8, SMALL_POOL = 8, SMALL_POOL_TRIES = 2 };

uint32_t draw_one(const struct draw *draw, const struct balance_pool *pool, const struct balance_pick *how,
                  uint32_t except)
{
    if (pool->n == 0)
        return BALANCE_NONE;
    int most = pool->n <= SMALL_POOL ? SMALL_POOL_TRIES : DRAW_TRIES;
    for (int tries = 0; tries < most; tries++) {
        uint64_t random = rng_next(how->rng);
        uint32_t i = (uint32_t)((random >> 32) * pool->n >> 32);
        if ((uint32_t)random > draw->slots[i].keep)
            i = draw->slots[i].other;
        if (i != except && usable_has(&draw->usable, how, i) && usable_takes_part(how, i))
            return i;
    }
    return draw_of_usable(draw, pool, how, except);
}
