/* SPDX-License-Identifier: Apache-2.0 */
#include "core/slab.h"

#include "core/check.h"

#include <stdlib.h>

enum { CHUNK_BYTES = 64 * 1024, CHUNK_HEAD = 16 };

#if defined(__SANITIZE_ADDRESS__)
#define SLAB_PLAIN_MALLOC 1 /* so that AddressSanitizer sees each object's lifetime */
#else
#define SLAB_PLAIN_MALLOC 0
#endif

void slab_init(struct slab *slab, size_t object_bytes)
{
    *slab = (struct slab){.size = (object_bytes + 15) & ~(size_t)15};
    iso_assert(slab->size >= sizeof(void *) && slab->size <= CHUNK_BYTES - CHUNK_HEAD);
}

void slab_fini(struct slab *slab)
{
    for (void *chunk = slab->chunks, *next; chunk; chunk = next) {
        next = *(void **)chunk;
        free(chunk);
    }
    *slab = (struct slab){.size = slab->size};
}

static void *add_chunk(struct slab *slab)
{
    char *chunk = malloc(CHUNK_BYTES);
    if (!chunk)
        return NULL;
    *(void **)chunk = slab->chunks;
    slab->chunks = chunk;
    size_t n = (CHUNK_BYTES - CHUNK_HEAD) / slab->size;
    for (size_t i = n; i-- > 0;) {
        void *object = chunk + CHUNK_HEAD + i * slab->size;
        *(void **)object = slab->free;
        slab->free = object;
    }
    slab->total += (uint32_t)n;
    return slab->free;
}

void *slab_try_take(struct slab *slab)
{
    if (SLAB_PLAIN_MALLOC) {
        void *object = malloc(slab->size);
        slab->live += object != NULL;
        return object;
    }
    void *object = slab->free ? slab->free : add_chunk(slab);
    if (!object)
        return NULL;
    slab->free = *(void **)object;
    fetch(slab->free, FETCH_LINE); /* as in buf.c */
    slab->live++;
    return object;
}

void slab_give(struct slab *slab, void *object)
{
    iso_assert(object != NULL && slab->live > 0);
    slab->live--;
    if (SLAB_PLAIN_MALLOC) {
        free(object);
        return;
    }
    *(void **)object = slab->free;
    slab->free = object;
}
