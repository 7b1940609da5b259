/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the table about where clients arrive: load balancers, listeners, rules. */
#include "config/schema_table.h"

static const struct schema_choice redirect_statuses[] = {
    {"301", 301, "moved for good; clients may turn POST into GET"},
    {"302", 302, "moved for a while; clients may turn POST into GET"},
    {"303", 303, "look there with GET"},
    {"307", 307, "moved for a while; method and body stay"},
    {"308", 308, "moved for good; method and body stay"},
    {NULL}};

#define HOLDER struct config_header_ops
static const struct schema_key response_ops_keys[] = {
    PAIRS("set_headers", set, n_set, check_own_field, check_field_value, "field values",
          "fields that replace those of the same name"),
    PAIRS("add_headers", add, n_add, check_own_field, check_field_value, "field values",
          "fields that are added beside those of the same name"),
    TEXTS("remove_headers", remove, n_remove, check_removed_field, "field names",
          "fields that are taken out"),
    END};
static const struct schema_section response_ops = {
    .keys = response_ops_keys, .item = "a response rewrite", .doc = "Changes to the answer's header fields."};
#undef HOLDER

#define HOLDER struct config_rewrite
static const struct schema_key rewrite_keys[] = {
    TEXT("path_prefix", path_prefix, check_path, EXPECT_PATH, NULL,
         "stands in place of the match's path_prefix in the path towards the target"),
    TEXT("host", host, check_host, EXPECT_HOST, NULL,
         "the Host towards the target; unset: as the client sent it"),
    CREDENTIALS("set_headers", request.set, request.n_set, check_own_field, check_field_value, "field values",
                "request fields that replace those of the same name"),
    CREDENTIALS("add_headers", request.add, request.n_add, check_own_field, check_field_value, "field values",
                "request fields that are added beside those of the same name"),
    TEXTS("remove_headers", request.remove, request.n_remove, check_removed_field, "field names",
          "request fields that are taken out"),
    SECTION("response", response, response_ops, "the same for the answer"),
    END};
static const struct schema_section rewrite_section = {
    .keys = rewrite_keys, .item = "a rewrite", .doc = "Changes to what is forwarded and to what comes back."};
#undef HOLDER

#define HOLDER struct config_redirect
static const struct schema_key redirect_keys[] = {
    TEXT("scheme", scheme, check_scheme, EXPECT_SCHEME, NULL,
         "scheme of the new location; unset: as requested"),
    TEXT("host", host, check_template, EXPECT_TEMPLATE, NULL,
         "host of the new location; unset: as requested"),
    NUMBER("port", port, 1, 65535, NULL, "port of the new location; unset: the scheme's own"),
    TEXT("path", path, check_template, EXPECT_TEMPLATE, NULL,
         "path of the new location; unset: path and query as requested"),
    CHOICE("status", status, redirect_statuses, "308", "status of the answer"),
    END};
static const struct schema_section redirect_section = {
    .keys = redirect_keys, .item = "a redirect", .doc = "Answers with another location."};
#undef HOLDER

#define HOLDER struct config_respond
static const struct schema_key respond_keys[] = {
    NUMBER("status", status, 200, 599, "200", "status of the answer"),
    TEXT("body", body, NULL, NULL, NULL, "its body"),
    PAIRS("headers", headers, n_headers, check_own_field, check_field_value, "field values",
          "its header fields; content-type is text/plain unless given"),
    END};
static const struct schema_section respond_section = {
    .keys = respond_keys, .item = "a response", .doc = "Answers without asking a target."};
#undef HOLDER

#define HOLDER struct config_rule
static const struct schema_key deny_keys[] = {
    NUMBER("status", deny_status, 400, 599, "403", "status of the answer"), END};
static const struct schema_section deny_section = {
    .keys = deny_keys, .item = "a deny", .doc = "Refuses the request."};
#undef HOLDER

