/* SPDX-License-Identifier: Apache-2.0 */
/* TLS over a blocking socket, for the command line: one connection at a time, no loop. The server's
 * certificate is verified. */
#ifndef ISOBAR_TLS_BLOCKING_H
#define ISOBAR_TLS_BLOCKING_H

#include "core/err.h"

#include <stddef.h>
#include <sys/types.h>

struct tls_blocking;

enum { TLS_BLOCKING_FAULT_MAX = 200 };

/* Makes the handshake over a connected socket, which stays the caller's. `host` is the name or address that
 * the certificate must be for, `ca_file` whose signature counts (NULL: the system's authorities). On failure
 * `fault` says why. */
iso_err tls_blocking_open(int fd, const char *host, const char *ca_file, struct tls_blocking **out,
                          char fault[TLS_BLOCKING_FAULT_MAX]) ISO_MUST_USE;
/* As read() and write(); 0 at the end, -1 when the connection broke. */
ssize_t tls_blocking_read(struct tls_blocking *tls, void *data, size_t len);
ssize_t tls_blocking_write(struct tls_blocking *tls, const void *data, size_t len);
void tls_blocking_close(struct tls_blocking **tls);

#endif
