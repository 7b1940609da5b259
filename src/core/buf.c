/* SPDX-License-Identifier: Apache-2.0 */
#include "core/buf.h"

#include "core/check.h"

#include <stdlib.h>

/* Kept per class: enough for a burst of small ones, little memory in large ones (1 MiB, 2 MiB, 2 MiB, 2 MiB,
 * 2 MiB). */
static const uint32_t keep[BUF_CLASSES] = {2048, 256, 64, 16, 4};

void buf_pool_init(struct buf_pool *pool)
{
    *pool = (struct buf_pool){0};
}

void buf_pool_fini(struct buf_pool *pool)
{
    for (int i = 0; i < BUF_CLASSES; i++)
        for (struct buf *buf = pool->free[i], *next; buf; buf = next) {
            next = buf->next;
            free(buf);
        }
    *pool = (struct buf_pool){0};
}

struct buf *buf_try_take(struct buf_pool *pool, size_t size)
{
    uint32_t class_index = 0;
    size_t cap = BUF_SMALLEST;
    while (cap < size && class_index < BUF_CLASSES) {
        cap *= 4;
        class_index++;
    }
    struct buf *buf = class_index < BUF_CLASSES ? pool->free[class_index] : NULL;
    if (buf) {
        pool->free[class_index] = buf->next;
        fetch(buf->next, FETCH_LINE); /* the next one's turn comes soon, and it is mostly cold */
        pool->n_free[class_index]--;
    } else {
        buf = class_index < BUF_CLASSES ? malloc(sizeof(*buf) + cap) : NULL;
        if (!buf) {
            pool->denied++;
            if (pool->denied_counter)
                atomic_store_explicit(pool->denied_counter, pool->denied, memory_order_relaxed);
            return NULL;
        }
        buf->cap = (uint32_t)cap;
        buf->class_index = class_index;
    }
    buf->next = NULL;
    buf->start = buf->end = 0;
    pool->n_lent++;
    return buf;
}

void buf_give(struct buf_pool *pool, struct buf **lent)
{
    struct buf *buf = *lent;
    if (!buf)
        return;
    *lent = NULL;
    iso_assert(pool->n_lent > 0);
    pool->n_lent--;
    if (pool->n_free[buf->class_index] >= keep[buf->class_index]) {
        free(buf);
        return;
    }
    buf->next = pool->free[buf->class_index];
    pool->free[buf->class_index] = buf;
    pool->n_free[buf->class_index]++;
}

bool buf_append(struct buf_pool *pool, struct buf **into, struct slice bytes)
{
    struct buf *buf = *into;
    if (!buf || buf->cap - buf->end < bytes.len) {
        size_t have = buf ? buf_len(buf) : 0;
        struct buf *larger = buf_try_take(pool, have + bytes.len);
        if (!larger)
            return false;
        if (have)
            memcpy(larger->data, buf->data + buf->start, have);
        larger->end = (uint32_t)have;
        buf_give(pool, into);
        *into = buf = larger;
    }
    if (bytes.len)
        memcpy(buf->data + buf->end, bytes.ptr, bytes.len);
    buf->end += (uint32_t)bytes.len;
    return true;
}
