/* SPDX-License-Identifier: Apache-2.0 */
/* Where nghttp2 has its memory from: it allocates and frees a dozen pieces a request, which come out of lists
 * of one thread here, most recently freed first. Pieces that do not fit a class, and what is more than a list
 * keeps, are malloc()'s. Only files of this folder and who owns one know it; nghttp2 sees http2_memory_of().
 */
#ifndef ISOBAR_HTTP2_MEMORY_H
#define ISOBAR_HTTP2_MEMORY_H

#include <stdint.h>

enum { HTTP2_MEMORY_CLASSES = 8 };

/* Zeroed is empty. */
struct http2_memory {
    void *free[HTTP2_MEMORY_CLASSES]; /* owns; lists through the first word of each piece */
    uint32_t n_free[HTTP2_MEMORY_CLASSES];
};

/* Every session that uses it must have ended. */
void http2_memory_fini(struct http2_memory *memory);

#endif
