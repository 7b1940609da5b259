/* SPDX-License-Identifier: Apache-2.0 */
/* Where nghttp2 has its memory from: it allocates and frees a dozen pieces a request, which come out of lists
 * of the thread (core/pieces.h). */
#ifndef ISOBAR_HTTP2_MEMORY_H
#define ISOBAR_HTTP2_MEMORY_H

#include "core/pieces.h"

#include <nghttp2/nghttp2.h>

/* For a session of the same thread, which copies it. NULL: malloc()'s. */
nghttp2_mem http2_memory_of(struct pieces *pieces);

#endif
