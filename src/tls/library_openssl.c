/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL 3.0 and later, as Debian has it: the library that the others are compared with. A context holds a
 * certificate of each kind and chooses by itself; tickets are sealed through its providers, whose ciphers are
 * looked up once because that takes locks and time. */
#include "tls/library_internal.h"

#include "core/check.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <pthread.h>

const char tls_library_name[] = "OpenSSL";

const char *tls_library_version(void)
{
    return OpenSSL_version(OPENSSL_VERSION);
}

const bool library_has_one_cert = false;

static const char default_ciphers[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                                      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                                      "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char default_suites[] =
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

iso_err library_set_ciphers(SSL_CTX *ctx, const char *ciphers, struct tls_fault *fault)
{
    /* A client that prefers ChaCha20 has no AES in hardware. */
    SSL_CTX_set_options(ctx, SSL_OP_PRIORITIZE_CHACHA);
    if (SSL_CTX_set_cipher_list(ctx, ciphers ? ciphers : default_ciphers))
        return ISO_OK;
    ERR_clear_error();
    return tls_fail(fault, "ciphers", "is \"%s\", expected a list in which this OpenSSL knows a cipher",
                    ciphers);
}

iso_err library_set_suites(SSL_CTX *ctx, const char *suites, struct tls_fault *fault)
{
    if (SSL_CTX_set_ciphersuites(ctx, suites ? suites : default_suites))
        return ISO_OK;
    ERR_clear_error();
    return tls_fail(fault, "ciphersuites",
                    "is \"%s\", expected names that this OpenSSL knows, such as TLS_AES_128_GCM_SHA256",
                    suites);
}

static int on_staple(SSL *ssl, void *arg)
{
    X509 *shown = SSL_get_certificate(ssl);
    const struct library_staple *all = arg, *staple = &all[TLS_CERT_OTHER];
    if (shown)
        staple = &all[tls_kind_of(X509_get0_pubkey(shown))];
    unsigned char *copy = staple->data ? OPENSSL_memdup(staple->data, staple->len) : NULL;
    if (!copy)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)staple->len);
    return SSL_TLSEXT_ERR_OK;
}

void library_use_staples(SSL_CTX *ctx, const struct library_staple *all, enum tls_cert_kind kind)
{
    SSL_CTX_set_tlsext_status_cb(ctx, on_staple);
    SSL_CTX_set_tlsext_status_arg(ctx, (void *)all);
}

/* ---- tickets ---- */

static pthread_once_t ciphers_once = PTHREAD_ONCE_INIT;
static EVP_CIPHER *aes_128, *aes_256; /* set once; until the process ends */

static void fetch_ciphers(void)
{
    aes_128 = EVP_CIPHER_fetch(NULL, "AES-128-CBC", NULL);
    aes_256 = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    iso_assert(aes_128 && aes_256);
}

static bool set_mac(EVP_MAC_CTX *mac, const struct ticket_key *key)
{
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->hmac, key->is_short ? 16 : 32),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"sha256", 0),
        OSSL_PARAM_construct_end()};
    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

/* Of a ticket that was accepted, 2 asks for a new one. With TLS 1.3 one always follows, as clients use each
 * once (RFC 8446 C.4). */
static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int is_making)
{
    bool is_old = false;
    const struct ticket_key *key =
        is_making ? tls_ticket_key_now(ssl) : tls_ticket_key_find(ssl, name, &is_old);
    if (!key)
        return 0;
    const EVP_CIPHER *aes = key->is_short ? aes_128 : aes_256;
    if (!is_making)
        return set_mac(mac, key) && EVP_DecryptInit_ex(cipher, aes, NULL, key->aes, iv)
                   ? 1 + (is_old || SSL_version(ssl) == TLS1_3_VERSION)
                   : -1;
    if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(aes)) != 1)
        return -1;
    memcpy(name, key->name, TICKET_NAME_BYTES);
    return EVP_EncryptInit_ex(cipher, aes, NULL, key->aes, iv) && set_mac(mac, key) ? 1 : -1;
}

void library_use_tickets(SSL_CTX *ctx)
{
    pthread_once(&ciphers_once, fetch_ciphers);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
}

/* ---- hello ---- */

static int on_hello(SSL *ssl, int *alert, void *arg)
{
    struct library_hello hello = {.own = NULL};
    const unsigned char *data;
    size_t len;
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &len))
        hello.server_name = slice_of((const char *)data, len);
    return tls_on_hello(ssl, &hello) ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_ERROR;
}

void library_use_hello(SSL_CTX *ctx)
{
    SSL_CTX_set_client_hello_cb(ctx, on_hello, NULL);
}

/* ---- memory ---- */

static struct library_memory memory; /* set once, before threads */

static void *take(size_t size, const char *file, int line)
{
    return memory.take(size);
}

static void *resize(void *data, size_t size, const char *file, int line)
{
    return memory.resize(data, size);
}

static void give(void *data, const char *file, int line)
{
    memory.give(data);
}

void library_use_memory(const struct library_memory *functions)
{
    memory = *functions;
    (void)!CRYPTO_set_mem_functions(take, resize, give);
}

void library_end_thread(void)
{
    OPENSSL_thread_stop();
}
