/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the table about who is let in. */
#include "config/schema_table.h"

#define HOLDER struct config_sources
static const struct schema_key sources_keys[] = {
    PREFIXES("allow", allow, n_allow, "addresses that are let in; unset: all that are not denied"),
    PREFIXES("deny", deny, n_deny, "addresses that are not let in"), END};
const struct schema_section schema_sources = {
    .keys = sources_keys,
    .item = "sources",
    .doc = "Clients by their addresses. The longest prefix that has an address decides, deny before allow."};
#undef HOLDER

#define HOLDER struct config_connection_rate
static const struct schema_key connection_rate_keys[] = {
    {KEY("connections", type_number, "of one address in per_s seconds; an IPv6 client counts by its /64"),
     .offset = FIELD(connections, uint32_t), .size = WIDTH(connections), .min = 1,
     .max = CONFIG_LIMIT_REQUESTS_MAX, .required = true},
    SECONDS("per_s", period_ms, 1000, DAY_MS, "1", "that connections is counted over"),
    NUMBER("burst", burst, 0, CONFIG_LIMIT_REQUESTS_MAX, "0", "most at once; 0: as many as connections"),
    NUMBER("max_clients", max_clients, 16, 100000000, "65536",
           "addresses known at the same time, 18 bytes each; then the one that made the fewest is forgotten"),
    END};
const struct schema_section schema_connection_rate = {
    .keys = connection_rate_keys,
    .item = "a connection rate",
    .doc = "Connections (over TLS: handshakes; UDP: sessions) beyond an address's share are closed at once."};
#undef HOLDER

#define HOLDER struct config_hsts
static const struct schema_key hsts_keys[] = {
    NUMBER("max_age_s", max_age_s, 0, 1000000000, "31536000",
           "that browsers use nothing but HTTPS for the host; 0: they forget it"),
    FLAG("include_subdomains", include_subdomains, "false", "for all names below the host's too"),
    FLAG("preload", preload, "false", "agrees to be put into browsers' lists, which is hard to undo"), END};
const struct schema_section schema_hsts = {
    .keys = hsts_keys,
    .item = "an hsts section",
    .doc = "Strict-Transport-Security on answers that have none (HTTPS)."};
#undef HOLDER

#define HOLDER struct config_jwt
static const struct schema_key jwt_keys[] = {
    REQUIRED_TEXT("jwks_file", jwks_file, check_file, EXPECT_FILE,
                  "JSON Web Key Set (RFC 7517): RSA, P-256 and secret keys, read at each reload"),
    TEXT("issuer", issuer, NULL, NULL, NULL, "the claim iss must be this; unset: any"),
    TEXTS("audience", audience, n_audience, NULL, "texts",
          "the claim aud must have one of these; unset: any"),
    TEXT("cookie", cookie, check_token, EXPECT_TOKEN, NULL,
         "a cookie that may bring the token; unset: only Authorization: Bearer"),
    SECONDS("leeway_s", leeway_ms, 0, HOUR_MS, "60", "that clocks may differ"),
    FLAG("needs_exp", needs_exp, "true", "a token without the claim exp is refused"),
    PAIRS("claims", claims, n_claims, check_own_field, NULL, "names of claims",
          "request fields that carry claims to the target: `X-User: sub`; what the client sends in them is "
          "dropped"),
    END};
const struct schema_section schema_jwt = {.keys = jwt_keys,
                                          .item = "a jwt section",
                                          .doc = "Requests must bring a token that a key of the file has "
                                                 "signed (RS256, ES256, HS256); 401 otherwise."};
#undef HOLDER

#define HOLDER struct config_basic_auth
static const struct schema_key basic_auth_keys[] = {
    REQUIRED_TEXT("password_file", password_file, check_file, EXPECT_FILE,
                  "NAME:HASH a line, hashes of crypt(3) as `htpasswd -B` makes them, read at each reload"),
    TEXT("realm", realm, check_name, EXPECT_NAME, "restricted", "what browsers call it"),
    TEXT("user_field", user_field, check_own_field, "a field name", NULL,
         "request field that carries the name to the target; what the client sends in it is dropped"),
    END};
const struct schema_section schema_basic_auth = {
    .keys = basic_auth_keys,
    .item = "a basic_auth section",
    .doc = "Requests must bring a name and a password of the file; 401 otherwise."};
#undef HOLDER
