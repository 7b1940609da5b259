/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/memory_internal.h"

#include "core/check.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST = 32,           /* the first class; each next one is twice as large, the last 4096 bytes */
    KEEP_BYTES = 512 * 1024, /* of a class */
    NO_CLASS = HTTP2_MEMORY_CLASSES,
};

/* Stands before each piece. */
struct piece {
    _Alignas(16) uint32_t class_index;
};

static size_t bytes_of(uint32_t class_index)
{
    return (size_t)SMALLEST << class_index;
}

static uint32_t class_of(size_t size)
{
    uint32_t class_index = 0;
    while (class_index < NO_CLASS && bytes_of(class_index) < size)
        class_index++;
    return class_index;
}

static void *take(size_t size, void *arg)
{
    struct http2_memory *memory = arg;
    uint32_t class_index = class_of(size);
    if (class_index < NO_CLASS && memory->free[class_index]) {
        void *data = memory->free[class_index];
        memcpy(&memory->free[class_index], data, sizeof(void *));
        memory->n_free[class_index]--;
        return data;
    }
    struct piece *piece = malloc(sizeof(*piece) + (class_index < NO_CLASS ? bytes_of(class_index) : size));
    if (!piece)
        return NULL;
    piece->class_index = class_index;
    return piece + 1;
}

static void give(void *data, void *arg)
{
    struct http2_memory *memory = arg;
    if (!data)
        return;
    struct piece *piece = (struct piece *)data - 1;
    uint32_t class_index = piece->class_index;
    if (class_index == NO_CLASS || memory->n_free[class_index] * bytes_of(class_index) >= KEEP_BYTES) {
        free(piece);
        return;
    }
    memcpy(data, &memory->free[class_index], sizeof(void *));
    memory->free[class_index] = data;
    memory->n_free[class_index]++;
}

static void *take_zeroed(size_t n, size_t size, void *arg)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    void *data = take(bytes, arg);
    return data ? memset(data, 0, bytes) : NULL;
}

static void *resize(void *data, size_t size, void *arg)
{
    if (!data)
        return take(size, arg);
    struct piece *piece = (struct piece *)data - 1;
    if (piece->class_index == NO_CLASS && class_of(size) == NO_CLASS) {
        piece = realloc(piece, sizeof(*piece) + size);
        return piece ? piece + 1 : NULL;
    }
    if (piece->class_index < NO_CLASS && size <= bytes_of(piece->class_index))
        return data;
    void *larger = take(size, arg);
    if (!larger)
        return NULL;
    /* What shrinks out of no class is at least as long as the new size; what grows is as long as its class.
     */
    memcpy(larger, data, piece->class_index == NO_CLASS ? size : bytes_of(piece->class_index));
    give(data, arg);
    return larger;
}

void http2_memory_fini(struct http2_memory *memory)
{
    for (uint32_t i = 0; i < HTTP2_MEMORY_CLASSES; i++)
        while (memory->free[i]) {
            void *data = memory->free[i];
            memcpy(&memory->free[i], data, sizeof(void *));
            free((struct piece *)data - 1);
        }
    *memory = (struct http2_memory){0};
}

nghttp2_mem http2_memory_of(struct http2_memory *memory)
{
    return (nghttp2_mem){
        .mem_user_data = memory, .malloc = take, .free = give, .calloc = take_zeroed, .realloc = resize};
}