#define HOLDER struct config_forward
static const struct schema_key forward_keys[] = {
    REQUIRED_TEXT("target_group", target_group_name, check_name, EXPECT_NAME, "name of the target group"),
    NUMBER("weight", weight, 0, BALANCE_WEIGHT_MAX, "1", "its share among those of the list"), END};
static const struct schema_section forward_section = {.keys = forward_keys,
                                                      .bytes = sizeof(HOLDER),
                                                      .identity_offset = SCHEMA_NO_OFFSET,
                                                      .item = "a forward",
                                                      .doc = "Where requests go; several split by weight."};
#undef HOLDER

#define HOLDER struct config_match
static const struct schema_key match_keys[] = {
    TEXT("host", host, check_host_pattern, EXPECT_HOST, NULL,
         "the request's host without its port, exact or *.suffix (one label or more in front)"),
    TEXT("path", path, check_path, EXPECT_PATH, NULL, "the whole path"),
    TEXT("path_prefix", path_prefix, check_path, EXPECT_PATH, NULL, "the beginning of the path"),
    TEXT("path_regex", path_regex, check_regex, EXPECT_REGEX, NULL,
         "an expression that is found in the path; begin it with ^, since without that only paths up to "
         "2,048 bytes are "
         "looked at"),
    TEXTS("methods", methods, n_methods, check_method, "methods such as GET", "any of these methods"),
    CREDENTIALS("headers", headers, n_headers, check_field_name, check_field_value, "field values",
                "all of these request fields, compared exactly; \"*\": present"),
    CREDENTIALS("cookies", cookies, n_cookies, check_token_name, check_field_value, "cookie values",
                "all of these cookies; \"*\": present"),
    CREDENTIALS("query", query, n_query, NULL, NULL, "values",
                "all of these query parameters; \"*\": present"),
    PREFIXES("source", sources, n_sources, "the client's address is in any of these"),
    TEXTS("sni", sni, n_sni, check_host_pattern, EXPECT_HOST,
          "the name that the client asks for is any of these, exact or *.suffix (TLS)"),
    TEXTS("alpn", alpn, n_alpn, NULL, "names of protocols such as h2",
          "the client offers any of these protocols (TLS)"),
    END};
static const struct schema_section match_section = {
    .keys = match_keys, .item = "a match", .doc = "Conditions; all that are given must hold."};
#undef HOLDER

#define HOLDER struct config_rule
static const struct schema_key rule_keys[] = {
    TEXT("name", name, check_name, EXPECT_NAME, NULL, "label in logs"),
    SECTION("match", match, match_section, "which requests the rule takes; unset: all"),
    ITEMS("forward", forward, n_forward, forward_section, "action: to target groups"),
    OPTIONAL("redirect", redirect, redirect.set, redirect_section, "action: to another location"),
    OPTIONAL("respond", respond, respond.set, respond_section, "action: a fixed answer"),
    {KEY("deny", type_section, "action: a refusal"), .section = &deny_section, .optional = true},
    SECTION("rewrite", rewrite, rewrite_section, "changes to what is forwarded and to what comes back"),
    SECTION("sources", sources, schema_sources, "which clients may have what the rule gives (403)"),
    OPTIONAL("jwt", jwt, jwt.set, schema_jwt, "requests must bring a JSON Web Token (401)"),
    OPTIONAL("basic_auth", basic_auth, basic_auth.set, schema_basic_auth,
             "requests must bring a name and a password (401)"),
    OPTIONAL("rate_limit", rate_limit, rate_limit.set, schema_rate_limit,
             "how many requests each client may make"),
    END};
const struct schema_section schema_rule = {
    .keys = rule_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = SCHEMA_NO_OFFSET,
    .item = "a rule",
    .doc =
        "Each rule has exactly one action: forward, redirect, respond or deny. Of the rules that match, the "
        "most "
        "specific decides: an exact host before a wildcard before any; an exact path before a longer prefix "
        "before a shorter one before a regex; then more of the other conditions; then the order of the "
        "file."};
