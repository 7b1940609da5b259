/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL's memory: a handshake allocates and frees hundreds of small pieces, which on threads that say so
 * come out of lists of their own. */
#ifndef ISOBAR_TLS_MEMORY_H
#define ISOBAR_TLS_MEMORY_H

#include "core/pieces.h"

/* Before anything else of OpenSSL; otherwise, and in builds with a sanitizer that watches memory, it stays
 * with malloc(). Threads: main, before others. */
void tls_memory_install(void);
/* From here on the calling thread takes and gives from `pieces`, until tls_memory_end(), which also frees
 * what OpenSSL keeps for the thread. */
void tls_memory_begin(struct pieces *pieces);
void tls_memory_end(void);

#endif
