/* SPDX-License-Identifier: Apache-2.0 */
/* What single texts must look like, as schema_check_fn: each reports what is wrong and may bring the text
 * into its canonical form. The words for "expected" are here too, beside the check they describe. */
#ifndef ISOBAR_CONFIG_CHECKS_H
#define ISOBAR_CONFIG_CHECKS_H

#include "config/schema.h"

#define EXPECT_NAME             "a name of 1 to 128 letters, digits and . _ - / : @"
#define EXPECT_PATH             "a path that begins with /"
#define EXPECT_TARGET           "a path that begins with /, with or without a query"
#define EXPECT_HOST             "a host name such as example.com or *.example.com, or an address"
#define EXPECT_COOKIE_ATTRIBUTE "visible characters without ; or blanks"
#define EXPECT_TARGET_HOST      "a host name such as app.internal; an address belongs to \"ip\""
#define EXPECT_SRV              "the name of a service such as _http._tcp.app.internal"
#define EXPECT_DNS_SERVER       "an address with or without a port, such as 10.0.0.2, 10.0.0.2:5353 or [::1]:53"
#define EXPECT_TOKEN            "a name of letters, digits and signs such as - _ . without blanks"
#define EXPECT_VALUE            "a text without control characters or blanks at its ends"
#define EXPECT_FILE             "a file name"
#define EXPECT_ALPN             "h2 or http/1.1"
#define EXPECT_GRPC_SERVICE     "a name such as my.package.Service"
#define EXPECT_TARGET_ALPN      "h2 or http/1.1"
#define EXPECT_UNIX             "the path of a unix socket, at most 107 bytes"
#define EXPECT_REGEX            "a regular expression (PCRE2)"
#define EXPECT_MAC              "auto or a MAC such as 02:00:00:00:00:01"
#define EXPECT_SCHEME           "http or https"
#define EXPECT_STORE_URL                                                                                     \
    "sqlite:FILE or postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...]"
#define EXPECT_LOG_FORMAT                                                                                    \
    "json, common, combined or a text with fields in braces such as \"{client} {status}\""
#define EXPECT_LIMIT_KEY "client_ip, header:NAME, cookie:NAME, query:NAME or all"
#define EXPECT_TEMPLATE  "a text that may contain {host}, {path} or {query}"

schema_check_fn check_name;             /* of load balancers, groups, rules */
schema_check_fn check_path;             /* "/..." without ? # and control characters */
schema_check_fn check_request_target;   /* "/..." with or without a query */
schema_check_fn check_host_pattern;     /* exact or "*.suffix"; to lower case */
schema_check_fn check_host;             /* a Host value, with or without a port */
schema_check_fn check_target_host;      /* a name, no address; to lower case, without the last dot */
schema_check_fn check_srv;              /* the same of a service */
schema_check_fn check_dns_server;       /* an address; the port is filled in */
schema_check_fn check_method;           /* a token; lower case of a known method is refused */
schema_check_fn check_token;            /* RFC 9110 5.6.2 */
schema_check_fn check_cookie_attribute; /* RFC 6265 4.1.1: visible, no semicolon */
schema_check_fn check_token_name;       /* the same of a key in a map */
schema_check_fn check_field_name;       /* a key that is a field name, to lower case */
schema_check_fn check_own_field;        /* a key that is a field name which is not ours alone to set */
schema_check_fn check_removed_field;    /* the same of a value */
schema_check_fn check_field_value;      /* RFC 9110 5.5 */
schema_check_fn check_log_file; /* "off", "stdout" or a file, made absolute by the folder of the document */
schema_check_fn check_file;     /* a file name, made absolute in the same way */
schema_check_fn check_grpc_service;
schema_check_fn check_target_alpn; /* the same of targets */
schema_check_fn check_alpn;        /* a protocol that listeners can speak over TLS */
schema_check_fn check_unix_path;   /* made absolute in the same way */
schema_check_fn check_regex;       /* compiles */
schema_check_fn check_mac;         /* "auto" or six bytes in hexadecimal */
schema_check_fn check_scheme;      /* http, https */
schema_check_fn check_limit_key;   /* a part of what a rate limit goes by; names of fields to lower case */
schema_check_fn check_template;    /* known placeholders only */
schema_check_fn check_log_format;  /* what observe/accesslog can compile, with a field in it */
schema_check_fn check_off_or_file; /* "off" or a file name, made absolute in the same way */
/* A URL that store/ takes; the file of sqlite: is made absolute in the same way. */
schema_check_fn check_store_url;

#endif
