/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/client.h"

#include "tls/cert.h"
#include "tls/library.h"
#include "tls/tls_conn.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdlib.h>

struct tls_client {
    /* set once before publishing */
    SSL_CTX *ctx; /* owns */
    char *sni;    /* owns; NULL: none */
    bool verify;
    uint64_t id;
    /* any thread: atomic, acq_rel */
    _Atomic uint32_t refs;
};

static const char ciphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

/* A session, or a better one, came from the target: it takes the place of the last. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct tls_conn *tls = tls_conn_of(ssl);
    if (!tls->slot)
        return 0;
    SSL_SESSION_free(tls->slot->session);
    *tls->slot = (struct tls_session_slot){session, tls->client->id};
    return 1; /* the reference is ours now */
}

void tls_session_fini(struct tls_session_slot *slot)
{
    SSL_SESSION_free(slot->session);
    *slot = (struct tls_session_slot){0};
}

static void digest_text(EVP_MD_CTX *digest, const char *text)
{
    EVP_DigestUpdate(digest, text ? "+" : "-", 1);
    if (text)
        EVP_DigestUpdate(digest, text, strlen(text) + 1);
}

static void digest_file(EVP_MD_CTX *digest, const char *path)
{
    size_t len = 0;
    unsigned char *data = path ? tls_read_file(path, TLS_CA_BYTES_MAX, &len) : NULL;
    EVP_DigestUpdate(digest, &len, sizeof(len));
    if (data)
        EVP_DigestUpdate(digest, data, len);
    free(data);
}

static uint64_t make_id(const struct tls_client_options *options)
{
    unsigned char out[EVP_MAX_MD_SIZE];
    uint64_t id;
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    iso_assert(digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL));
    EVP_DigestUpdate(digest, options->verify ? "v" : "n", 1);
    digest_text(digest, options->ca_file);
    digest_text(digest, options->sni);
    for (uint32_t i = 0; i < options->n_alpn; i++)
        digest_text(digest, options->alpn[i].ptr);
    digest_file(digest, options->ca_file);
    digest_file(digest, options->cert_file);
    digest_file(digest, options->key_file);
    EVP_DigestFinal_ex(digest, out, NULL);
    EVP_MD_CTX_free(digest);
    memcpy(&id, out, sizeof(id));
    return id ? id : 1;
}

static iso_err set_own(SSL_CTX *ctx, const struct tls_client_options *options, struct tls_fault *fault)
{
    struct tls_cert *cert;
    if (!options->cert_file)
        return options->key_file ? tls_fail(fault, "key_file", "stands without cert_file") : ISO_OK;
    const struct tls_cert_files files = {
        .name = "", .cert_file = options->cert_file, .key_file = options->key_file};
    iso_err err = tls_cert_load(&files, &cert, fault);
    if (err)
        return err;
    if (SSL_CTX_use_certificate(ctx, cert->leaf) != 1 || SSL_CTX_use_PrivateKey(ctx, cert->key) != 1 ||
        SSL_CTX_set1_chain(ctx, cert->chain) != 1)
        err = tls_fail(fault, "cert_file", "the certificate cannot be used");
    tls_cert_free(cert);
    return err;
}

static bool offer_alpn(SSL_CTX *ctx, const struct tls_client_options *options)
{
    unsigned char wire[256];
    unsigned n = 0;
    for (uint32_t i = 0; i < options->n_alpn; i++) {
        struct slice name = options->alpn[i];
        if (name.len == 0 || name.len > 255 || sizeof(wire) - n < name.len + 1)
            return false;
        wire[n++] = (unsigned char)name.len;
        memcpy(wire + n, name.ptr, name.len);
        n += (unsigned)name.len;
    }
    return SSL_CTX_set_alpn_protos(ctx, wire, n) == 0;
}

