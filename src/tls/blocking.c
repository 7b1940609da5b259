/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/blocking.h"

#include "core/check.h"
#include "core/ip.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

struct tls_blocking {
    SSL_CTX *context; /* owns */
    SSL *ssl;         /* owns */
};

static void say(char fault[TLS_BLOCKING_FAULT_MAX], const char *what)
{
    char why[120] = "";
    unsigned long code = ERR_get_error();
    if (code)
        ERR_error_string_n(code, why, sizeof(why));
    snprintf(fault, TLS_BLOCKING_FAULT_MAX, "%s%s%s", what, why[0] ? ": " : "", why);
}

static bool expect_host(SSL *ssl, const char *host)
{
    struct ip_addr ip;
    if (ip_parse(slice_str(host), &ip))
        return X509_VERIFY_PARAM_set1_ip(SSL_get0_param(ssl), ip.bytes, ip.family == 6 ? 16 : 4) == 1;
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}

static bool shake_hands(struct tls_blocking *tls, int fd, const char *host, const char *ca_file,
                        char fault[TLS_BLOCKING_FAULT_MAX])
{
    ERR_clear_error();
    tls->context = SSL_CTX_new(TLS_client_method());
    if (!tls->context || SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) != 1) {
        say(fault, "no TLS context");
        return false;
    }
    SSL_CTX_set_verify(tls->context, SSL_VERIFY_PEER, NULL);
    if (ca_file ? SSL_CTX_load_verify_locations(tls->context, ca_file, NULL) != 1
                : SSL_CTX_set_default_verify_paths(tls->context) != 1) {
        say(fault, "no authorities could be read");
        return false;
    }
    tls->ssl = SSL_new(tls->context);
    if (!tls->ssl || !expect_host(tls->ssl, host) || SSL_set_fd(tls->ssl, fd) != 1) {
        say(fault, "no TLS connection");
        return false;
    }
    if (SSL_connect(tls->ssl) == 1)
        return true;
    long verified = SSL_get_verify_result(tls->ssl);
    if (verified != X509_V_OK)
        snprintf(fault, TLS_BLOCKING_FAULT_MAX, "its certificate is not accepted: %s",
                 X509_verify_cert_error_string(verified));
    else
        say(fault, "the TLS handshake failed");
    return false;
}

iso_err tls_blocking_open(int fd, const char *host, const char *ca_file, struct tls_blocking **out,
                          char fault[TLS_BLOCKING_FAULT_MAX])
{
    struct tls_blocking *tls = calloc(1, sizeof(*tls));
    iso_assert(tls != NULL);
    if (shake_hands(tls, fd, host, ca_file, fault)) {
        *out = tls;
        return ISO_OK;
    }
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    free(tls);
    return ISO_ERR_SYSTEM;
}

static int at_most_int(size_t len)
{
    return len < INT_MAX ? (int)len : INT_MAX;
}

ssize_t tls_blocking_read(struct tls_blocking *tls, void *data, size_t len)
{
    int n = SSL_read(tls->ssl, data, at_most_int(len));
    if (n > 0)
        return n;
    return SSL_get_error(tls->ssl, n) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

ssize_t tls_blocking_write(struct tls_blocking *tls, const void *data, size_t len)
{
    int n = SSL_write(tls->ssl, data, at_most_int(len));
    return n > 0 ? n : -1;
}

void tls_blocking_close(struct tls_blocking **taken)
{
    struct tls_blocking *tls = *taken;
    *taken = NULL;
    if (!tls)
        return;
    SSL_shutdown(tls->ssl);
    SSL_free(tls->ssl);
    SSL_CTX_free(tls->context);
    free(tls);
}
