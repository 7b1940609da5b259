/* SPDX-License-Identifier: Apache-2.0 */
/* Who the peer is, from its certificate: put into words once a connection, when they are asked for. */
#include "tls/tls_conn.h"

#include "core/check.h"

#include <openssl/x509.h>
#include <stdlib.h>

enum { SHA256_BYTES = 32, SUBJECT_BYTES_MAX = 1024 };

/* Escapes everything but printable ASCII, so that it can be a field's value. Empty when it is too long: a
 * part of a name is another name. */
static size_t print_subject(X509 *cert, char *out)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text;
    iso_assert(bio != NULL);
    X509_NAME_print_ex(bio, X509_get_subject_name(cert), 0, XN_FLAG_RFC2253);
    long len = BIO_get_mem_data(bio, &text);
    if (len < 0 || len > SUBJECT_BYTES_MAX)
        len = 0;
    memcpy(out, text, (size_t)len);
    BIO_free(bio);
    return (size_t)len;
}

/* The digits, then the subject, in one piece that ends in NUL. */
static char *describe(X509 *cert)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len;
    char *text = malloc(2 * SHA256_BYTES + SUBJECT_BYTES_MAX + 1);
    if (!text || X509_digest(cert, EVP_sha256(), digest, &len) != 1) {
        free(text);
        return NULL;
    }
    for (unsigned i = 0; i < SHA256_BYTES; i++) {
        text[2 * i] = digits[digest[i] >> 4];
        text[2 * i + 1] = digits[digest[i] & 15];
    }
    text[2 * SHA256_BYTES + print_subject(cert, text + 2 * SHA256_BYTES)] = '\0';
    return text;
}

bool tls_peer_subject(const struct conn *conn, struct slice *subject, struct slice *sha256)
{
    struct tls_conn *tls = conn->layer_state;
    X509 *cert = tls->subject ? NULL : SSL_get_peer_certificate(tls->ssl);
    if (cert && SSL_get_verify_result(tls->ssl) == X509_V_OK)
        tls->subject = describe(cert);
    X509_free(cert);
    if (!tls->subject)
        return false;
    *sha256 = slice_of(tls->subject, 2 * SHA256_BYTES);
    *subject = slice_str(tls->subject + 2 * SHA256_BYTES);
    return true;
}
