/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/server.h"

#include "tls/cert.h"
#include "tls/names.h"
#include "tls/tickets.h"
#include "tls/tls_conn.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <stdlib.h>

enum { SESSION_S = TICKET_EPOCH_S, ALPN_BYTES_MAX = 256, SESSIONS_CACHED = 1024 };

/* A context for the certificates that share a set of names; at most one of each kind. */
struct tls_entry {
    SSL_CTX *ctx;                                 /* owns */
    const struct tls_cert *certs[TLS_CERT_KINDS]; /* while being made */
    uint32_t policy;                              /* equal numbers, equal policies */
    unsigned char session_context[32];            /* binds sessions to listener, certificates and policy */
    unsigned char *ocsp[TLS_CERT_KINDS];          /* owns */
    size_t ocsp_len[TLS_CERT_KINDS];
};

struct tls_server {
    /* set once before publishing */
    struct tls_entry *entries; /* owns */
    uint32_t n_entries;
    struct tls_names names;      /* to indexes of entries */
    struct tls_policy *policies; /* while being made */
    uint32_t n_policies;
    unsigned char alpn[ALPN_BYTES_MAX];
    unsigned alpn_len;
    struct ticket_files tickets;
    EVP_CIPHER *aes_128, *aes_256; /* owns; of tickets: looking them up by name takes locks and time */
    /* any thread: atomic, acq_rel */
    _Atomic uint32_t refs;
};

static const char ciphers[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                              "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                              "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char ciphers_13[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

static const char groups[] = "X25519:P-256:P-384";

static iso_err refuse_list(struct tls_fault *fault, const char *key, const char *text, const char *expected)
{
    ERR_clear_error();
    return tls_fail(fault, key, "is \"%s\", expected %s", text, expected);
}

static iso_err set_ciphers(SSL_CTX *ctx, const struct tls_server_options *options, struct tls_fault *fault)
{
    const char *list = options->ciphers ? options->ciphers : ciphers;
    const char *suites = options->ciphersuites ? options->ciphersuites : ciphers_13;
    const char *curves = options->groups ? options->groups : groups;
    if (!SSL_CTX_set_cipher_list(ctx, list))
        return refuse_list(fault, "ciphers", list, "a list in which this OpenSSL knows a cipher");
    if (!SSL_CTX_set_ciphersuites(ctx, suites))
        return refuse_list(fault, "ciphersuites", suites,
                           "names that this OpenSSL knows, such as TLS_AES_128_GCM_SHA256");
    if (!SSL_CTX_set1_groups_list(ctx, curves))
        return refuse_list(fault, "groups", curves, "names that this OpenSSL knows, such as X25519:P-256");
    return ISO_OK;
}

static int version_number(unsigned version)
{
    return version == 12 ? TLS1_2_VERSION : version == 13 ? TLS1_3_VERSION : 0;
}

/* ---- callbacks of a handshake, on a worker ---- */

/* The host name of the server_name extension (RFC 6066 3), or nothing when there is none or it is malformed,
 * which OpenSSL then finds by itself. */
static struct slice server_name(SSL *ssl)
{
    const unsigned char *data;
    size_t len;
    if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &data, &len) || len < 5)
        return (struct slice){0};
    size_t list = (size_t)data[0] << 8 | data[1], name = (size_t)data[3] << 8 | data[4];
    if (list != len - 2 || data[2] != TLSEXT_NAMETYPE_host_name || name != len - 5)
        return (struct slice){0};
    return slice_of((const char *)data + 5, name);
}

