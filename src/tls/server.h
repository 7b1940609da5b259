/* SPDX-License-Identifier: Apache-2.0 */
/* The TLS side of one listener: its certificates by name, versions, protocols, client certificates. Made on
 * the control thread with each snapshot and immutable; a connection holds a reference, so a reload changes
 * what the next handshake sees and nothing that is open.
 *
 * The certificate is chosen from the ClientHello before anything else of it is used: SNI exactly, then
 * "*.rest" for one label, then the first certificate of the list. Where an RSA and an ECDSA certificate have
 * the name, both are offered. Policy (client certificates, versions) belongs to the certificate, and sessions
 * are bound to it: one that was made under another policy is not resumed. Source: A5; cases C-075 C-083. */
#ifndef ISOBAR_TLS_SERVER_H
#define ISOBAR_TLS_SERVER_H

#include "tls/certs.h"

#include <stdatomic.h>

struct tls_server;

struct tls_server_options {
    struct slice name; /* of the listener: sessions do not cross listeners */
    struct tls_cert *const
        *certs; /* [n_certs], at least one; the first is the default; borrowed for the call */
    uint32_t n_certs;
    const struct slice *alpn; /* in order of preference; none: ALPN is ignored */
    uint32_t n_alpn;
    unsigned min_version, max_version;           /* 12, 13 */
    const char *ciphers, *ciphersuites, *groups; /* OpenSSL's lists; NULL: the built-in ones */
    const char *const *ticket_files;             /* [n_ticket_files] */
    uint32_t n_ticket_files;
    struct tls_policy policy; /* of certificates that have none of their own */
};

/* Owns: the caller holds one reference. */
iso_err tls_server_new(const struct tls_server_options *options, struct tls_server **out,
                       struct tls_fault *fault) ISO_MUST_USE;
/* Threads: any. */
struct tls_server *tls_server_ref(struct tls_server *server);
void tls_server_unref(struct tls_server **server);

/* Would clients who connect for this name (ptr NULL: for none) be asked for a certificate? Threads: any. */
bool tls_server_asks(const struct tls_server *server, struct slice name, bool *is_required);
/* Is the host under another policy than the name that the connection was made for? See
 * tls_host_is_misdirected(). Threads: any. */
bool tls_server_parts(const struct tls_server *server, struct slice name, struct slice host);

/* A new SSL of the listener; NULL: no memory. Threads: any. */
struct ssl_st *tls_server_open(struct tls_server *server);

#endif
