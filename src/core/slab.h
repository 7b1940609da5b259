/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of one size, most recently freed first, so that the next user finds them in the cache. One slab
 * belongs to one thread. Chunks go back to the system when the slab ends; a slab never moves an object. */
#ifndef ISOBAR_CORE_SLAB_H
#define ISOBAR_CORE_SLAB_H

#include "core/fetch.h"

#include <stdint.h>

struct slab {
    void *free;     /* list through the first word of each free object */
    void *chunks;   /* owns; list through the first word of each chunk */
    size_t size;    /* of an object, a multiple of 16 */
    uint32_t live;  /* handed out and not given back */
    uint32_t total; /* objects that exist */
};

void slab_init(struct slab *slab, size_t object_bytes);
/* Frees all memory; objects still live are gone with it. */
void slab_fini(struct slab *slab);
/* Memory that is not cleared, or NULL when the system has none. Threads: owner only. */
void *slab_try_take(struct slab *slab);
void slab_give(struct slab *slab, void *object);
/* Asks the cache for the object that is taken next. */
static inline void slab_fetch(const struct slab *slab)
{
    fetch(slab->free, slab->size);
}

#endif
