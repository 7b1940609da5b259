/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/sources.h"

#include <stdlib.h>

/* An address as one number: the family, then its bytes. */
enum { KEY_BYTES = 17 };

/* From `first` on, up to the next range's. */
struct range {
    uint8_t first[KEY_BYTES];
    bool is_allowed;
};

struct sources {
    struct range *ranges;
    uint32_t n;
};

struct block {
    uint8_t first[KEY_BYTES], last[KEY_BYTES];
    unsigned bits;
    bool is_allowed;
};

static void key_of(const struct ip_addr *addr, uint8_t key[KEY_BYTES])
{
    memset(key, 0, KEY_BYTES);
    key[0] = addr->family;
    memcpy(key + 1, addr->bytes, addr->family == 4 ? 4 : 16);
}

static struct block block_of(const struct ip_prefix *prefix, bool is_allowed)
{
    struct block block = {.bits = prefix->bits, .is_allowed = is_allowed};
    unsigned size = prefix->addr.family == 4 ? 32 : 128;
    key_of(&prefix->addr, block.first);
    memcpy(block.last, block.first, KEY_BYTES);
    for (unsigned bit = prefix->bits; bit < size; bit++)
        block.last[1 + bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    if (size == 32) /* what stands behind the four bytes belongs to the last address */
        memset(block.last + 5, 0xff, 12);
    return block;
}

/* Wider ones before those within them; of two that are the same, the one that decides last. */
static int compare(const void *left, const void *right)
{
    const struct block *a = left, *b = right;
    int order = memcmp(a->first, b->first, KEY_BYTES);
    if (order)
        return order;
    if (a->bits != b->bits)
        return a->bits < b->bits ? -1 : 1;
    return (int)b->is_allowed - (int)a->is_allowed;
}

static void begin_range(struct sources *sources, const uint8_t first[KEY_BYTES], bool is_allowed)
{
    struct range *last = sources->n ? &sources->ranges[sources->n - 1] : NULL;
    if (!last || memcmp(last->first, first, KEY_BYTES) != 0)
        last = &sources->ranges[sources->n++];
    memcpy(last->first, first, KEY_BYTES);
    last->is_allowed = is_allowed;
}

/* What comes behind a block is decided by the one around it. */
static void end_block(struct sources *sources, const struct block *block, bool is_allowed_around)
{
    uint8_t next[KEY_BYTES];
    memcpy(next, block->last, KEY_BYTES);
    for (int i = KEY_BYTES - 1; i >= 0 && ++next[i] == 0; i--)
        ;
    begin_range(sources, next, is_allowed_around);
}

const struct sources *sources_compile(const struct config_sources *config, struct arena *arena)
{
    uint32_t n = config->n_allow + config->n_deny, depth = 0;
    bool is_allowed_else = config->n_allow == 0;
    if (n == 0)
        return NULL;
    struct sources *sources = arena_new(arena, struct sources);
    struct block *blocks = arena_array(arena, struct block, n);
    const struct block **around = arena_alloc(arena, sizeof(*around) * n);
    sources->ranges = arena_array(arena, struct range, 2 * n + 1);
    for (uint32_t i = 0; i < n; i++)
        blocks[i] = i < config->n_allow ? block_of(&config->allow[i], true)
                                        : block_of(&config->deny[i - config->n_allow], false);
    qsort(blocks, n, sizeof(*blocks), compare);
    begin_range(sources, (const uint8_t[KEY_BYTES]){0}, is_allowed_else);
    for (uint32_t i = 0; i <= n; i++) {
        while (depth && (i == n || memcmp(around[depth - 1]->last, blocks[i].first, KEY_BYTES) < 0)) {
            depth--;
            end_block(sources, around[depth], depth ? around[depth - 1]->is_allowed : is_allowed_else);
        }
        if (i == n)
            break;
        begin_range(sources, blocks[i].first, blocks[i].is_allowed);
        around[depth++] = &blocks[i];
    }
    return sources;
}

bool sources_allow(const struct sources *sources, const struct ip_addr *addr)
{
    uint8_t key[KEY_BYTES];
    if (!sources || addr->family == 0)
        return true;
    key_of(addr, key);
    uint32_t low = 0, high = sources->n; /* the first range begins with the least key */
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (memcmp(sources->ranges[middle].first, key, KEY_BYTES) <= 0)
            low = middle;
        else
            high = middle;
    }
    return sources->ranges[low].is_allowed;
}
