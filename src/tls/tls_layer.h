/* SPDX-License-Identifier: Apache-2.0 */
/* TLS as a layer of a connection, both sides. OpenSSL never sees a socket: it reads from a window over what
 * one recv() brought and writes into one buffer of the thread, which leaves in one send() a call. Full
 * handshakes are dear (a quarter of a millisecond), so a thread makes only a few steps of them in a turn of
 * its loop and lets other connections go first. Each thread has one struct tls_thread; nothing is shared but
 * the contexts. Source: A5 A6; docs/performance.md for what gathering is worth. */
#ifndef ISOBAR_TLS_TLS_LAYER_H
#define ISOBAR_TLS_TLS_LAYER_H

#include "core/slice.h"
#include "net/conn.h"

struct tls_thread;
struct tls_server;

/* `loop` and `bufs` are the thread's and outlive it. Aborts when memory ends. */
struct tls_thread *tls_thread_new(struct loop *loop, struct buf_pool *bufs);
/* Every connection must have been closed. NULL is fine. */
void tls_thread_free(struct tls_thread *thread);

/* Makes an accepted connection one that speaks TLS, with the listener's context (which gets a reference):
 * is_handshaking is set until a read finds the handshake done. False: no memory. */
bool tls_accept(struct tls_thread *thread, struct conn *conn, struct tls_server *server) ISO_MUST_USE;

/* What is known once the handshake is done; the connection must have this layer. */
bool tls_is_resumed(const struct conn *conn);
/* The protocol chosen by ALPN, "" without one. Borrows from the connection. */
struct slice tls_alpn(const struct conn *conn);
/* Is this host, by the certificates of the listener, under another policy (client certificates, versions)
 * than the name that the connection was made for? Then a request for it has no business here. */
bool tls_host_is_misdirected(const struct conn *conn, struct slice host);

/* The verified certificate that the peer showed: its subject as RFC 2253 has it, in printable ASCII, and the
 * SHA-256 of the certificate as 64 digits. False: it showed none. Borrows from the connection. */
bool tls_peer_subject(const struct conn *conn, struct slice *subject, struct slice *sha256);

/* Why the connection failed, in OpenSSL's words, or NULL. */
const char *tls_failure(const struct conn *conn);
/* "TLSv1.3". */
const char *tls_version(const struct conn *conn);

#endif
