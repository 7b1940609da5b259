/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for libraries that allocate and free dozens of pieces a request: size classes of one thread, most
 * recently freed first. What fits no class, and what is more than a list keeps, is malloc()'s. A piece may be
 * given back on another thread than it was taken on: it then belongs to that one's lists.
 *
 * A piece is exactly what malloc() gave, which knows its size: nothing stands before it. The classes lie
 * close together and reach up to a record of TLS with room to spare, so that the buffers of one handshake
 * serve the next instead of being cut up for small pieces that stay. */
#ifndef ISOBAR_CORE_PIECES_H
#define ISOBAR_CORE_PIECES_H

#include <stddef.h>
#include <stdint.h>

enum { PIECES_CLASSES = 39 };

/* Zeroed is empty. */
struct pieces {
    void *free[PIECES_CLASSES]; /* owns; lists through the first word of each piece */
    uint32_t n_free[PIECES_CLASSES];
};

/* `pieces` NULL: malloc() alone, in all of these. NULL: no memory. */
void *pieces_take(struct pieces *pieces, size_t size);
/* `data` NULL: nothing happens. */
void pieces_give(struct pieces *pieces, void *data);
/* As realloc(). */
void *pieces_resize(struct pieces *pieces, void *data, size_t size);
/* Frees the lists. What is still taken stays usable and may be given back without lists. */
void pieces_fini(struct pieces *pieces);

#endif
