/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/jwt_cache.h"

#include "core/check.h"
#include "core/hash.h"

#include <stdlib.h>
#include <sys/random.h>

enum { WAYS = 4, SETS = JWT_CACHE_TOKENS / WAYS };

struct jwt_cache {
    struct siphash_key low_key, high_key;
    struct jwt_tag tags[SETS][WAYS]; /* the newest first; keys 0: none */
};

struct jwt_cache *jwt_cache_new(void)
{
    struct jwt_cache *cache = calloc(1, sizeof(*cache)); /* pages that are not used are not there */
    iso_assert(cache != NULL);
    if (getrandom(&cache->low_key, sizeof(cache->low_key), GRND_NONBLOCK) == sizeof(cache->low_key) &&
        getrandom(&cache->high_key, sizeof(cache->high_key), GRND_NONBLOCK) == sizeof(cache->high_key))
        return cache;
    free(cache);
    return NULL;
}

void jwt_cache_free(struct jwt_cache **cache)
{
    free(*cache);
    *cache = NULL;
}

void jwt_cache_tag(const struct jwt_cache *cache, uint64_t keys, struct slice token, struct jwt_tag *out)
{
    *out = (struct jwt_tag){keys, siphash(&cache->low_key, token), siphash(&cache->high_key, token)};
}

static bool same(const struct jwt_tag *a, const struct jwt_tag *b)
{
    return a->keys == b->keys && a->low == b->low && a->high == b->high;
}

bool jwt_cache_knows(const struct jwt_cache *cache, const struct jwt_tag *tag)
{
    const struct jwt_tag *set = cache->tags[tag->low % SETS];
    for (int i = 0; i < WAYS; i++)
        if (same(&set[i], tag))
            return true;
    return false;
}

void jwt_cache_add(struct jwt_cache *cache, const struct jwt_tag *tag)
{
    struct jwt_tag *set = cache->tags[tag->low % SETS];
    memmove(&set[1], &set[0], sizeof(*set) * (WAYS - 1));
    set[0] = *tag;
}
