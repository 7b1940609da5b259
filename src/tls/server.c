/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/server.h"

#include "tls/cert.h"
#include "tls/library_internal.h"
#include "tls/names.h"
#include "tls/tickets.h"
#include "tls/tls_conn.h"

#include <openssl/err.h>
#include <stdlib.h>

enum { SESSION_S = TICKET_EPOCH_S, ALPN_BYTES_MAX = 256, SESSIONS_CACHED = 1024 };

/* The certificates that share a set of names; at most one of each kind. */
struct tls_entry {
    SSL_CTX *contexts[TLS_CERT_KINDS];            /* owns; where a context holds several, one for all */
    SSL_CTX *any;                                 /* borrows: the first of them */
    const struct tls_cert *certs[TLS_CERT_KINDS]; /* while being made */
    uint32_t policy;                              /* equal numbers, equal policies */
    unsigned char session_context[32];            /* binds sessions to listener, certificates and policy */
    struct library_staple staples[TLS_CERT_KINDS];
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
    /* any thread: atomic, acq_rel */
    _Atomic uint32_t refs;
};

static const char groups[] = "X25519:P-256:P-384";

static iso_err set_lists(SSL_CTX *ctx, const struct tls_server_options *options, struct tls_fault *fault)
{
    const char *curves = options->groups ? options->groups : groups;
    iso_err err = library_set_ciphers(ctx, options->ciphers, fault);
    if (!err)
        err = library_set_suites(ctx, options->ciphersuites, fault);
    if (err || SSL_CTX_set1_curves_list(ctx, curves))
        return err;
    ERR_clear_error();
    return tls_fail(fault, "groups", "is \"%s\", expected names that this %s knows, such as X25519:P-256",
                    curves, tls_library_name);
}

static int version_number(unsigned version)
{
    return version == 12 ? TLS1_2_VERSION : version == 13 ? TLS1_3_VERSION : 0;
}

/* ---- callbacks of a handshake, on a worker ---- */

/* The host name of a server_name extension (RFC 6066 3), or nothing when there is none or it is malformed,
 * which the library then finds by itself. */
static struct slice host_name(struct slice extension)
{
    const unsigned char *data = (const unsigned char *)extension.ptr;
    if (extension.len < 5)
        return (struct slice){0};
    size_t list = (size_t)data[0] << 8 | data[1], name = (size_t)data[3] << 8 | data[4];
    if (list != extension.len - 2 || data[2] != TLSEXT_NAMETYPE_host_name || name != extension.len - 5)
        return (struct slice){0};
    return slice_of(extension.ptr + 5, name);
}

static SSL_CTX *choose_context(const struct tls_entry *entry, const struct library_hello *hello)
{
    SSL_CTX *ecdsa = entry->contexts[TLS_CERT_EC], *rsa = entry->contexts[TLS_CERT_RSA];
    if (!library_has_one_cert || !ecdsa || !rsa)
        return entry->any;
    return hello->takes_ecdsa(hello, ecdsa) ? ecdsa : rsa;
}

