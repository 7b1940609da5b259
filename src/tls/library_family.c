/* SPDX-License-Identifier: Apache-2.0 */
/* What BoringSSL and AWS-LC, which grew from it, share and OpenSSL does otherwise.
 *
 * A context holds one certificate, so which kind a client gets is decided here, from its hello. Ciphers may
 * stand in groups that are equal to us ([A|B]), where the client's order counts: that is how a client without
 * AES in hardware gets ChaCha20. A staple belongs to the context. Tickets are sealed with HMAC_CTX. */
#include "tls/library_internal.h"

#include "core/check.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdlib.h>

const bool library_has_one_cert = true;

static const char default_ciphers[] = "[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]:"
                                      "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]:"
                                      "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384";

/* Does the library know what the list adds? What it takes away ("!aNULL") need not be known. */
static bool knows_all(SSL_CTX *ctx, const char *list)
{
    char *added = malloc(strlen(list) + 1);
    size_t n = 0;
    iso_assert(added != NULL);
    for (const char *at = list, *end; *at; at = end + (*end != '\0')) {
        end = at + strcspn(at, ":, ;");
        if (end == at || *at == '!' || *at == '-')
            continue;
        if (n > 0)
            added[n++] = ':';
        memcpy(added + n, at, (size_t)(end - at));
        n += (size_t)(end - at);
    }
    added[n] = '\0';
    bool ok = SSL_CTX_set_strict_cipher_list(ctx, added);
    free(added);
    return ok;
}

/* Strict: OpenSSL's users expect some ciphers that the family has not (DHE, CCM, Camellia), and a list that
 * lost half of its names would not be what was asked for. */
iso_err library_set_ciphers(SSL_CTX *ctx, const char *ciphers, struct tls_fault *fault)
{
    if ((!ciphers || knows_all(ctx, ciphers)) &&
        SSL_CTX_set_cipher_list(ctx, ciphers ? ciphers : default_ciphers))
        return ISO_OK;
    ERR_clear_error();
    return tls_fail(fault, "ciphers", "is \"%s\", expected a list of names that %s knows, all of them",
                    ciphers, tls_library_name);
}

void library_use_staples(SSL_CTX *ctx, const struct library_staple *all, enum tls_cert_kind kind)
{
    if (all[kind].data)
        iso_assert(SSL_CTX_set_ocsp_response(ctx, all[kind].data, all[kind].len));
}

/* ---- tickets ---- */

static bool set_keys(const struct ticket_key *key, EVP_CIPHER_CTX *cipher, const unsigned char *iv,
                     HMAC_CTX *mac, int is_making)
{
    const EVP_CIPHER *aes = key->is_short ? EVP_aes_128_cbc() : EVP_aes_256_cbc();
    return EVP_CipherInit_ex(cipher, aes, NULL, key->aes, iv, is_making) &&
           HMAC_Init_ex(mac, key->hmac, key->is_short ? 16 : 32, EVP_sha256(), NULL);
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, HMAC_CTX *mac,
                     int is_making)
{
    bool is_old = false;
    const struct ticket_key *key =
        is_making ? tls_ticket_key_now(ssl) : tls_ticket_key_find(ssl, name, &is_old);
    if (!key)
        return 0;
    if (is_making) {
        if (RAND_bytes(iv, EVP_CIPHER_iv_length(EVP_aes_256_cbc())) != 1)
            return -1;
        memcpy(name, key->name, TICKET_NAME_BYTES);
    }
    return set_keys(key, cipher, iv, mac, is_making) ? 1 + is_old : -1;
}

void library_use_tickets(SSL_CTX *ctx)
{
    SSL_CTX_set_tlsext_ticket_key_cb(ctx, on_ticket);
}

/* ---- hello ---- */

/* Is the number in a list of numbers of two bytes? */
static bool lists(const unsigned char *list, size_t len, unsigned number)
{
    for (size_t i = 0; i + 1 < len; i += 2)
        if ((unsigned)(list[i] << 8 | list[i + 1]) == number)
            return true;
    return false;
}

