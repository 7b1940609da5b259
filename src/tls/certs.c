/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/cert.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OCSP_BYTES_MAX = 64 * 1024, NAMES_MAX = 4096 };

unsigned char *tls_read_file(const char *path, size_t most, size_t *len)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    unsigned char *data = malloc(most + 1);
    iso_assert(data != NULL);
    size_t have = 0;
    ssize_t n = 1;
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        n = -1;
    }
    while (n > 0 && have <= most) {
        n = read(fd, data + have, most + 1 - have);
        if (n < 0 && errno == EINTR)
            n = 1;
        else if (n > 0)
            have += (size_t)n;
    }
    int err = have > most ? EFBIG : errno;
    close(fd);
    if (n < 0 || have > most) {
        free(data);
        errno = err;
        return NULL;
    }
    *len = have;
    return data;
}

static char *copy(const char *text)
{
    char *out = text ? strdup(text) : NULL;
    iso_assert(!text || out);
    return out;
}

/* Where PEM comes from, and what faults call it. */
struct pem {
    const char *path; /* NULL: it is `text` */
    const char *text;
    const char *key; /* of the configuration */
};

static const char *pem_name(const struct pem *pem)
{
    return pem->path ? pem->path : pem->key;
}

/* *data is NULL for a text. */
static BIO *open_pem(const struct pem *pem, unsigned char **data)
{
    enum { PEM_BYTES_MAX = 1 << 20 };
    size_t len = pem->path ? 0 : strlen(pem->text);
    *data = pem->path ? tls_read_file(pem->path, PEM_BYTES_MAX, &len) : NULL;
    if (pem->path && !*data)
        return NULL;
    BIO *bio = BIO_new_mem_buf(*data ? (const void *)*data : pem->text, (int)len);
    iso_assert(bio != NULL);
    return bio;
}

static void close_pem(BIO *bio, unsigned char *data)
{
    BIO_free(bio);
    free(data);
}

/* A key with a passphrase fails instead of asking the terminal. */
static int no_passphrase(char *out, int cap, int is_writing, void *arg)
{
    return -1;
}

static struct pem cert_of(const struct tls_cert_files *files)
{
    return (struct pem){files->cert_file, files->cert_pem, files->cert_file ? "cert_file" : "cert_pem"};
}

static struct pem key_of(const struct tls_cert_files *files)
{
    if (!files->key_file && !files->key_pem)
        return cert_of(files);
    return (struct pem){files->key_file, files->key_pem, files->key_file ? "key_file" : "key_pem"};
}

static iso_err load_chain(struct tls_cert *cert, const struct tls_cert_files *files, struct tls_fault *fault)
{
    unsigned char *data;
    const struct pem pem = cert_of(files);
    const char *path = pem_name(&pem);
    BIO *bio = open_pem(&pem, &data);
    if (!bio)
        return tls_fail(fault, pem.key, "cannot read %s: %s", path, strerror(errno));
    cert->leaf = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);
    for (X509 *next; cert->leaf && (next = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL));)
        iso_assert(sk_X509_push(cert->chain, next) > 0);
    unsigned long last = ERR_peek_last_error();
    close_pem(bio, data);
    if (!cert->leaf)
        return tls_fail(fault, pem.key, "no certificate in %s, expected PEM", path);
    if (ERR_GET_LIB(last) != ERR_LIB_PEM || ERR_GET_REASON(last) != PEM_R_NO_START_LINE)
        return tls_fail(fault, pem.key, "a certificate of the chain in %s is damaged", path);
    ERR_clear_error();
    return ISO_OK;
}

static iso_err load_key(struct tls_cert *cert, const struct tls_cert_files *files, struct tls_fault *fault)
{
    const struct pem pem = key_of(files), chain = cert_of(files);
    const char *path = pem_name(&pem), *key = pem.key;
    unsigned char *data;
    BIO *bio = open_pem(&pem, &data);
    if (!bio)
        return tls_fail(fault, key, "cannot read %s: %s", path, strerror(errno));
    cert->key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
    close_pem(bio, data);
    if (!cert->key)
        return tls_fail(fault, key, "no private key in %s, expected PEM without a passphrase%s", path,
                        key != chain.key   ? ""
                        : files->cert_file ? "; or name it by key_file"
                                           : "; or put it into key_pem");
    if (X509_check_private_key(cert->leaf, cert->key) != 1) {
        ERR_clear_error();
        return tls_fail(fault, key, "%s is not the key of the certificate in %s", path, pem_name(&chain));
    }
    return ISO_OK;
}

static void add_name(struct tls_cert *cert, const unsigned char *data, int len)
{
    if (len <= 0 || len > 253 || cert->n_names == NAMES_MAX || memchr(data, '\0', (size_t)len))
        return;
    char *text = malloc((size_t)len);
    iso_assert(text != NULL);
    for (int i = 0; i < len; i++)
        text[i] = ascii_lower((char)data[i]);
    cert->names[cert->n_names++] = slice_of(text, (size_t)len);
}

