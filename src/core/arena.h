/* SPDX-License-Identifier: Apache-2.0 */
/* Bump memory that is freed as a whole: one arena per snapshot, per parsed document, per admin request.
 * Blocks double in size, so that a large document costs few allocations. The traffic path does not use it. */
#ifndef ISOBAR_CORE_ARENA_H
#define ISOBAR_CORE_ARENA_H

#include "core/slice.h"

struct arena {
    struct arena_block *blocks; /* owns; newest first */
    size_t total_bytes;         /* handed out since init, alignment included */
};

void arena_init(struct arena *arena);
void arena_fini(struct arena *arena);

/* Zeroed memory, aligned to 16 bytes. Aborts when the system has none left. Owns: the arena. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((malloc, returns_nonnull));
/* The same aligned to a cache line, for data that one thread writes beside others. */
void *arena_alloc_line(struct arena *arena, size_t size) __attribute__((malloc, returns_nonnull));
/* Copies with a NUL behind it (not counted), so that C libraries can read it. */
struct slice arena_slice(struct arena *arena, struct slice s);
char *arena_str(struct arena *arena, const char *str);
char *arena_printf(struct arena *arena, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define arena_new(arena, type)      ((type *)arena_alloc(arena, sizeof(type)))
#define arena_array(arena, type, n) ((type *)arena_alloc(arena, sizeof(type) * (size_t)(n)))

#endif