static int on_client_hello(SSL *ssl, int *alert, void *arg)
{
    struct tls_server *server = tls_conn_of(ssl)->server;
    uint32_t index = 0;
    tls_names_find(&server->names, server_name(ssl), &index);
    struct tls_entry *entry = &server->entries[index];
    tls_conn_of(ssl)->policy = entry->policy;
    if (SSL_get_SSL_CTX(ssl) != entry->ctx && !SSL_set_SSL_CTX(ssl, entry->ctx))
        return SSL_CLIENT_HELLO_ERROR;
    /* The context does not carry these over. */
    SSL_set_session_id_context(ssl, entry->session_context, sizeof(entry->session_context));
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(entry->ctx), NULL);
    SSL_set_min_proto_version(ssl, (int)SSL_CTX_get_min_proto_version(entry->ctx));
    SSL_set_max_proto_version(ssl, (int)SSL_CTX_get_max_proto_version(entry->ctx));
    return SSL_CLIENT_HELLO_SUCCESS;
}

static int on_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *offered,
                   unsigned offered_len, void *arg)
{
    const struct tls_server *server = tls_conn_of(ssl)->server;
    for (unsigned i = 0; i < server->alpn_len; i += 1 + server->alpn[i])
        for (unsigned j = 0; j < offered_len; j += 1 + offered[j])
            if (server->alpn[i] == offered[j] &&
                memcmp(server->alpn + i, offered + j, 1 + server->alpn[i]) == 0) {
                *out = server->alpn + i + 1;
                *out_len = server->alpn[i];
                return SSL_TLSEXT_ERR_OK;
            }
    return SSL_TLSEXT_ERR_ALERT_FATAL; /* RFC 7301 3.2 */
}

static bool set_mac(EVP_MAC_CTX *mac, const struct ticket_key *key)
{
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key->hmac, key->is_short ? 16 : 32),
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"sha256", 0),
        OSSL_PARAM_construct_end()};
    return EVP_MAC_CTX_set_params(mac, params) == 1;
}

static int on_ticket(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher,
                     EVP_MAC_CTX *mac, int is_making)
{
    struct tls_conn *tls = tls_conn_of(ssl);
    const struct ticket_chain *chain = tls_thread_tickets(tls->thread);
    const struct ticket_files *files = &tls->server->tickets;
    if (is_making) {
        const struct ticket_key *key = ticket_key_now(files, chain);
        const EVP_CIPHER *aes = key->is_short ? tls->server->aes_128 : tls->server->aes_256;
        if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(aes)) != 1)
            return -1;
        memcpy(name, key->name, TICKET_NAME_BYTES);
        return EVP_EncryptInit_ex(cipher, aes, NULL, key->aes, iv) && set_mac(mac, key) ? 1 : -1;
    }
    bool is_old;
    const struct ticket_key *key = ticket_key_find(files, chain, name, &is_old);
    if (!key)
        return 0;
    const EVP_CIPHER *aes = key->is_short ? tls->server->aes_128 : tls->server->aes_256;
    if (!set_mac(mac, key) || !EVP_DecryptInit_ex(cipher, aes, NULL, key->aes, iv))
        return -1;
    return is_old ? 2 : 1;
}

/* The answer of the certificate that is shown. */
static int on_staple(SSL *ssl, void *arg)
{
    const struct tls_entry *entry = arg;
    X509 *shown = SSL_get_certificate(ssl);
    enum tls_cert_kind kind = shown ? tls_kind_of(X509_get0_pubkey(shown)) : TLS_CERT_OTHER;
    unsigned char *copy = entry->ocsp[kind] ? OPENSSL_memdup(entry->ocsp[kind], entry->ocsp_len[kind]) : NULL;
    if (!copy)
        return SSL_TLSEXT_ERR_NOACK;
    SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)entry->ocsp_len[kind]);
    return SSL_TLSEXT_ERR_OK;
}

/* ---- making, on the control thread ---- */

