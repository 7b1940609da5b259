/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/jws.h"

#include "core/check.h"

#include <stdlib.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/x509.h>

enum { SECRET_LEAST = 32, P256_BYTES = 32, RSA_BITS_LEAST = 2048, RSA_BYTES_MOST = 1024, MAC_BYTES = 32 };

enum kind { HS256, RS256, ES256 };

struct jws_key {
    enum kind kind;
    EVP_PKEY *public_key; /* owns; NULL with HS256 */
    size_t secret_len;
    unsigned char secret[];
};

static struct jws_key *make(enum kind kind, struct slice secret)
{
    struct jws_key *key = calloc(1, sizeof(*key) + secret.len);
    iso_assert(key != NULL);
    key->kind = kind;
    key->secret_len = secret.len;
    if (secret.len)
        memcpy(key->secret, secret.ptr, secret.len);
    return key;
}

iso_err jws_key_hmac(struct slice secret, struct jws_key **out)
{
    if (secret.len < SECRET_LEAST) /* RFC 7518 3.2 */
        return ISO_ERR_INVALID;
    *out = make(HS256, secret);
    return ISO_OK;
}

void jws_key_free(struct jws_key *key)
{
    if (!key)
        return;
    EVP_PKEY_free(key->public_key);
    OPENSSL_cleanse(key->secret, key->secret_len);
    free(key);
}

/* DER is written from its end: what is inside must be known before its length is. */
struct der {
    unsigned char *at, *begin;
};

static void der_bytes(struct der *der, const void *bytes, size_t n)
{
    iso_assert((size_t)(der->at - der->begin) >= n);
    der->at -= n;
    memcpy(der->at, bytes, n);
}

/* Tag and length before what reaches up to `end`. */
static void der_wrap(struct der *der, unsigned char tag, const unsigned char *end)
{
    size_t n = (size_t)(end - der->at);
    unsigned char head[4] = {tag};
    size_t used = 1;
    if (n < 0x80) {
        head[used++] = (unsigned char)n;
    } else if (n < 0x100) {
        head[used++] = 0x81;
        head[used++] = (unsigned char)n;
    } else {
        head[used++] = 0x82;
        head[used++] = (unsigned char)(n >> 8);
        head[used++] = (unsigned char)n;
    }
    der_bytes(der, head, used);
}

/* A number that is not negative. */
static void der_number(struct der *der, struct slice number)
{
    const unsigned char *end = der->at;
    while (number.len > 1 && number.ptr[0] == 0)
        number = slice_of(number.ptr + 1, number.len - 1);
    der_bytes(der, number.ptr, number.len);
    if ((unsigned char)number.ptr[0] & 0x80)
        der_bytes(der, "", 1);
    der_wrap(der, 0x02, end);
}

static iso_err make_public(enum kind kind, const unsigned char *der, size_t len, struct jws_key **out)
{
    const unsigned char *at = der;
    EVP_PKEY *public_key = d2i_PUBKEY(NULL, &at, (long)len);
    if (!public_key)
        return ISO_ERR_INVALID;
    if (kind == RS256 && EVP_PKEY_bits(public_key) < RSA_BITS_LEAST) {
        EVP_PKEY_free(public_key);
        return ISO_ERR_INVALID;
    }
    *out = make(kind, (struct slice){0});
    (*out)->public_key = public_key;
    return ISO_OK;
}

iso_err jws_key_rsa(struct slice modulus, struct slice exponent, struct jws_key **out)
{
    static const unsigned char algorithm[] = {0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86,
                                              0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00};
    unsigned char room[2 * RSA_BYTES_MOST + 64], *end = room + sizeof(room);
    struct der der = {end, room};
    if (modulus.len == 0 || exponent.len == 0 || modulus.len > RSA_BYTES_MOST ||
        exponent.len > RSA_BYTES_MOST)
        return ISO_ERR_INVALID;
    der_number(&der, exponent);
    der_number(&der, modulus);
    der_wrap(&der, 0x30, end);
    der_bytes(&der, "", 1); /* no bits of the last byte are unused */
    der_wrap(&der, 0x03, end);
    der_bytes(&der, algorithm, sizeof(algorithm));
    der_wrap(&der, 0x30, end);
    return make_public(RS256, der.at, (size_t)(end - der.at), out);
}

iso_err jws_key_p256(struct slice x, struct slice y, struct jws_key **out)
{
    /* SubjectPublicKeyInfo of id-ecPublicKey on prime256v1, up to the uncompressed point. */
    static const unsigned char head[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
                                         0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
                                         0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};
    unsigned char der[sizeof(head) + 2 * P256_BYTES];
    if (x.len != P256_BYTES || y.len != P256_BYTES)
        return ISO_ERR_INVALID;
    memcpy(der, head, sizeof(head));
    memcpy(der + sizeof(head), x.ptr, P256_BYTES);
    memcpy(der + sizeof(head) + P256_BYTES, y.ptr, P256_BYTES);
    return make_public(ES256, der, sizeof(der), out);
}

struct slice jws_key_algorithm(const struct jws_key *key)
{
    static const char *const names[] = {[HS256] = "HS256", [RS256] = "RS256", [ES256] = "ES256"};
    return slice_str(names[key->kind]);
}

static bool verify_mac(const struct jws_key *key, struct slice input, struct slice signature)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    return HMAC(EVP_sha256(), key->secret, (int)key->secret_len, (const unsigned char *)input.ptr, input.len,
                mac, &len) &&
           len == MAC_BYTES && signature.len == len && CRYPTO_memcmp(mac, signature.ptr, len) == 0;
}

static bool verify_public(const struct jws_key *key, struct slice input, const unsigned char *signature,
                          size_t len)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->public_key) == 1 &&
              EVP_DigestVerify(context, signature, len, (const unsigned char *)input.ptr, input.len) == 1;
    EVP_MD_CTX_free(context);
    return ok;
}

/* Two numbers of 32 bytes (RFC 7518 3.4), which OpenSSL wants as DER. */
static bool verify_p256(const struct jws_key *key, struct slice input, struct slice signature)
{
    unsigned char room[2 * P256_BYTES + 16], *end = room + sizeof(room);
    struct der der = {end, room};
    if (signature.len != 2 * P256_BYTES)
        return false;
    der_number(&der, slice_of(signature.ptr + P256_BYTES, P256_BYTES));
    der_number(&der, slice_of(signature.ptr, P256_BYTES));
    der_wrap(&der, 0x30, end);
    return verify_public(key, input, der.at, (size_t)(end - der.at));
}

bool jws_verify(const struct jws_key *key, struct slice input, struct slice signature)
{
    switch (key->kind) {
    case HS256:
        return verify_mac(key, input, signature);
    case RS256:
        return verify_public(key, input, (const unsigned char *)signature.ptr, signature.len);
    case ES256:
        return verify_p256(key, input, signature);
    }
    return false;
}