static void collect_names(struct tls_cert *cert)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(cert->leaf, NID_subject_alt_name, NULL, NULL);
    int n = all ? sk_GENERAL_NAME_num(all) : 0;
    cert->names = calloc((size_t)n + 1, sizeof(*cert->names));
    iso_assert(cert->names != NULL);
    for (int i = 0; i < n; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(all, i);
        if (name->type == GEN_DNS)
            add_name(cert, ASN1_STRING_get0_data(name->d.dNSName), ASN1_STRING_length(name->d.dNSName));
    }
    GENERAL_NAMES_free(all);
    if (cert->n_names)
        return;
    X509_NAME *subject = X509_get_subject_name(cert->leaf);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    const ASN1_STRING *common = at < 0 ? NULL : X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at));
    if (common)
        add_name(cert, ASN1_STRING_get0_data(common), ASN1_STRING_length(common));
}

static iso_err load_ocsp(struct tls_cert *cert, const char *path, struct tls_fault *fault)
{
    if (!path)
        return ISO_OK;
    cert->ocsp = tls_read_file(path, OCSP_BYTES_MAX, &cert->ocsp_len);
    if (!cert->ocsp)
        return tls_fail(fault, "ocsp_file", "cannot read %s: %s", path, strerror(errno));
    if (cert->ocsp_len == 0 || cert->ocsp[0] != 0x30)
        return tls_fail(fault, "ocsp_file", "%s is no OCSP answer, expected DER", path);
    return ISO_OK;
}

enum tls_cert_kind tls_kind_of(EVP_PKEY *key)
{
    int type = EVP_PKEY_base_id(key);
    return type == EVP_PKEY_RSA ? TLS_CERT_RSA : type == EVP_PKEY_EC ? TLS_CERT_EC : TLS_CERT_OTHER;
}

iso_err tls_load_ca(SSL_CTX *ctx, const char *path, const char *key, struct tls_fault *fault)
{
    if (SSL_CTX_load_verify_locations(ctx, path, NULL) != 1)
        return tls_fail(fault, key, "no certificates can be read from %s", path);
    return ISO_OK;
}

iso_err tls_load_crl(SSL_CTX *ctx, const char *path, struct tls_fault *fault)
{
    X509_STORE *store = SSL_CTX_get_cert_store(ctx);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());
    if (!lookup || X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) <= 0)
        return tls_fail(fault, "crl_file", "no revocation lists can be read from %s", path);
    X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
    return ISO_OK;
}

iso_err tls_cert_load(const struct tls_cert_files *files, struct tls_cert **out, struct tls_fault *fault)
{
    struct tls_cert *cert = calloc(1, sizeof(*cert));
    iso_assert(cert != NULL);
    cert->name = copy(files->name);
    cert->policy = files->policy;
    cert->policy.ca_file = copy(files->policy.ca_file);
    cert->policy.crl_file = copy(files->policy.crl_file);
    cert->chain = sk_X509_new_null();
    iso_assert(cert->chain != NULL);
    iso_err err = load_chain(cert, files, fault);
    if (!err)
        err = load_key(cert, files, fault);
    if (!err)
        err = load_ocsp(cert, files->ocsp_file, fault);
    if (err) {
        tls_cert_free(cert);
        return err;
    }
    cert->kind = tls_kind_of(cert->key);
    collect_names(cert);
    *out = cert;
    return ISO_OK;
}

void tls_cert_free(struct tls_cert *cert)
{
    if (!cert)
        return;
    for (uint32_t i = 0; i < cert->n_names; i++)
        free((char *)cert->names[i].ptr);
    free(cert->names);
    free(cert->name);
    free(cert->ocsp);
    free((char *)cert->policy.ca_file);
    free((char *)cert->policy.crl_file);
    X509_free(cert->leaf);
    sk_X509_pop_free(cert->chain, X509_free);
    EVP_PKEY_free(cert->key);
    free(cert);
}

static int64_t seconds(const ASN1_TIME *time)
{
    ASN1_TIME *epoch = ASN1_TIME_set(NULL, 0);
    int days = 0, rest_s = 0;
    bool ok = epoch && time && ASN1_TIME_diff(&days, &rest_s, epoch, time) == 1;
    ASN1_TIME_free(epoch);
    return ok ? (int64_t)days * 86400 + rest_s : 0;
}

int64_t tls_cert_not_before_s(const struct tls_cert *cert)
{
    return seconds(X509_get0_notBefore(cert->leaf));
}

int64_t tls_cert_not_after_s(const struct tls_cert *cert)
{
    return seconds(X509_get0_notAfter(cert->leaf));
}

enum tls_cert_kind tls_cert_kind(const struct tls_cert *cert)
{
    return cert->kind;
}

uint32_t tls_cert_names(const struct tls_cert *cert, const struct slice **names)
{
    *names = cert->names;
    return cert->n_names;
}