bool tls_on_hello(SSL *ssl, const struct library_hello *hello)
{
    struct tls_server *server = tls_conn_of(ssl)->server;
    uint32_t index = 0;
    tls_names_find(&server->names, host_name(hello->server_name), &index);
    struct tls_entry *entry = &server->entries[index];
    SSL_CTX *ctx = choose_context(entry, hello);
    tls_conn_of(ssl)->policy = entry->policy;
    if (SSL_get_SSL_CTX(ssl) != ctx && !SSL_set_SSL_CTX(ssl, ctx))
        return false;
    /* The context does not carry these over. */
    SSL_set_session_id_context(ssl, entry->session_context, sizeof(entry->session_context));
    SSL_set_verify(ssl, SSL_CTX_get_verify_mode(ctx), NULL);
    SSL_set_min_proto_version(ssl, SSL_CTX_get_min_proto_version(ctx));
    SSL_set_max_proto_version(ssl, SSL_CTX_get_max_proto_version(ctx));
    return true;
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

const struct ticket_key *tls_ticket_key_now(SSL *ssl)
{
    struct tls_conn *tls = tls_conn_of(ssl);
    return ticket_key_now(&tls->server->tickets, tls_thread_tickets(tls->thread));
}

const struct ticket_key *tls_ticket_key_find(SSL *ssl, const unsigned char *name, bool *is_old)
{
    struct tls_conn *tls = tls_conn_of(ssl);
    return ticket_key_find(&tls->server->tickets, tls_thread_tickets(tls->thread), name, is_old);
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
    SSL_CTX *ctx = entry->contexts[cert->kind];
    struct library_staple *staple = &entry->staples[cert->kind];
    if (SSL_CTX_use_certificate(ctx, cert->leaf) != 1 || SSL_CTX_use_PrivateKey(ctx, cert->key) != 1 ||
        SSL_CTX_set1_chain(ctx, cert->chain) != 1)
        return tls_fail(fault, "cert_file", "the certificate %s cannot be used", cert->name);
    if (cert->ocsp) {
        *staple = (struct library_staple){OPENSSL_memdup(cert->ocsp, cert->ocsp_len), cert->ocsp_len};
        iso_assert(staple->data != NULL);
    }
    library_use_staples(ctx, entry->staples, cert->kind);
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

/* The policy of the entry's certificates, which must have the same. */
static iso_err find_policy(const struct tls_entry *entry, const struct tls_server_options *options,
                           struct tls_policy *policy, struct tls_fault *fault)
{
    const struct tls_cert *first = NULL;
    for (int kind = 0; kind < TLS_CERT_KINDS; kind++) {
        const struct tls_cert *cert = entry->certs[kind];
        if (!cert)
            continue;
        struct tls_policy own = policy_of(cert, options);
        if (first && !same_policy(&own, policy))
            return tls_fail(
                fault, "client_auth",
                "the certificates %s and %s share a name, so expected the same client_auth, files "
                "and versions",
                first->name, cert->name);
        first = cert;
        *policy = own;
    }
    return ISO_OK;
}

/* A context with all but certificates. */
static iso_err make_context(const struct tls_server *server, const struct tls_entry *entry,
                            const struct tls_policy *policy, const struct tls_server_options *options,
                            SSL_CTX *ctx, struct tls_fault *fault)
{
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                              SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(ctx,
                        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
    /* Sessions are in tickets; the cache is for TLS 1.2 clients that take none. */
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_SERVER);
    SSL_CTX_sess_set_cache_size(ctx, SESSIONS_CACHED);
    SSL_CTX_set_timeout(ctx, SESSION_S);
    SSL_CTX_set_num_tickets(ctx, 1);
    SSL_CTX_set_min_proto_version(ctx, version_number(policy->min_version));
    SSL_CTX_set_max_proto_version(ctx, version_number(policy->max_version));
    library_use_hello(ctx);
    if (server->alpn_len)
        SSL_CTX_set_alpn_select_cb(ctx, on_alpn, NULL);
    library_use_tickets(ctx);
    SSL_CTX_set_session_id_context(ctx, entry->session_context, sizeof(entry->session_context));
    iso_err err = set_lists(ctx, options, fault);
    return err ? err : set_clients(ctx, policy, fault);
}

static iso_err make_entry(struct tls_server *server, struct tls_entry *entry,
                          const struct tls_server_options *options, struct tls_fault *fault)
{
    struct tls_policy policy = {0};
    iso_err err = find_policy(entry, options, &policy, fault);
    if (err)
        return err;
    entry->policy = number_of(server, &policy, server->policies);
    bind_sessions(entry, &policy, options->name);
    for (int kind = 0; kind < TLS_CERT_KINDS && !err; kind++) {
        if (!entry->certs[kind])
            continue;
        bool is_new = library_has_one_cert || !entry->any;
        SSL_CTX *ctx = is_new ? SSL_CTX_new(TLS_server_method()) : entry->any;
        iso_assert(ctx && (is_new || SSL_CTX_up_ref(ctx)));
        entry->contexts[kind] = ctx;
        if (!entry->any)
            entry->any = ctx;
        if (is_new)
            err = make_context(server, entry, &policy, options, ctx, fault);
        if (!err)
            err = add_cert(entry, entry->certs[kind], fault);
    }
    return err;
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
        for (int kind = 0; kind < TLS_CERT_KINDS; kind++) {
            SSL_CTX_free(server->entries[i].contexts[kind]);
            OPENSSL_free(server->entries[i].staples[kind].data);
        }
    }
    free(server->entries);
    tls_names_fini(&server->names);
    OPENSSL_cleanse(&server->tickets, sizeof(server->tickets));
    free(server);
}

iso_err tls_server_new(const struct tls_server_options *options, struct tls_server **out,
                       struct tls_fault *fault)
{
    struct tls_server *server = calloc(1, sizeof(*server));
    iso_assert(server && options->n_certs > 0);
    atomic_init(&server->refs, 1);
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

static const struct tls_entry *entry_of(const struct tls_server *server, struct slice name)
{
    uint32_t index = 0;
    tls_names_find(&server->names, name, &index);
    return &server->entries[index];
}

bool tls_server_parts(const struct tls_server *server, struct slice name, struct slice host)
{
    return entry_of(server, name)->policy != entry_of(server, host)->policy;
}

bool tls_server_asks(const struct tls_server *server, struct slice name, bool *is_required)
{
    int mode = SSL_CTX_get_verify_mode(entry_of(server, name)->any);
    *is_required = mode & SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    return mode & SSL_VERIFY_PEER;
}

SSL *tls_server_open(struct tls_server *server)
{
    return SSL_new(server->entries[0].any);
}
