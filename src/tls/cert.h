/* SPDX-License-Identifier: Apache-2.0 */
/* What a loaded certificate holds, for the files of tls/ that make contexts of it. */
#ifndef ISOBAR_TLS_CERT_H
#define ISOBAR_TLS_CERT_H

#include "tls/certs.h"

#include <openssl/ssl.h>

struct tls_cert {
    char *name; /* owns: as configured */
    X509 *leaf;
    STACK_OF(X509) * chain;
    EVP_PKEY *key;
    struct slice *names; /* owns, and what they point to */
    uint32_t n_names;
    enum tls_cert_kind kind;
    unsigned char *ocsp; /* owns; NULL: nothing to staple */
    size_t ocsp_len;
    struct tls_policy policy; /* owns its texts */
};

/* The whole of a file, at most `most` bytes; NULL when it cannot be read (errno). Owns: the caller, by
 * free().
 */
unsigned char *tls_read_file(const char *path, size_t most, size_t *len);

enum { TLS_CA_BYTES_MAX = 16 << 20 };

enum tls_cert_kind tls_kind_of(EVP_PKEY *key);

/* Adds the authorities, or the revocation lists, of a PEM file to what a context verifies by. */
iso_err tls_load_ca(SSL_CTX *ctx, const char *path, const char *key, struct tls_fault *fault) ISO_MUST_USE;
iso_err tls_load_crl(SSL_CTX *ctx, const char *path, struct tls_fault *fault) ISO_MUST_USE;

#endif
