/* SPDX-License-Identifier: Apache-2.0 */
/* What the TLS libraries do differently, as one set of functions. Each library has one file that says how it
 * does them and why: library_openssl.c; library_boringssl.c and library_aws_lc.c with library_family.c, which
 * holds what these two share. A library that cannot do what a configuration asks for says so here, when the
 * context is made, and nothing is left out silently. */
#ifndef ISOBAR_TLS_LIBRARY_INTERNAL_H
#define ISOBAR_TLS_LIBRARY_INTERNAL_H

#include "core/slice.h"
#include "tls/cert.h"
#include "tls/library.h"
#include "tls/tickets.h"

#include <openssl/ssl.h>

/* ---- contexts, on the control thread ---- */

/* Does a context hold one certificate only? Then a name with certificates of several kinds has a context for
 * each, and library_hello says which to take. */
extern const bool library_has_one_cert;

/* Ciphers of TLS 1.2 and suites of TLS 1.3, each as configured or NULL for the built-in ones. */
iso_err library_set_ciphers(SSL_CTX *ctx, const char *ciphers, struct tls_fault *fault) ISO_MUST_USE;
iso_err library_set_suites(SSL_CTX *ctx, const char *suites, struct tls_fault *fault) ISO_MUST_USE;

/* An OCSP answer for each kind of certificate; data NULL: none. */
struct library_staple {
    unsigned char *data; /* owns */
    size_t len;
};
/* Sends the answer of the certificate that is shown. `all` [TLS_CERT_KINDS] outlives the context; `kind` is
 * the context's where it holds one certificate only. */
void library_use_staples(SSL_CTX *ctx, const struct library_staple *all, enum tls_cert_kind kind);

/* Seals session tickets with the keys of tls_ticket_key_*() below. */
void library_use_tickets(SSL_CTX *ctx);
/* Calls tls_on_hello() for each ClientHello, before anything else of it is used. */
void library_use_hello(SSL_CTX *ctx);

/* ---- what these call, in server.c, on a worker ---- */

struct library_hello {
    struct slice server_name; /* content of the extension; ptr NULL: it is not there */
    /* Where library_has_one_cert: can the client use the ECDSA certificate of this context? */
    bool (*takes_ecdsa)(const struct library_hello *hello, SSL_CTX *ctx);
    const void *own; /* the library's */
};
/* False: the handshake fails. */
bool tls_on_hello(SSL *ssl, const struct library_hello *hello);
/* The key that makes tickets. Borrows until the callback ends, below too. */
const struct ticket_key *tls_ticket_key_now(SSL *ssl);
/* The key of that name, or NULL; `*is_old`: a new ticket should follow. */
const struct ticket_key *tls_ticket_key_find(SSL *ssl, const unsigned char *name, bool *is_old);

/* ---- memory ---- */

/* From here on the library takes and gives its memory by these three; without effect where it cannot.
 * Threads: main, before others and before anything else of the library. */
struct library_memory {
    void *(*take)(size_t size);
    void *(*resize)(void *data, size_t size); /* as realloc(), size 0 included */
    void (*give)(void *data);
};
void library_use_memory(const struct library_memory *memory);
/* Frees what the library keeps for the calling thread, as far as it does that by itself. */
void library_end_thread(void);

#endif