#undef HOLDER

#define HOLDER struct config_timeouts_listener
static const struct schema_key listener_timeouts_keys[] = {
    NUMBER("header_ms", header_ms, 1, HOUR_MS, "15000", "for the whole head of a request (408)"),
    NUMBER("body_ms", body_ms, 1, DAY_MS, "15000", "without any byte of a request body (408)"),
    NUMBER("idle_ms", idle_ms, 1, DAY_MS, "60000",
           "between two requests of a connection; without a datagram of a UDP session"),
    NUMBER("handshake_ms", handshake_ms, 1, HOUR_MS, "10000",
           "for the whole TLS handshake, and for a PROXY header and a ClientHello before it"),
    NUMBER("tunnel_ms", tunnel_ms, 1, 7 * DAY_MS, "3600000",
           "of an upgraded connection without a byte in either direction"),
    END};
static const struct schema_section listener_timeouts = {
    .keys = listener_timeouts_keys, .item = "a listener's timeouts", .doc = "How long clients may take."};
#undef HOLDER

#define HOLDER struct config_proxy_protocol
static const struct schema_choice proxy_others[] = {
    {"refuse", CONFIG_OTHERS_REFUSED, "they are closed at once"},
    {"plain", CONFIG_OTHERS_PLAIN, "they are served without a header; one that they send is data"},
    {NULL}};
static const struct schema_key proxy_protocol_keys[] = {
    PREFIXES(
        "from", from, n_from,
        "addresses of the proxies that are believed; every connection from them must begin with a header"),
    CHOICE("others", others, proxy_others, "refuse", "what becomes of connections from other addresses"),
    END};
static const struct schema_section proxy_protocol_section = {
    .keys = proxy_protocol_keys,
    .item = "a listener's proxy_protocol",
    .doc = "PROXY protocol, versions 1 and 2: whom a connection is from, told by a proxy in front."};
#undef HOLDER

#define HOLDER struct config_limits_listener
static const struct schema_key listener_limits_keys[] = {
    NUMBER("header_bytes", header_bytes, 512, 65536, "32768", "of a request's head (431)"),
    NUMBER("headers", headers, 8, 256, "100", "number of fields in a request's head (431)"),
    NUMBER("uri_bytes", uri_bytes, 64, 65536, "8192", "of a request's target (414)"),
    NUMBER("body_bytes", body_bytes, 0, INT64_MAX, "0", "of a request's body (413); 0: no limit"),
    NUMBER("connections", connections, 0, 10000000, "0",
           "open at the same time, over all workers; 0: no limit. UDP: sessions; 0: 65536"),
    NUMBER("replies", replies, 0, 1000000, "0",
           "datagrams back, for each one of the client, after which a session ends, for example 1 for DNS; "
           "0: only idle_ms ends it (UDP)"),
    NUMBER("min_rate_bytes_per_s", min_rate_bytes_per_s, 0, 1000000000, "100",
           "slowest request body that is waited for, judged over several seconds (408); 0: any"),
    END};
static const struct schema_section listener_limits = {
    .keys = listener_limits_keys, .item = "a listener's limits", .doc = "What clients may send."};
#undef HOLDER

#define HOLDER struct config_http2
static const struct schema_key http2_keys[] = {
    FLAG("cleartext", cleartext, "true",
         "clients that know may begin with HTTP/2 on an HTTP listener; over TLS they ask for it (tls.alpn)"),
    NUMBER("max_streams", max_streams, 1, 10000, "128", "requests that a connection may have open at once"),
    END};
static const struct schema_section http2_section = {
    .keys = http2_keys, .item = "an http2 section", .doc = "HTTP/2 with clients."};
#undef HOLDER

