/* SPDX-License-Identifier: Apache-2.0 */
#include "core/arena.h"

#include "core/check.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct arena_block {
    struct arena_block *next; /* owns */
    size_t used, size;
    char data[] ISO_CACHE_ALIGN;
};

enum { FIRST_BLOCK_BYTES = 4096 - sizeof(struct arena_block), LARGEST_BLOCK_BYTES = 1 << 20 };

void arena_init(struct arena *arena)
{
    *arena = (struct arena){0};
}

void arena_fini(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    *arena = (struct arena){0};
}

static struct arena_block *add_block(struct arena *arena, size_t size)
{
    size_t want = arena->blocks ? arena->blocks->size * 2 : (size_t)FIRST_BLOCK_BYTES;
    if (want > LARGEST_BLOCK_BYTES)
        want = LARGEST_BLOCK_BYTES;
    if (want < size)
        want = size;
    want = (sizeof(struct arena_block) + want + ISO_CACHE_LINE - 1) & ~(size_t)(ISO_CACHE_LINE - 1);
    struct arena_block *block = aligned_alloc(ISO_CACHE_LINE, want);
    iso_assert(block != NULL);
    block->next = arena->blocks;
    block->used = 0;
    block->size = want - sizeof(struct arena_block);
    arena->blocks = block;
    return block;
}

static void *alloc_aligned(struct arena *arena, size_t size, size_t align)
{
    iso_assert(size < SIZE_MAX / 2);
    struct arena_block *block = arena->blocks;
    size_t at = block ? (block->used + align - 1) & ~(align - 1) : 0;
    if (!block || at + size > block->size) {
        block = add_block(arena, size);
        at = 0;
    }
    arena->total_bytes += at + size - block->used;
    block->used = at + size;
    return memset(block->data + at, 0, size);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    return alloc_aligned(arena, size, 16);
}

void *arena_alloc_line(struct arena *arena, size_t size)
{
    return alloc_aligned(arena, (size + ISO_CACHE_LINE - 1) & ~(size_t)(ISO_CACHE_LINE - 1), ISO_CACHE_LINE);
}

struct slice arena_slice(struct arena *arena, struct slice s)
{
    char *copy = arena_alloc(arena, s.len + 1);
    if (s.len)
        memcpy(copy, s.ptr, s.len);
    return slice_of(copy, s.len);
}

char *arena_str(struct arena *arena, const char *str)
{
    return (char *)arena_slice(arena, slice_str(str)).ptr;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    iso_assert(len >= 0);
    char *out = arena_alloc(arena, (size_t)len + 1);
    vsnprintf(out, (size_t)len + 1, fmt, again);
    va_end(again);
    return out;
}
