/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS side of one target group: what we show to targets and how we verify them. Made on the control
 * thread with each snapshot, immutable, counted. Two with the same settings and the same contents of files
 * have the same id, so that a reload that changed neither keeps idle connections and sessions. */
#ifndef ISOBAR_TLS_CLIENT_H
#define ISOBAR_TLS_CLIENT_H

#include "core/ip.h"
#include "core/slice.h"
#include "tls/fault.h"

struct conn;
struct tls_client;
struct tls_thread;

struct tls_client_options {
    bool verify;
    const char *ca_file;              /* whose signature counts; NULL: the system's authorities */
    const char *sni;                  /* asked for and expected; NULL: the target's address is expected */
    const char *cert_file, *key_file; /* what we show; NULL: nothing; key_file NULL: in cert_file */
    const struct slice *alpn;         /* offered, the preferred one first; n 0: none */
    uint32_t n_alpn;
};

/* Owns: the caller holds one reference. */
iso_err tls_client_new(const struct tls_client_options *options, struct tls_client **out,
                       struct tls_fault *fault) ISO_MUST_USE;
/* Threads: any. */
struct tls_client *tls_client_ref(struct tls_client *client);
void tls_client_unref(struct tls_client **client);
/* Never 0. NULL: 0, plain. */
uint64_t tls_client_id(const struct tls_client *client);

/* The last session with one target, for the next connection to it. Zeroed: none. Threads: owner. */
struct tls_session_slot {
    void *session;      /* owns */
    uint64_t client_id; /* whose it is */
};
void tls_session_fini(struct tls_session_slot *slot);

/* Makes a connection that is connecting one that speaks TLS; conn_handshake() goes on once the socket is
 * open. `ip` is the target's address (family 0: none). `slot` may be NULL and outlives the connection. False:
 * no memory. Threads: the thread's owner. */
bool tls_connect(struct tls_thread *thread, struct conn *conn, struct tls_client *client,
                 const struct ip_addr *ip, struct tls_session_slot *slot) ISO_MUST_USE;

/* Before the handshake of such a connection: HTTP/1.1 is offered alone, whatever the client offers. */
void tls_offer_http1(struct conn *conn);

#endif
