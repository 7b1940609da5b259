/* SPDX-License-Identifier: Apache-2.0 */
/* A certificate with its chain and key, loaded from files and checked: what a listener shows for some names.
 * Read-only once loaded, so that any number of contexts share one. Threads: control. */
#ifndef ISOBAR_TLS_CERTS_H
#define ISOBAR_TLS_CERTS_H

#include "core/slice.h"
#include "tls/fault.h"

#include <stdint.h>

enum tls_auth { TLS_AUTH_NONE, TLS_AUTH_OPTIONAL, TLS_AUTH_REQUIRED };

/* Whether clients of a name must show a certificate, and what versions they may speak. */
struct tls_policy {
    bool has_auth; /* of a certificate: the three below are its own, not the listener's */
    enum tls_auth auth;
    const char *ca_file;               /* who may have signed it; NULL without auth */
    const char *crl_file;              /* NULL: none */
    unsigned min_version, max_version; /* 12, 13; 0: as the listener's */
};

/* As the configuration names them; texts end in NUL; NULL: not given. */
struct tls_cert_files {
    const char *name;
    const char *cert_file; /* PEM: the certificate, then its chain; NULL: it is in cert_pem */
    const char *key_file;  /* PEM, without a passphrase; NULL: with the certificate */
    const char *cert_pem;  /* the same as text, in place of the files; NULL: it is in cert_file */
    const char *key_pem;   /* NULL: with the certificate */
    const char *ocsp_file; /* DER: an answer to staple */
    struct tls_policy policy;
};

enum tls_cert_kind { TLS_CERT_RSA, TLS_CERT_EC, TLS_CERT_OTHER, TLS_CERT_KINDS };

struct tls_cert;

/* Reads and checks the files: the key fits the certificate (C-127). Owns: the caller, until tls_cert_free().
 */
iso_err tls_cert_load(const struct tls_cert_files *files, struct tls_cert **out,
                      struct tls_fault *fault) ISO_MUST_USE;
void tls_cert_free(struct tls_cert *cert);

/* Seconds since 1970. */
int64_t tls_cert_not_before_s(const struct tls_cert *cert);
int64_t tls_cert_not_after_s(const struct tls_cert *cert);
enum tls_cert_kind tls_cert_kind(const struct tls_cert *cert);
/* DNS names of its subject alternative names, in lower case ("*.example.com" too); without any the common
 * name. */
uint32_t tls_cert_names(const struct tls_cert *cert, const struct slice **names);

#endif
