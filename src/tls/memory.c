/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/memory.h"

#include "tls/library_internal.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_WATCHED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_WATCHED 1
#endif
#ifndef IS_WATCHED
#define IS_WATCHED 0
#endif

static _Thread_local struct pieces *lists; /* borrows: the thread's; NULL: malloc() */

static void *take(size_t size)
{
    return pieces_take(lists, size);
}

static void *resize(void *data, size_t size)
{
    if (size > 0)
        return pieces_resize(lists, data, size);
    pieces_give(lists, data);
    return NULL;
}

static void give(void *data)
{
    pieces_give(lists, data);
}

void tls_memory_install(void)
{
    if (!IS_WATCHED)
        library_use_memory(&(struct library_memory){take, resize, give});
}

void tls_memory_begin(struct pieces *pieces)
{
    lists = pieces;
}

void tls_memory_end(void)
{
    library_end_thread();
    lists = NULL;
}
