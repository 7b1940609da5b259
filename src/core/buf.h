/* SPDX-License-Identifier: Apache-2.0 */
/* Byte buffers that one thread lends to its connections: for a head that came in pieces, a request kept until
 * it is answered, output that did not fit the socket. An idle connection has none. Sizes come in classes;
 * freed ones are kept, most recent first, up to a bound per class. */
#ifndef ISOBAR_CORE_BUF_H
#define ISOBAR_CORE_BUF_H

#include "core/fetch.h"
#include "core/slice.h"

#include <stdatomic.h>

enum { BUF_CLASSES = 5, BUF_SMALLEST = 2048, BUF_LARGEST = BUF_SMALLEST << (2 * (BUF_CLASSES - 1)) };

struct buf {
    struct buf *next;    /* in the pool; else its owner's, who may keep a list */
    uint32_t start, end; /* the bytes that count are data[start..end) */
    uint32_t cap;
    uint32_t class_index;
    char data[];
};

struct buf_pool {
    struct buf *free[BUF_CLASSES];
    uint32_t n_free[BUF_CLASSES];
    uint32_t n_lent;
    uint64_t denied;                  /* requests that found no memory or were too large */
    _Atomic uint64_t *denied_counter; /* may be NULL; the same for other threads to read */
};

void buf_pool_init(struct buf_pool *pool);
void buf_pool_fini(struct buf_pool *pool);

/* An empty buffer with room for at least `size` bytes; NULL when there is no memory or size > BUF_LARGEST.
 * Threads: the pool's. */
struct buf *buf_try_take(struct buf_pool *pool, size_t size);
/* Asks the cache for the buffer of the smallest class that is taken next, and its first n bytes. */
static inline void buf_fetch(const struct buf_pool *pool, size_t n)
{
    fetch(pool->free[0], sizeof(struct buf) + n);
}
/* Gives *buf back, if any, and leaves NULL. */
void buf_give(struct buf_pool *pool, struct buf **buf);
/* Appends, taking a buffer or a larger one when needed; false when there is no memory or the whole would
 * exceed BUF_LARGEST, and *buf is then as before. */
bool buf_append(struct buf_pool *pool, struct buf **buf, struct slice bytes);

static inline size_t buf_len(const struct buf *buf)
{
    return buf->end - buf->start;
}

#endif
