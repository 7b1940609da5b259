/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pieces.h"

#include "core/check.h"
#include "core/fetch.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN = 8,                 /* malloc()'s part of a chunk, which is a multiple of 16 */
    SMALLEST = 32,           /* chunk of the first class; then by 16 to 64, then four to each doubling */
    LARGEST = 32 * 1024,     /* of the last one */
    KEEP_BYTES = 256 * 1024, /* of a class */
    NO_CLASS = PIECES_CLASSES,
};

static unsigned log2_of(size_t n)
{
    return 63 - (unsigned)__builtin_clzl(n);
}

static size_t chunk_of(uint32_t class_index)
{
    if (class_index < 3)
        return SMALLEST + 16 * (size_t)class_index;
    unsigned doubling = 6 + (class_index - 3) / 4, quarter = (class_index - 3) % 4;
    return ((size_t)1 << doubling) + ((size_t)(quarter + 1) << (doubling - 2));
}

/* The first class whose pieces hold `size` bytes. */
static uint32_t class_for(size_t size)
{
    size_t chunk = size + OWN;
    if (chunk <= 64)
        return chunk <= SMALLEST ? 0 : (uint32_t)((chunk - 1) / 16 - 1);
    if (chunk > LARGEST || chunk < size)
        return NO_CLASS;
    unsigned doubling = log2_of(chunk - 1);
    return 3 + (doubling - 6) * 4 + (uint32_t)((chunk - 1) >> (doubling - 2) & 3);
}

/* The last class for which a piece is large enough. */
static uint32_t class_of(void *data)
{
    size_t chunk = malloc_usable_size(data) + OWN;
    if (chunk < SMALLEST || chunk > LARGEST)
        return NO_CLASS;
    if (chunk < 64)
        return (uint32_t)(chunk / 16 - 2);
    unsigned doubling = log2_of(chunk);
    return 2 + (doubling - 6) * 4 + (uint32_t)(chunk >> (doubling - 2) & 3);
}

void *pieces_take(struct pieces *pieces, size_t size)
{
    uint32_t class_index = class_for(size);
    if (pieces && class_index < NO_CLASS && pieces->free[class_index]) {
        void *data = pieces->free[class_index];
        memcpy(&pieces->free[class_index], data, sizeof(void *));
        fetch(pieces->free[class_index], FETCH_LINE); /* as in buf.c */
        pieces->n_free[class_index]--;
        return data;
    }
    return malloc(class_index < NO_CLASS ? chunk_of(class_index) - OWN : size);
}

void pieces_give(struct pieces *pieces, void *data)
{
    uint32_t class_index = pieces && data ? class_of(data) : NO_CLASS;
    if (class_index == NO_CLASS || pieces->n_free[class_index] * chunk_of(class_index) >= KEEP_BYTES) {
        free(data);
        return;
    }
    memcpy(data, &pieces->free[class_index], sizeof(void *));
    pieces->free[class_index] = data;
    pieces->n_free[class_index]++;
}

void *pieces_resize(struct pieces *pieces, void *data, size_t size)
{
    size_t old = data ? malloc_usable_size(data) : 0;
    if (!data)
        return pieces_take(pieces, size);
    if (size <= old && old < LARGEST)
        return data;
    if (size > LARGEST && old > LARGEST)
        return realloc(data, size);
    void *moved = pieces_take(pieces, size);
    if (!moved)
        return NULL;
    memcpy(moved, data, size < old ? size : old);
    pieces_give(pieces, data);
    return moved;
}

void pieces_fini(struct pieces *pieces)
{
    for (uint32_t i = 0; i < PIECES_CLASSES; i++)
        while (pieces->free[i]) {
            void *data = pieces->free[i];
            memcpy(&pieces->free[i], data, sizeof(void *));
            free(data);
        }
    *pieces = (struct pieces){0};
}
