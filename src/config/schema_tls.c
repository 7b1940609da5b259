/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the table about TLS. */
#include "config/schema_table.h"

static const struct schema_choice versions[] = {
    {"1.2", CONFIG_TLS_1_2, "TLS 1.2"}, {"1.3", CONFIG_TLS_1_3, "TLS 1.3"}, {NULL}};

static const struct schema_choice auths[] = {
    {"none", CONFIG_AUTH_NONE, "clients are not asked for a certificate"},
    {"optional", CONFIG_AUTH_OPTIONAL, "they are asked; one that is shown must be good"},
    {"required", CONFIG_AUTH_REQUIRED, "without a good one the handshake fails"},
    {NULL}};

/* Of listeners and certificates alike. */
#define CLIENT_KEYS                                                                                          \
    CHOICE("client_auth", clients.auth, auths, NULL,                                                         \
           "whether clients must show a certificate; unset: required with client_ca_file, else none"),       \
        TEXT("client_ca_file", clients.ca_file, check_file, EXPECT_FILE, NULL,                               \
             "PEM: the authorities whose signature counts on certificates of clients"),                      \
        TEXT("crl_file", clients.crl_file, check_file, EXPECT_FILE, NULL,                                    \
             "PEM: revocation lists of these authorities; one of each is needed")

#define HOLDER struct config_certificate
static const struct schema_key certificate_keys[] = {
    REQUIRED_TEXT("name", name, check_name, EXPECT_NAME, "what listeners call it, unique"),
    TEXT("cert_file", cert_file, check_file, EXPECT_FILE, NULL,
         "PEM: the certificate, then its chain; it serves its subject alternative names"),
    TEXT("key_file", key_file, check_file, EXPECT_FILE, NULL,
         "PEM: its private key, without a passphrase; unset: in cert_file"),
    {KEY("cert_pem", type_text, "the same text in place of cert_file, as the API brings it"),
     .offset = FIELD(cert_pem, struct slice), .secret = secret_in_pem},
    {KEY("key_pem", type_text,
         "the same in place of key_file; the API keeps it when it is left out while cert_pem stays"),
     .offset = FIELD(key_pem, struct slice), .secret = secret_whole},
    TEXT("ocsp_file", ocsp_file, check_file, EXPECT_FILE, NULL,
         "DER: an OCSP answer that clients get with the certificate"),
    CLIENT_KEYS,
    CHOICE("max_version", max_version, versions, NULL,
           "the newest version that is spoken under its names; unset: as the listener's"),
    END};
const struct schema_section schema_certificate = {
    .is_object = true,
    .keys = certificate_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = FIELD(name, struct slice),
    .item = "a certificate",
    .doc =
        "A certificate and its key. What is said about clients goes before the listener's for its names, and "
        "sessions do not cross from one name to another. Files are read again at each reload."};
#undef HOLDER

#define HOLDER struct config_listener_tls
static const struct schema_key listener_tls_keys[] = {
    TEXTS("alpn", alpn, n_alpn, check_alpn, EXPECT_ALPN,
          "protocols that are offered, the preferred one first; unset: all that listeners speak"),
    CHOICE("min_version", min_version, versions, "1.2", "the oldest version that is spoken"),
    CHOICE("max_version", max_version, versions, "1.3", "the newest version that is spoken"),
    TEXT("ciphers", ciphers, NULL, NULL, NULL,
         "TLS 1.2: OpenSSL's cipher list, such as \"HIGH:!aNULL\"; unset: ECDHE with AES-GCM or ChaCha20, "
         "AES-128 first"),
    TEXT("ciphersuites", ciphersuites, NULL, NULL, NULL,
         "TLS 1.3: names with colons between them; unset: AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305"),
    TEXT("groups", groups, NULL, NULL, NULL,
         "key exchange groups with colons between them, the preferred one first; unset: X25519:P-256:P-384"),
    TEXTS(
        "ticket_key_files", ticket_key_files, n_ticket_key_files, check_file, EXPECT_FILE,
        "files of 80 random bytes that session tickets are sealed with: the first makes tickets, all are "
        "accepted, and instances that share them resume each other's sessions. Unset: keys in memory, a new "
        "one every 6 hours"),
    CLIENT_KEYS,
    END};
const struct schema_section schema_listener_tls = {.keys = listener_tls_keys,
                                                   .item = "a listener's TLS section",
                                                   .doc = "How TLS is spoken with clients (HTTPS)."};
#undef HOLDER

#define HOLDER struct config_group_tls
static const struct schema_key group_tls_keys[] = {
    FLAG("verify", verify, "true",
         "a target must show a certificate for `sni`, or for its address, that a known authority signed"),
    TEXT("ca_file", ca_file, check_file, EXPECT_FILE, NULL,
         "PEM: the authorities that count; unset: those of the system"),
    TEXT("sni", sni, check_host, EXPECT_HOST, NULL,
         "the name that targets are asked for and must show; unset: none is asked for"),
    TEXT("cert_file", cert_file, check_file, EXPECT_FILE, NULL,
         "PEM: the certificate that targets are shown, then its chain"),
    TEXT("key_file", key_file, check_file, EXPECT_FILE, NULL, "PEM: its private key; unset: in cert_file"),
    TEXTS("alpn", alpn, n_alpn, check_target_alpn, EXPECT_TARGET_ALPN,
          "protocols that targets are offered, the preferred one first: h2 is HTTP/2; unset: http/1.1"),
    END};
const struct schema_section schema_group_tls = {
    .keys = group_tls_keys,
    .item = "a target group's TLS section",
    .doc = "How TLS is spoken with targets, by requests and by health checks (HTTPS)."};
#undef HOLDER
