/* SPDX-License-Identifier: Apache-2.0 */
#include "core/pieces.h"

#include "core/check.h"

#include <stdlib.h>
#include <string.h>

enum {
    SMALLEST = 32,           /* the first class; each next one is twice as large, the last 4096 bytes */
    KEEP_BYTES = 512 * 1024, /* of a class */
    NO_CLASS = PIECES_CLASSES,
};

/* Stands before each piece. */
struct header {
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

void *pieces_take(struct pieces *pieces, size_t size)
{
    uint32_t class_index = class_of(size);
    if (pieces && class_index < NO_CLASS && pieces->free[class_index]) {
        void *data = pieces->free[class_index];
        memcpy(&pieces->free[class_index], data, sizeof(void *));
        pieces->n_free[class_index]--;
        return data;
    }
    struct header *header = malloc(sizeof(*header) + (class_index < NO_CLASS ? bytes_of(class_index) : size));
    if (!header)
        return NULL;
    header->class_index = class_index;
    return header + 1;
}

void pieces_give(struct pieces *pieces, void *data)
{
    if (!data)
        return;
    struct header *header = (struct header *)data - 1;
    uint32_t class_index = header->class_index;
    if (!pieces || class_index == NO_CLASS ||
        pieces->n_free[class_index] * bytes_of(class_index) >= KEEP_BYTES) {
        free(header);
        return;
    }
    memcpy(data, &pieces->free[class_index], sizeof(void *));
    pieces->free[class_index] = data;
    pieces->n_free[class_index]++;
}

void *pieces_resize(struct pieces *pieces, void *data, size_t size)
{
    if (!data)
        return pieces_take(pieces, size);
    struct header *header = (struct header *)data - 1;
    if (header->class_index == NO_CLASS && class_of(size) == NO_CLASS) {
        header = realloc(header, sizeof(*header) + size);
        return header ? header + 1 : NULL;
    }
    if (header->class_index < NO_CLASS && size <= bytes_of(header->class_index))
        return data;
    void *moved = pieces_take(pieces, size);
    if (!moved)
        return NULL;
    /* What shrinks out of no class is at least as long as the new size; what grows is as long as its class.
     */
    memcpy(moved, data, header->class_index == NO_CLASS ? size : bytes_of(header->class_index));
    pieces_give(pieces, data);
    return moved;
}

void pieces_fini(struct pieces *pieces)
{
    for (uint32_t i = 0; i < PIECES_CLASSES; i++)
        while (pieces->free[i]) {
            void *data = pieces->free[i];
            memcpy(&pieces->free[i], data, sizeof(void *));
            free((struct header *)data - 1);
        }
    *pieces = (struct pieces){0};
}
