/* SPDX-License-Identifier: Apache-2.0 */
/* All pairs of a proxy and a backend are gone through in the order of a hash of the pair, and a pair is taken
 * when both still have room: the proxy has fewer than `size`, the backend fewer than its even share. That
 * makes the result even and independent of any order, and a change travels only along short chains of pairs.
 * When the share (rounded down at first) is used up everywhere and proxies still want, it is raised by one
 * and the pairs are gone through again. Cutting a shuffled list into pieces, as is usual, moves every piece
 * when the list changes. */
#include "balance/subset.h"

#include "core/arena.h"
#include "core/check.h"
#include "core/hash.h"

#include <stdlib.h>

enum { PROXY_SEED = 0x70726f78, BACKEND_SEED = 0x6261636b };

enum { NOBODY = 0xffffffffu };

struct pair {
    uint64_t hash;
    uint32_t proxy, backend;
};

struct choice {
    uint32_t n_proxies, n_backends, size;
    uint32_t share; /* of a backend */
    uint64_t *proxy_hashes, *backend_hashes;
    uint32_t *has, *is_used; /* by a proxy, of a backend */
    uint64_t *members;       /* a bitmap of `words` for each proxy */
    uint32_t words;
    uint32_t wanting;   /* proxies that have fewer than `size` */
    struct pair *pairs; /* owns: of one stretch */
    size_t n_pairs, max_pairs;
};

static int compare_pairs(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static inline uint64_t pair_hash(const struct choice *c, uint32_t proxy, uint32_t backend)
{
    return hash_mix64(c->proxy_hashes[proxy] ^ c->backend_hashes[backend]);
}

static inline bool has_pair(const struct choice *c, uint32_t proxy, uint32_t backend)
{
    return c->members[(size_t)proxy * c->words + backend / 64] >> (backend % 64) & 1;
}

static inline void flip_pair(struct choice *c, uint32_t proxy, uint32_t backend)
{
    c->members[(size_t)proxy * c->words + backend / 64] ^= 1ull << (backend % 64);
}

static void take_pair(struct choice *c, uint32_t proxy, uint32_t backend)
{
    flip_pair(c, proxy, backend);
    c->is_used[backend]++;
    if (++c->has[proxy] == c->size)
        c->wanting--;
}

static void add_pair(struct choice *c, struct pair pair)
{
    if (c->n_pairs == c->max_pairs) {
        c->max_pairs = c->max_pairs ? c->max_pairs * 2 : 1024;
        c->pairs = realloc(c->pairs, c->max_pairs * sizeof(pair));
        iso_assert(c->pairs != NULL);
    }
    c->pairs[c->n_pairs++] = pair;
}

/* Goes through the pairs whose hash lies in from..to. */
static void take_stretch(struct choice *c, uint64_t from, uint64_t to)
{
    c->n_pairs = 0;
    for (uint32_t p = 0; p < c->n_proxies; p++) {
        if (c->has[p] == c->size)
            continue;
        for (uint32_t b = 0; b < c->n_backends; b++) {
            uint64_t hash = pair_hash(c, p, b);
            if (hash >= from && hash <= to && c->is_used[b] < c->share)
                add_pair(c, (struct pair){hash, p, b});
        }
    }
    if (c->n_pairs > 0)
        qsort(c->pairs, c->n_pairs, sizeof(c->pairs[0]), compare_pairs);
    for (size_t k = 0; k < c->n_pairs && c->wanting > 0; k++) {
        uint32_t p = c->pairs[k].proxy, b = c->pairs[k].backend;
        if (c->has[p] < c->size && c->is_used[b] < c->share && !has_pair(c, p, b))
            take_pair(c, p, b);
    }
}

/* Sorted in stretches of the hash, since proxies are mostly served by the first few of their pairs. */
static void take_all(struct choice *c)
{
    const uint64_t step = UINT64_MAX / (1 + c->n_backends / (2 * c->size));
    for (uint64_t from = 0; c->wanting > 0; from += step) {
        bool last = UINT64_MAX - from <= step;
        take_stretch(c, from, last ? UINT64_MAX : from + step - 1);
        if (last)
            return;
    }
}

/* The one of `n` with the lowest hash whose count is below `limit`; NOBODY when there is none. */
static uint32_t first_below(const uint64_t *hashes, const uint32_t *counts, uint32_t n, uint32_t limit)
{
    uint32_t best = NOBODY;
    for (uint32_t i = 0; i < n; i++)
        if (counts[i] < limit && (best == NOBODY || hashes[i] < hashes[best]))
            best = i;
    return best;
}

/* After take_all(), whoever wants has every backend that has room, and whoever lacks one of those is full:
 * such a full proxy takes it in exchange for one that the wanting proxy lacks, and it has one to give. */
static void exchange(struct choice *c)
{
    for (;;) {
        uint32_t poor = first_below(c->proxy_hashes, c->has, c->n_proxies, c->size);
        uint32_t roomy = first_below(c->backend_hashes, c->is_used, c->n_backends, c->share);
        if (poor == NOBODY || roomy == NOBODY)
            return;
        uint32_t giver = NOBODY, given = NOBODY;
        for (uint32_t p = 0; p < c->n_proxies; p++)
            if (!has_pair(c, p, roomy) &&
                (giver == NOBODY || pair_hash(c, p, roomy) < pair_hash(c, giver, roomy)))
                giver = p;
        iso_assert(giver != NOBODY); /* share is at most n_proxies */
        for (uint32_t b = 0; b < c->n_backends; b++)
            if (has_pair(c, giver, b) && !has_pair(c, poor, b) &&
                (given == NOBODY || pair_hash(c, giver, b) > pair_hash(c, giver, given)))
                given = b;
        iso_assert(given != NOBODY);
        flip_pair(c, giver, given);
        flip_pair(c, giver, roomy);
        c->is_used[roomy]++;
        c->is_used[given]--;
        take_pair(c, poor, given);
    }
}

void subset_choose(const struct slice *proxies, uint32_t n_proxies, uint32_t self,
                   const struct slice *backends, uint32_t n_backends, uint32_t size, uint64_t *members)
{
    struct arena arena;
    struct choice c = {.n_proxies = n_proxies,
                       .n_backends = n_backends,
                       .size = size < n_backends ? size : n_backends,
                       .words = (n_backends + 63) / 64,
                       .wanting = n_proxies};
    memset(members, 0, sizeof(members[0]) * c.words);
    if (c.size == 0)
        return;
    arena_init(&arena);
    c.proxy_hashes = arena_array(&arena, uint64_t, n_proxies);
    c.backend_hashes = arena_array(&arena, uint64_t, n_backends);
    c.has = arena_array(&arena, uint32_t, n_proxies);
    c.is_used = arena_array(&arena, uint32_t, n_backends);
    c.members = arena_array(&arena, uint64_t, (size_t)n_proxies * c.words);
    for (uint32_t p = 0; p < n_proxies; p++)
        c.proxy_hashes[p] = iso_hash64(proxies[p], PROXY_SEED);
    for (uint32_t b = 0; b < n_backends; b++)
        c.backend_hashes[b] = iso_hash64(backends[b], BACKEND_SEED);
    c.share = (uint32_t)((uint64_t)n_proxies * c.size / n_backends);
    for (; c.wanting > 0; c.share++) {
        take_all(&c);
        exchange(&c);
    }
    memcpy(members, &c.members[(size_t)self * c.words], sizeof(members[0]) * c.words);
    free(c.pairs);
    arena_fini(&arena);
}
