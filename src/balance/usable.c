/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/usable.h"

void usable_init(struct usable *usable, const struct balance_pool *pool, struct arena *arena)
{
    uint32_t words = (pool->n + 63) / 64;
    uint64_t *positive = arena_array(arena, uint64_t, words);
    uint32_t count = 0, weight = 0;
    bool uniform = true;
    for (uint32_t i = 0; i < pool->n; i++) {
        if (pool->weights[i] == 0)
            continue;
        positive[i / 64] |= 1ull << (i % 64);
        if (count++ == 0)
            weight = pool->weights[i];
        uniform = uniform && pool->weights[i] == weight;
    }
    *usable = (struct usable){
        .n = pool->n, .words = words, .n_positive = count, .uniform = uniform, .positive = positive};
}

uint32_t usable_next(const struct usable *usable, const struct balance_pick *how, uint32_t from)
{
    if (usable->words == 0)
        return BALANCE_NONE;
    if (from >= usable->n)
        from = 0;
    uint32_t word = from / 64;
    uint64_t bits = usable_word(usable, how, word) & ~0ull << (from % 64);
    for (uint32_t seen = 0; seen <= usable->words; seen++) {
        if (bits)
            return word * 64 + (uint32_t)__builtin_ctzll(bits);
        word = word + 1 == usable->words ? 0 : word + 1;
        bits = usable_word(usable, how, word);
    }
    return BALANCE_NONE;
}
