/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/memory.h"

#include <string.h>

static void *take(size_t size, void *arg)
{
    return pieces_take(arg, size);
}

static void give(void *data, void *arg)
{
    pieces_give(arg, data);
}

static void *take_zeroed(size_t n, size_t size, void *arg)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    void *data = pieces_take(arg, bytes);
    return data ? memset(data, 0, bytes) : NULL;
}

static void *resize(void *data, size_t size, void *arg)
{
    return pieces_resize(arg, data, size);
}

nghttp2_mem http2_memory_of(struct pieces *pieces)
{
    return (nghttp2_mem){
        .mem_user_data = pieces, .malloc = take, .free = give, .calloc = take_zeroed, .realloc = resize};
}
