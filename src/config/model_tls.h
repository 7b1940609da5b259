/* SPDX-License-Identifier: Apache-2.0 */
/* What the configuration says about TLS. Files are named here and read elsewhere (tls/); texts end in NUL. */
#ifndef ISOBAR_CONFIG_MODEL_TLS_H
#define ISOBAR_CONFIG_MODEL_TLS_H

#include "core/slice.h"

/* Where something stands in the document, for faults that only show when files are read. */
struct config_place {
    const char *file, *path; /* "/certificates/0" */
    unsigned line, column;
};

enum config_tls_version { CONFIG_TLS_UNSET = 0, CONFIG_TLS_1_2 = 12, CONFIG_TLS_1_3 = 13 };

enum config_client_auth { CONFIG_AUTH_NONE, CONFIG_AUTH_OPTIONAL, CONFIG_AUTH_REQUIRED };

/* Whether clients show a certificate. */
struct config_clients {
    bool set; /* something is said about it here */
    enum config_client_auth auth;
    struct slice ca_file, crl_file; /* ptr NULL: none */
};

struct config_certificate {
    struct slice name;
    struct slice cert_file, key_file;    /* key_file.ptr NULL: the key is in cert_file */
    struct slice cert_pem, key_pem;      /* in place of files; cert_pem.ptr NULL: there are files */
    struct slice ocsp_file;              /* ptr NULL: none */
    struct config_clients clients;       /* not set: as the listener says */
    enum config_tls_version max_version; /* 0: the same */
    struct config_place place;
};

struct config_listener_tls {
    struct slice *alpn; /* in order of preference; n 0: as the build supports */
    uint32_t n_alpn;
    enum config_tls_version min_version, max_version;
    struct slice ciphers, ciphersuites, groups; /* OpenSSL's lists; ptr NULL: the built-in ones */
    struct slice *ticket_key_files;
    uint32_t n_ticket_key_files;
    struct config_clients clients;
    struct config_place place; /* of the section, or of the listener */
};

/* Towards the targets of a group. */
struct config_group_tls {
    bool verify;
    struct slice ca_file, sni;        /* ptr NULL: the system's authorities; the target's address */
    struct slice cert_file, key_file; /* ptr NULL: we show nothing; the key is in cert_file */
    struct slice *alpn;               /* in order of preference; n 0: http/1.1 */
    uint32_t n_alpn;
    struct config_place place;
};

#endif