static iso_err set_up(SSL_CTX *ctx, const struct tls_client_options *options, struct tls_fault *fault)
{
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    if (!SSL_CTX_set_cipher_list(ctx, ciphers))
        return tls_fail(fault, "tls", "this %s lacks the ciphers that are needed", tls_library_name);
    if (options->n_alpn && !offer_alpn(ctx, options))
        return tls_fail(fault, "alpn", "cannot be offered");
    if (!options->verify)
        return ISO_OK;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    if (options->ca_file)
        return tls_load_ca(ctx, options->ca_file, "ca_file", fault);
    return SSL_CTX_set_default_verify_paths(ctx) == 1
               ? ISO_OK
               : tls_fail(fault, "ca_file", "is not set, and the system's authorities cannot be read");
}

iso_err tls_client_new(const struct tls_client_options *options, struct tls_client **out,
                       struct tls_fault *fault)
{
    struct tls_client *client = calloc(1, sizeof(*client));
    iso_assert(client != NULL);
    atomic_init(&client->refs, 1);
    client->ctx = SSL_CTX_new(TLS_client_method());
    client->sni = options->sni ? strdup(options->sni) : NULL;
    iso_assert(client->ctx && (client->sni || !options->sni));
    client->verify = options->verify;
    client->id = make_id(options);
    iso_err err = set_up(client->ctx, options, fault);
    if (!err)
        err = set_own(client->ctx, options, fault);
    if (err) {
        tls_client_unref(&client);
        return err;
    }
    *out = client;
    return ISO_OK;
}

struct tls_client *tls_client_ref(struct tls_client *client)
{
    atomic_fetch_add_explicit(&client->refs, 1, memory_order_relaxed);
    return client;
}

void tls_client_unref(struct tls_client **given)
{
    struct tls_client *client = *given;
    *given = NULL;
    if (atomic_fetch_sub_explicit(&client->refs, 1, memory_order_acq_rel) > 1)
        return;
    SSL_CTX_free(client->ctx);
    free(client->sni);
    free(client);
}

uint64_t tls_client_id(const struct tls_client *client)
{
    return client ? client->id : 0;
}

static const char no_name[] = "name.of.target.unset.invalid";

/* The name or address that the target's certificate must have. A target with neither passes no verification.
 */
static bool expect_name(const struct tls_client *client, SSL *ssl, const struct ip_addr *ip)
{
    X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
    if (client->sni && !SSL_set_tlsext_host_name(ssl, client->sni))
        return false;
    if (!client->verify)
        return true;
    if (client->sni)
        return X509_VERIFY_PARAM_set1_host(param, client->sni, strlen(client->sni)) == 1;
    if (ip->family)
        return X509_VERIFY_PARAM_set1_ip(param, ip->bytes, ip->family == 4 ? 4 : 16) == 1;
    return X509_VERIFY_PARAM_set1_host(param, no_name, sizeof(no_name) - 1) == 1;
}

bool tls_connect(struct tls_thread *thread, struct conn *conn, struct tls_client *client,
                 const struct ip_addr *ip, struct tls_session_slot *slot)
{
    SSL *ssl = SSL_new(client->ctx);
    if (!ssl || !expect_name(client, ssl, ip))
        goto fail;
    if (slot && slot->session && slot->client_id == client->id && SSL_SESSION_is_resumable(slot->session) &&
        !SSL_set_session(ssl, slot->session))
        goto fail;
    struct tls_conn *tls = tls_conn_attach(thread, conn, ssl);
    if (!tls)
        goto fail;
    SSL_set_connect_state(ssl);
    tls->client = tls_client_ref(client);
    tls->slot = slot;
    return true;
fail:
    SSL_free(ssl);
    ERR_clear_error();
    return false;
}

void tls_offer_http1(struct conn *conn)
{
    static const unsigned char http1[] = "\x08http/1.1";
    struct tls_conn *tls = conn->layer_state;
    if (SSL_set_alpn_protos(tls->ssl, http1, sizeof(http1) - 1))
        ERR_clear_error(); /* no memory: then the target may choose HTTP/2, which is seen */
}