#define HOLDER struct config_listener
static const struct schema_choice listener_protocols[] = {
    {"HTTP", CONFIG_HTTP, "HTTP/1.1, and HTTP/2 as `http2` says"},
    {"HTTPS", CONFIG_HTTPS, "the same over TLS"},
    {"H2C", CONFIG_H2C, "HTTP/2 without TLS, and nothing else"},
    {"TCP", CONFIG_TCP, "anything: bytes both ways"},
    {"UDP", CONFIG_UDP, "datagrams: a client's port is a session, which keeps its target"},
    {"TLS", CONFIG_TLS, "TLS that is passed on as it is, by the name that the client asks for"},
    {NULL}};
static const struct schema_key listener_keys[] = {
    TEXT("name", name, check_name, EXPECT_NAME, NULL,
         "label in metrics and logs, unique; unset: LOAD_BALANCER/PORT"),
    NUMBER("port", endpoint.port, 1, 65535, NULL, "port on the load balancer's vip"),
    TEXT("unix", endpoint.unix_path, check_unix_path, EXPECT_UNIX, NULL, "a unix socket in place of a port"),
    CHOICE("protocol", protocol, listener_protocols, "HTTP", "what clients speak"),
    SECTION("sources", sources, schema_sources, "which addresses may connect at all"),
    OPTIONAL("connection_rate", connection_rate, connection_rate.set, schema_connection_rate,
             "how many connections an address may make"),
    OPTIONAL("hsts", hsts, hsts.set, schema_hsts, "Strict-Transport-Security on answers (HTTPS)"),
    FLAG("security_headers", security_headers, "false",
         "X-Content-Type-Options: nosniff, X-Frame-Options: SAMEORIGIN and Referrer-Policy: "
         "strict-origin-when-cross-origin on answers that have none of them"),
    OPTIONAL("proxy_protocol", proxy_protocol, proxy_protocol.set, proxy_protocol_section,
             "clients are told by a proxy in front (PROXY protocol)"),
    TEXTS("certificates", certificate_names, n_certificates, check_name, EXPECT_NAME,
          "names of certificates (HTTPS); a client gets the one for the name it asks for, else the first"),
    SECTION("tls", tls, schema_listener_tls, "versions, protocols and tickets (HTTPS)"),
    TEXT("default_target_group", default_target_group_name, check_name, EXPECT_NAME, NULL,
         "target group of the requests that no rule takes; unset: 404"),
    OPTIONAL("redirect", redirect, redirect.set, redirect_section,
             "answers every request with another location"),
    ITEMS("rules", rules, n_rules, schema_rule, "which request goes where"),
    SECTION("timeouts", timeouts, listener_timeouts, "how long clients may take"),
    SECTION("limits", limits, listener_limits, "what clients may send"),
    SECTION("http2", http2, http2_section, "HTTP/2 with clients"),
    END};
static const struct schema_section listener_section = {.is_object = true,
                                                       .keys = listener_keys,
                                                       .bytes = sizeof(HOLDER),
                                                       .identity_offset = FIELD(name, struct slice),
                                                       .item = "a listener",
                                                       .doc =
                                                           "A port (or unix socket) where clients arrive."};
#undef HOLDER

#define HOLDER struct config_load_balancer
static const struct schema_key load_balancer_keys[] = {
    REQUIRED_TEXT("name", name, check_name, EXPECT_NAME, "label in metrics and logs, unique"),
    {KEY("vip", type_address, "address to listen on; unset: all, IPv4 and IPv6"),
     .offset = FIELD(vip, struct ip_addr)},
    ITEMS("listeners", listeners, n_listeners, listener_section, "where clients arrive"),
    END};
const struct schema_section schema_load_balancer = {.is_object = true,
                                                    .keys = load_balancer_keys,
                                                    .bytes = sizeof(HOLDER),
                                                    .identity_offset = FIELD(name, struct slice),
                                                    .item = "a load balancer",
                                                    .doc = "An address and its listeners."};
#undef HOLDER
