/* SPDX-License-Identifier: Apache-2.0 */
/* A key's word is free (0), live (48 bits of the key, MARK_LIVE) or busy: then it holds the announcement
 * under which it is being given to another key. The announcement word of a set is idle (a version) or pending
 * (the same 48 bits, the version, the way, a mark). All of these differ, so every step below is one compare
 * and exchange that succeeds once, whoever makes it:
 *
 *   announce   idle -> pending           a worker that did not find its key, having read idle before it
 * looked take       key: old -> the pending word clear      each word -> 0            only while the key is
 * the pending word give       key: the pending word -> live close      pending -> idle, next version
 *
 * A worker that is late with a step finds something else than it expects and leaves. */
#include "shared/keytable.h"

#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    MARK_PENDING = 1,
    WAY_SHIFT = 1,
    WAY_MASK = 7,
    MARK_LIVE = 0xf, /* pending in a way that does not exist */
    VERSION_SHIFT = 4,
    VERSIONS = 0x1000,
    TAG_SHIFT = 16,
    LINE_WORDS = 8,
};

struct set {
    _Atomic uint64_t announcement;
    _Atomic uint64_t keys[KEYTABLE_WAYS];
} ISO_CACHE_ALIGN;

_Static_assert(sizeof(struct set) == ISO_CACHE_LINE, "the keys of a set are found with one miss");

struct keytable {
    /* set once before publishing */
    uint32_t mask; /* sets - 1 */
    uint32_t words;
    size_t bytes;
    struct set *sets;        /* owns; mapped; the words stand behind the sets */
    _Atomic uint64_t *store; /* [sets][LINE_WORDS][words]; the last of each set is unused */
    keytable_weight_fn *weight;
    const void *context;
    /* any thread: atomic, relaxed */
    _Atomic uint64_t evicted ISO_CACHE_ALIGN;
};

struct keytable *keytable_new(uint32_t keys, uint32_t words, keytable_weight_fn *weight, const void *context)
{
    struct keytable *table = aligned_alloc(ISO_CACHE_LINE, sizeof(*table));
    uint32_t sets = 1;
    while (sets < 1u << 26 && (uint64_t)sets * KEYTABLE_WAYS < keys)
        sets *= 2;
    iso_assert(table != NULL && words >= 1 && words <= KEYTABLE_WORDS_MAX);
    memset(table, 0, sizeof(*table));
    table->mask = sets - 1;
    table->words = words;
    table->bytes = (size_t)sets * (sizeof(struct set) + sizeof(uint64_t) * LINE_WORDS * words);
    table->sets = mmap(NULL, table->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    iso_assert(table->sets != MAP_FAILED);
    table->store = (_Atomic uint64_t *)(table->sets + sets);
    table->weight = weight;
    table->context = context;
    return table;
}

void keytable_free(struct keytable **table)
{
    if (*table)
        munmap((*table)->sets, (*table)->bytes);
    free(*table);
    *table = NULL;
}

static uint64_t live_word(uint64_t key)
{
    return key >> TAG_SHIFT << TAG_SHIFT | MARK_LIVE;
}

static uint32_t set_of(const struct keytable *table, uint64_t key)
{
    return (uint32_t)key & table->mask;
}

static _Atomic uint64_t *words_of(const struct keytable *table, uint32_t set, uint32_t way)
{
    return table->store + ((size_t)set * LINE_WORDS + way) * table->words;
}

static bool exchange(_Atomic uint64_t *word, uint64_t from, uint64_t to)
{
    return atomic_compare_exchange_strong_explicit(word, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

static uint64_t read(const _Atomic uint64_t *word)
{
    return atomic_load_explicit((_Atomic uint64_t *)word, memory_order_acquire);
}

static uint64_t next_version(uint64_t announcement)
{
    return ((announcement >> VERSION_SHIFT) + 1) % VERSIONS << VERSION_SHIFT;
}

/* Zeroes the words of a key that is being given away, as long as it is. */
static void clear(const struct keytable *table, uint32_t index, uint32_t way, uint64_t pending)
{
    _Atomic uint64_t *words = words_of(table, index, way);
    for (uint32_t i = 0; i < table->words; i++) {
        uint64_t old;
        while ((old = read(&words[i])) && read(&table->sets[index].keys[way]) == pending)
            exchange(&words[i], old, 0);
    }
}

/* Makes the announced key live, or finds that this has been done. */
static void complete(const struct keytable *table, uint32_t index, uint64_t pending)
{
    struct set *set = &table->sets[index];
    uint32_t way = pending >> WAY_SHIFT & WAY_MASK;
    _Atomic uint64_t *key = &set->keys[way];
    uint64_t was;
    while ((was = read(key)) != live_word(pending)) {
        if (was == pending) {
            clear(table, index, way, pending);
            exchange(key, pending, live_word(pending));
        } else if (read(&set->announcement) == pending) {
            exchange(key, was, pending);
        } else {
            return;
        }
    }
    exchange(&set->announcement, pending, next_version(pending));
}

/* The way to give away, and what that costs. One that is free or was left busy costs nothing. */
static uint32_t lightest(const struct keytable *table, uint32_t index, uint64_t now, uint64_t *cost)
{
    const struct set *set = &table->sets[index];
    uint32_t best = 0;
    *cost = UINT64_MAX;
    for (uint32_t way = 0; way<KEYTABLE_WAYS && * cost> 0; way++) {
        bool is_live = (read(&set->keys[way]) & MARK_LIVE) == MARK_LIVE;
        uint64_t weight = is_live ? table->weight(table->context, words_of(table, index, way), now) : 0;
        if (weight < *cost) {
            *cost = weight;
            best = way;
        }
    }
    return best;
}

_Atomic uint64_t *keytable_find(const struct keytable *table, uint64_t key)
{
    uint32_t index = set_of(table, key);
    uint64_t live = live_word(key);
    for (uint32_t way = 0; way < KEYTABLE_WAYS; way++)
        if (read(&table->sets[index].keys[way]) == live)
            return words_of(table, index, way);
    return NULL;
}

_Atomic uint64_t *keytable_get(struct keytable *table, uint64_t key, uint64_t now)
{
    uint32_t index = set_of(table, key);
    struct set *set = &table->sets[index];
    _Atomic uint64_t *words = keytable_find(table, key);
    while (iso_unlikely(!words)) {
        uint64_t seen = read(&set->announcement), cost;
        if (seen & MARK_PENDING) {
            complete(table, index, seen);
        } else if (!(words = keytable_find(table, key))) {
            uint32_t way = lightest(table, index, now, &cost);
            uint64_t pending =
                (live_word(key) ^ MARK_LIVE) | next_version(seen) | (uint64_t)way << WAY_SHIFT | MARK_PENDING;
            if (exchange(&set->announcement, seen, pending)) {
                if (cost > 0)
                    atomic_fetch_add_explicit(&table->evicted, 1, memory_order_relaxed);
                complete(table, index, pending);
                words = words_of(table, index, way);
            }
        } else {
            break;
        }
    }
    return words;
}

uint64_t keytable_evicted(const struct keytable *table)
{
    return atomic_load_explicit((_Atomic uint64_t *)&table->evicted, memory_order_relaxed);
}

uint32_t keytable_capacity(const struct keytable *table)
{
    return (table->mask + 1) * KEYTABLE_WAYS;
}