static struct tls_policy policy_of(const struct tls_cert *cert, const struct tls_server_options *options)
{
    struct tls_policy policy = cert->policy, fallback = options->policy;
    if (!policy.has_auth) {
        policy.auth = fallback.auth;
        policy.ca_file = fallback.ca_file;
        policy.crl_file = fallback.crl_file;
    }
    if (!policy.min_version)
        policy.min_version = options->min_version;
    if (!policy.max_version)
        policy.max_version = options->max_version;
    return policy;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_policy(const struct tls_policy *a, const struct tls_policy *b)
{
    return a->auth == b->auth && same_text(a->ca_file, b->ca_file) && same_text(a->crl_file, b->crl_file) &&
           a->min_version == b->min_version && a->max_version == b->max_version;
}

/* What sessions are bound to. Files count by what they hold: with another authority or a new revocation list
 * a client has to show its certificate again. */
static void bind_sessions(struct tls_entry *entry, const struct tls_policy *policy, struct slice listener)
{
    EVP_MD_CTX *digest = EVP_MD_CTX_new();
    const char *files[] = {policy->ca_file, policy->crl_file};
    unsigned numbers[] = {policy->auth, policy->min_version, policy->max_version};
    iso_assert(digest && EVP_DigestInit_ex(digest, EVP_sha256(), NULL));
    EVP_DigestUpdate(digest, listener.ptr, listener.len);
    EVP_DigestUpdate(digest, numbers, sizeof(numbers));
    for (int kind = 0; kind < TLS_CERT_KINDS; kind++)
        if (entry->certs[kind])
            EVP_DigestUpdate(digest, entry->certs[kind]->name, strlen(entry->certs[kind]->name) + 1);
    for (size_t i = 0; i < iso_countof(files); i++) {
        size_t len = 0;
        unsigned char *data = files[i] ? tls_read_file(files[i], TLS_CA_BYTES_MAX, &len) : NULL;
        EVP_DigestUpdate(digest, &len, sizeof(len));
        if (data)
            EVP_DigestUpdate(digest, data, len);
        free(data);
    }
    EVP_DigestFinal_ex(digest, entry->session_context, NULL);
    EVP_MD_CTX_free(digest);
}

static iso_err set_clients(SSL_CTX *ctx, const struct tls_policy *policy, struct tls_fault *fault)
{
    if (policy->auth == TLS_AUTH_NONE)
        return ISO_OK;
    if (!policy->ca_file)
        return tls_fail(fault, "client_auth", "asks for certificates, but there is no client_ca_file");
    iso_err err = tls_load_ca(ctx, policy->ca_file, "client_ca_file", fault);
    if (!err && policy->crl_file)
        err = tls_load_crl(ctx, policy->crl_file, fault);
    if (err)
        return err;
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(policy->ca_file);
    if (!names)
        return tls_fail(fault, "client_ca_file", "no certificate in %s", policy->ca_file);
    SSL_CTX_set_client_CA_list(ctx, names);
    SSL_CTX_set_verify(
        ctx, SSL_VERIFY_PEER | (policy->auth == TLS_AUTH_REQUIRED ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0),
        NULL);
    return ISO_OK;
}

static iso_err add_cert(struct tls_entry *entry, const struct tls_cert *cert, struct tls_fault *fault)
{
    if (SSL_CTX_use_cert_and_key(entry->ctx, cert->leaf, cert->key, cert->chain, 1) != 1)
        return tls_fail(fault, "cert_file", "the certificate %s cannot be used", cert->name);
    if (cert->ocsp) {
        entry->ocsp[cert->kind] = OPENSSL_memdup(cert->ocsp, cert->ocsp_len);
        iso_assert(entry->ocsp[cert->kind] != NULL);
        entry->ocsp_len[cert->kind] = cert->ocsp_len;
    }
    return ISO_OK;
}

/* The number of a policy; those of one server are few. */
static uint32_t number_of(struct tls_server *server, const struct tls_policy *policy, struct tls_policy *seen)
{
    for (uint32_t i = 0; i < server->n_policies; i++)
        if (same_policy(&seen[i], policy))
            return i;
    seen[server->n_policies] = *policy;
    return server->n_policies++;
}

static iso_err make_entry(struct tls_server *server, struct tls_entry *entry,
                          const struct tls_server_options *options, struct tls_fault *fault)
{
    const struct tls_cert *first = NULL;
    struct tls_policy policy = {0};
    SSL_CTX *ctx = entry->ctx = SSL_CTX_new(TLS_server_method());
    iso_assert(ctx != NULL);
    for (int kind = 0; kind < TLS_CERT_KINDS; kind++) {
        const struct tls_cert *cert = entry->certs[kind];
        if (!cert)
            continue;
        struct tls_policy own = policy_of(cert, options);
        if (first && !same_policy(&own, &policy))
            return tls_fail(
                fault, "client_auth",
                "the certificates %s and %s share a name, so expected the same client_auth, files "
                "and versions",
                first->name, cert->name);
        first = cert;
        policy = own;
        iso_err err = add_cert(entry, cert, fault);
        if (err)
            return err;
    }
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
    /* Sessions are in tickets; the cache is for TLS 1.2 clients that take none. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(ctx, SESSIONS_CACHED);
    SSL_CTX_set_timeout(ctx, SESSION_S);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_min_proto_version(ctx, version_number(policy.min_version));
    SSL_CTX_set_max_proto_version(ctx, version_number(policy.max_version));
    SSL_CTX_set_client_hello_cb(ctx, on_client_hello, NULL);
    if (server->alpn_len)
        SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
    SSL_CTX_set_tlsext_ticket_key_evp_cb(ctx, on_ticket);
    SSL_CTX_set_tlsext_status_cb(ctx, on_staple);
    SSL_CTX_set_tlsext_status_arg(ctx, entry);
    if (set_ciphers(ctx, options, fault))
        return ISO_ERR_INVALID;
    entry->policy = number_of(server, &policy, server->policies);
    bind_sessions(entry, &policy, options->name);
    SSL_CTX_set_session_id_context(ctx, entry->session_context, sizeof(entry->session_context));
    return set_clients(ctx, &policy, fault);
}

/* The entry of these certificates, made when there is none yet. */
static iso_err entry_for(struct tls_server *server, const struct tls_cert *const *certs,
                         const struct tls_server_options *options, uint32_t *index, struct tls_fault *fault)
{
    for (*index = 0; *index < server->n_entries; ++*index)
        if (memcmp(server->entries[*index].certs, certs, sizeof(server->entries->certs)) == 0)
            return ISO_OK;
    struct tls_entry *entry = &server->entries[server->n_entries++];
    memcpy(entry->certs, certs, sizeof(entry->certs));
    return make_entry(server, entry, options, fault);
}

/* The certificates of a name, one of each kind, the first of the list each; `run` are all that have it, in
 * the list's order. */
static void choose(const struct tls_name *run, uint32_t n, const struct tls_server_options *options,
                   const struct tls_cert **certs)
{
    for (int kind = 0; kind < TLS_CERT_KINDS; kind++)
        certs[kind] = NULL;
    for (uint32_t i = n; i-- > 0;)
        certs[options->certs[run[i].index]->kind] = options->certs[run[i].index];
}

/* The default comes first: the list's first certificate and what shares its first name. */
static iso_err make_default(struct tls_server *server, const struct tls_names *all,
                            const struct tls_server_options *options, struct tls_fault *fault)
{
    const struct tls_cert *first = options->certs[0], *certs[TLS_CERT_KINDS] = {NULL};
    uint32_t index;
    for (uint32_t i = 0, n; first->n_names && i < all->n; i += n) {
        for (n = 1; i + n < all->n && slice_eq(all->all[i + n].text, all->all[i].text); n++)
            ;
        if (slice_eq(all->all[i].text, first->names[0]))
            choose(&all->all[i], n, options, certs);
    }
    certs[first->kind] = first;
    return entry_for(server, certs, options, &index, fault);
}

static iso_err make_entries(struct tls_server *server, const struct tls_server_options *options,
                            struct tls_fault *fault)
{
    struct tls_names all = {0};
    for (uint32_t i = 0; i < options->n_certs; i++)
        for (uint32_t j = 0; j < options->certs[i]->n_names; j++)
            tls_names_add(&all, options->certs[i]->names[j], i);
    tls_names_sort(&all);
    /* Never moved: contexts point to their entries. */
    server->entries = calloc(all.n + 1, sizeof(*server->entries));
    server->policies = calloc(all.n + 1, sizeof(*server->policies));
    iso_assert(server->entries && server->policies);
    iso_err err = make_default(server, &all, options, fault);
    for (uint32_t i = 0, n; i < all.n && !err; i += n) {
        const struct tls_cert *certs[TLS_CERT_KINDS];
        uint32_t index;
        for (n = 1; i + n < all.n && slice_eq(all.all[i + n].text, all.all[i].text); n++)
            ;
        choose(&all.all[i], n, options, certs);
        err = entry_for(server, certs, options, &index, fault);
        if (!err)
            tls_names_add(&server->names, all.all[i].text, index);
    }
    tls_names_sort(&server->names);
    tls_names_fini(&all);
    free(server->policies);
    server->policies = NULL;
    return err;
}

static iso_err set_alpn(struct tls_server *server, const struct tls_server_options *options,
                        struct tls_fault *fault)
{
    for (uint32_t i = 0; i < options->n_alpn; i++) {
        struct slice name = options->alpn[i];
        if (name.len == 0 || name.len > 255 || server->alpn_len + 1 + name.len > ALPN_BYTES_MAX)
            return tls_fail(fault, "alpn", "\"%.*s\" is empty or one too many", SLICE_ARG(name));
        server->alpn[server->alpn_len++] = (unsigned char)name.len;
        memcpy(server->alpn + server->alpn_len, name.ptr, name.len);
        server->alpn_len += (unsigned)name.len;
    }
    return ISO_OK;
}

static void free_server(struct tls_server *server)
{
    for (uint32_t i = 0; i < server->n_entries; i++) {
        SSL_CTX_free(server->entries[i].ctx);
        for (int kind = 0; kind < TLS_CERT_KINDS; kind++)
            OPENSSL_free(server->entries[i].ocsp[kind]);
    }
    free(server->entries);
    tls_names_fini(&server->names);
    OPENSSL_cleanse(&server->tickets, sizeof(server->tickets));
    EVP_CIPHER_free(server->aes_128);
    EVP_CIPHER_free(server->aes_256);
    free(server);
}

iso_err tls_server_new(const struct tls_server_options *options, struct tls_server **out,
                       struct tls_fault *fault)
{
    struct tls_server *server = calloc(1, sizeof(*server));
    iso_assert(server && options->n_certs > 0);
    atomic_init(&server->refs, 1);
    server->aes_128 = EVP_CIPHER_fetch(NULL, "AES-128-CBC", NULL);
    server->aes_256 = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
    iso_assert(server->aes_128 && server->aes_256);
    iso_err err = set_alpn(server, options, fault);
    for (uint32_t i = 0; i < options->n_ticket_files && !err; i++)
        err = ticket_file_load(&server->tickets, options->ticket_files[i], fault);
    if (!err)
        err = make_entries(server, options, fault);
    if (err) {
        free_server(server);
        return err;
    }
    for (uint32_t i = 0; i < server->n_entries; i++)
        memset(server->entries[i].certs, 0, sizeof(server->entries[i].certs)); /* were the caller's */
    *out = server;
    return ISO_OK;
}

struct tls_server *tls_server_ref(struct tls_server *server)
{
    atomic_fetch_add_explicit(&server->refs, 1, memory_order_relaxed);
    return server;
}

void tls_server_unref(struct tls_server **given)
{
    struct tls_server *server = *given;
    *given = NULL;
    if (atomic_fetch_sub_explicit(&server->refs, 1, memory_order_acq_rel) == 1)
        free_server(server);
}

bool tls_host_is_misdirected(const struct conn *conn, struct slice host)
{
    const struct tls_conn *tls = conn->layer_state;
    uint32_t index = 0;
    if (tls->server->n_policies < 2)
        return false;
    tls_names_find(&tls->server->names, host, &index);
    return tls->server->entries[index].policy != tls->policy;
}

SSL *tls_server_open(struct tls_server *server)
{
    return SSL_new(server->entries[0].ctx);
}