/* The extension's list behind a length of `n_bytes`; empty when it is not there or malformed, which the
 * library then finds by itself. */
static struct slice list_of(const SSL_CLIENT_HELLO *hello, uint16_t type, size_t n_bytes)
{
    const unsigned char *data;
    size_t len, listed = 0;
    if (!SSL_early_callback_ctx_extension_get(hello, type, &data, &len) || len < n_bytes)
        return (struct slice){0};
    for (size_t i = 0; i < n_bytes; i++)
        listed = listed << 8 | data[i];
    return listed == len - n_bytes ? slice_of((const char *)data + n_bytes, listed) : (struct slice){0};
}

/* The scheme and the group that belong to a key on its curve (RFC 8446 4.2.3, 4.2.7). */
static bool numbers_of_curve(EVP_PKEY *key, unsigned *scheme, unsigned *group)
{
    const EC_KEY *ec = EVP_PKEY_get0_EC_KEY(key);
    switch (ec ? EC_GROUP_get_curve_name(EC_KEY_get0_group(ec)) : NID_undef) {
    case NID_X9_62_prime256v1:
        *scheme = SSL_SIGN_ECDSA_SECP256R1_SHA256;
        *group = 23;
        return true;
    case NID_secp384r1:
        *scheme = SSL_SIGN_ECDSA_SECP384R1_SHA384;
        *group = 24;
        return true;
    case NID_secp521r1:
        *scheme = SSL_SIGN_ECDSA_SECP521R1_SHA512;
        *group = 25;
        return true;
    default:
        return false;
    }
}

/* Asked of ECDSA certificates only: of the others there is one kind, or RSA, which every client takes. With
 * TLS 1.2 a suite has to allow it, and a group the curve (RFC 8422 5.1). */
static bool takes_ecdsa(const struct library_hello *hello, SSL_CTX *ctx)
{
    static const unsigned suites[] = {0xc02b, 0xc02c, 0xcca9, 0xc023, 0xc024, 0xc009, 0xc00a};
    const SSL_CLIENT_HELLO *own = hello->own;
    unsigned scheme, group;
    if (!numbers_of_curve(SSL_CTX_get0_privatekey(ctx), &scheme, &group))
        return false;
    struct slice schemes = list_of(own, TLSEXT_TYPE_signature_algorithms, 2);
    if (!lists((const unsigned char *)schemes.ptr, schemes.len, scheme))
        return false;
    struct slice versions = list_of(own, TLSEXT_TYPE_supported_versions, 1);
    if (lists((const unsigned char *)versions.ptr, versions.len, TLS1_3_VERSION) &&
        SSL_CTX_get_max_proto_version(ctx) >= TLS1_3_VERSION)
        return true;
    struct slice groups = list_of(own, TLSEXT_TYPE_supported_groups, 2);
    if (!lists((const unsigned char *)groups.ptr, groups.len, group))
        return false;
    for (size_t i = 0; i < iso_countof(suites); i++)
        if (lists(own->cipher_suites, own->cipher_suites_len, suites[i]))
            return true;
    return false;
}

static enum ssl_select_cert_result_t on_hello(const SSL_CLIENT_HELLO *own)
{
    struct library_hello hello = {.takes_ecdsa = takes_ecdsa, .own = own};
    SSL_set_shed_handshake_config(own->ssl, 1); /* what only handshakes need is freed after this one */
    const unsigned char *data;
    size_t len;
    if (SSL_early_callback_ctx_extension_get(own, TLSEXT_TYPE_server_name, &data, &len))
        hello.server_name = slice_of((const char *)data, len);
    return tls_on_hello(own->ssl, &hello) ? ssl_select_cert_success : ssl_select_cert_error;
}

void library_use_hello(SSL_CTX *ctx)
{
    SSL_CTX_set_select_certificate_cb(ctx, on_hello);
}

/* ---- memory ---- */

void library_end_thread(void) {}
