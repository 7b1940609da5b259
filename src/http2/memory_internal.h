/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's memory as nghttp2 takes it. */
#ifndef ISOBAR_HTTP2_MEMORY_INTERNAL_H
#define ISOBAR_HTTP2_MEMORY_INTERNAL_H

#include "http2/memory.h"

#include <nghttp2/nghttp2.h>

/* For a session of the same thread, which copies it. */
nghttp2_mem http2_memory_of(struct http2_memory *memory);

#endif
