/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the table about where requests go: target groups, their targets and checks. */
#include "config/schema_table.h"

static const struct schema_choice algorithms[] = {
#define METHOD(id, name, needs_hash, text) {name, BALANCE_##id, text},
#include "balance/methods.def"
#undef METHOD
    {NULL}};

static const struct schema_choice proxy_versions[] = {
    {"none", CONFIG_PROXY_NONE, "none"},
    {"v1", CONFIG_PROXY_V1, "a line of text"},
    {"v2", CONFIG_PROXY_V2, "binary, with what is known of TLS"},
    {NULL}};

static const struct schema_choice health_types[] = {
    {"none", CONFIG_HEALTH_NONE, "no checks: every target counts as healthy"},
    {"tcp", CONFIG_HEALTH_TCP, "a connection is accepted"},
    {"http", CONFIG_HEALTH_HTTP, "a request is answered with an expected status"},
    {"deep", CONFIG_HEALTH_DEEP,
     "the same of a path that checks dependencies: a failure is a warning, and takes nobody out"},
    {"grpc", CONFIG_HEALTH_GRPC, "gRPC's health service (grpc.health.v1.Health) answers SERVING"},
    {NULL}};

#define HOLDER struct config_health_check
static const struct schema_key expect_keys[] = {
    {KEY("status", type_statuses, "statuses that count as healthy"),
     .offset = FIELD(expect, struct config_status_range *), .count_offset = FIELD(n_expect, uint32_t),
     .default_text = "200-399"},
    TEXT("body", expect_body, NULL, NULL, NULL,
         "a text that the first 64 KiB of the body must contain; unset: the body is not looked at"),
    TEXT("body_regex", expect_body_regex, check_regex, EXPECT_REGEX, NULL,
         "a regular expression (PCRE2) that must match the first 64 KiB of the body, once it is whole; "
         "unset: none"),
    END};
static const struct schema_section expect_section = {
    .keys = expect_keys, .item = "an expectation", .doc = "What a healthy answer looks like (type http)."};

static const struct schema_key health_check_keys[] = {
    CHOICE("type", type, health_types, "tcp",
           "how targets are checked; unset, and path, method or expect is set: http"),
    TEXT("path", path, check_request_target, EXPECT_TARGET, "/", "what is asked for (http)"),
    TEXT("host", host, check_host, EXPECT_HOST, NULL,
         "Host of the check (http, grpc); unset: the target's own"),
    TEXT("service", service, check_grpc_service, EXPECT_GRPC_SERVICE, NULL,
         "whose health is asked for (grpc); unset: that of the server"),
    TEXT("method", method, check_method, "a method such as GET", "GET", "of the check (http)"),
    GROUPING("expect", expect_section, "what a healthy answer looks like (http)"),
    NUMBER("port", port, 1, 65535, NULL, "port that is checked; unset: the target's own"),
    {KEY("source", type_address,
         "address of this machine that checks come from; targets of the other family are checked from any, "
         "which "
         "unset: all are"),
     .offset = FIELD(source, struct ip_addr)},
    SECONDS("interval_s", interval_ms, 10, DAY_MS, "5", "from one check to the next"),
    SECONDS("down_interval_s", down_interval_ms, 0, DAY_MS, "0",
            "the same for a target that is down; 0: as interval_s"),
    NUMBER("timeout_ms", timeout_ms, 1, HOUR_MS, "2000", "until a check counts as failed"),
    NUMBER("healthy_threshold", healthy_threshold, 1, 100, "2", "successes in a row until a target is up"),
    NUMBER("unhealthy_threshold", unhealthy_threshold, 1, 100, "3",
           "failures in a row until a target is down"),
    FLAG("deep_ejects", deep_ejects, "false",
         "true: checks of type deep take targets out like others, see health.md before you do"),
    END};
static const struct schema_section health_check_section = {
    .keys = health_check_keys,
    .item = "a health check",
    .doc =
        "Checks of each target. Let them ask whether the process itself can serve, not whether its database "
        "or "
        "its neighbours can: a fault that all targets share would otherwise take all of them out at once."};
#undef HOLDER

#define HOLDER struct config_outlier
static const struct schema_key outlier_keys[] = {
    NUMBER("consecutive_5xx", consecutive_5xx, 0, 1000000, "5",
           "failures in a row of any kind (5xx, no answer) that eject a target; 0: not looked at"),
    NUMBER("consecutive_gateway_errors", consecutive_gateway_errors, 0, 1000000, "5",
           "the same of 502, 503, 504 and of requests without a usable answer; 0: not looked at"),
    NUMBER("error_rate_pct", error_rate_pct, 0, 100, "50",
           "share of failures within window_s that ejects a target; 0: not looked at"),
    NUMBER("min_requests", min_requests, 1, 1000000000, "100",
           "requests to a target within window_s before error_rate_pct says anything"),
    SECONDS("window_s", window_ms, 1000, MINUTE_MS, "10", "that error_rate_pct looks back"),
    SECONDS("base_ejection_s", base_ejection_ms, 10, DAY_MS, "30",
            "a first ejection; the next ones are twice, three times as long, and one is forgiven for each "
            "base_ejection_s without"),
    SECONDS("max_ejection_s", max_ejection_ms, 10, DAY_MS, "300", "the longest ejection"),
    NUMBER("max_ejection_pct", max_ejection_pct, 1, 100, "10",
           "of the targets that may be ejected at once, rounded down, but always one"),
    FLAG("checks_end_ejection", checks_end_ejection, "false",
         "true: healthy_threshold health checks that pass bring an ejected target back before its time; "
         "false: only "
         "when checks failed too since it was ejected"),
    END};
static const struct schema_section outlier_section = {
    .keys = outlier_keys,
    .item = "an outlier section",
    .doc = "Passive checks: targets whose answers to real requests are failures are ejected for a while."};
#undef HOLDER

#define HOLDER struct config_target_group
static const struct schema_choice slow_start_shapes[] = {
    {"linear", SLOW_START_LINEAR, "in proportion to the time"},
    {"stepped", SLOW_START_STEPPED, "10% for the first half, 50% for the second"},
    {NULL}};
static const struct schema_choice group_protocols[] = {
    {"HTTP", CONFIG_HTTP, "HTTP/1.1"},
    {"HTTPS", CONFIG_HTTPS, "the same over TLS, or HTTP/2 where `tls` offers it"},
    {"H2C", CONFIG_H2C, "HTTP/2 without TLS"},
    {"GRPC", CONFIG_GRPC, "the same, for gRPC"},
    {"TCP", CONFIG_TCP, "anything: bytes both ways"},
    {"UDP", CONFIG_UDP, "datagrams"},
    {NULL}};
static const struct schema_choice retry_causes[] = {
    {"connect_failure", FIELD(retry.on_connect_failure, bool), "no connection could be made"},
    {"reset", FIELD(retry.on_reset, bool), "the connection ended before any byte of an answer"},
    {"refused_stream", FIELD(retry.on_refused_stream, bool),
     "the target refused the request before it worked on it (HTTP/2: REFUSED_STREAM or GOAWAY)"},
    {"gateway_error", FIELD(retry.on_gateway_error, bool), "the target answered 502, 503 or 504"},
    {NULL}};
static const struct schema_key retry_keys[] = {
    NUMBER("attempts", retry.attempts, 1, 10, "2", "tries in all, the first included; 1: no retry"),
    {KEY("on", type_switches,
         "what is tried again, on another target where there is one, and never after a byte "
         "went to the client"),
     .choices = retry_causes, .default_text = "[connect_failure, reset, refused_stream]"},
    NUMBER("per_try_ms", retry.per_try_ms, 0, HOUR_MS, "0",
           "without the head of an answer until a request that may be repeated is tried elsewhere, while "
           "attempts and budget are left; response_ms holds all the same. 0: no such limit"),
    NUMBER("backoff_ms", retry.backoff_ms, 0, HOUR_MS, "0",
           "before a second try, twice as long before a third, at most 10 s, less a random part of up to a "
           "half; 0: at once"),
    NUMBER("budget_pct", retry.budget_pct, 0, 100, "20",
           "how many of 100 requests may be sent to a target a second time; tries that made no connection "
           "are not counted"),
    END};
static const struct schema_section retry_section = {
    .keys = retry_keys, .item = "a retry", .doc = "Trying a request again that failed."};

static const struct schema_key group_timeouts_keys[] = {
    NUMBER("connect_ms", timeouts.connect_ms, 1, HOUR_MS, "1000", "until a connection stands"),
    NUMBER("response_ms", timeouts.response_ms, 1, DAY_MS, "60000",
           "from the end of the request to the head of the answer (504)"),
    NUMBER("idle_ms", timeouts.idle_ms, 1, DAY_MS, "60000", "that an unused connection is kept"), END};
static const struct schema_section group_timeouts = {
    .keys = group_timeouts_keys, .item = "a target group's timeouts", .doc = "How long targets may take."};

static const struct schema_key group_limits_keys[] = {
    NUMBER("connections", limits.connections, 0, 10000000, "0",
           "to each target, over all workers; 0: no limit"),
    NUMBER("requests", limits.requests, 0, 10000000, "0",
           "that each target works on at the same time, over all workers; 0: no limit"),
    NUMBER("streams", limits.streams, 1, 1000000, "100",
           "on one HTTP/2 connection, if the target allows as many; then another is opened"),
    NUMBER("pending", limits.pending, 0, 10000000, "1024",
           "requests of the group that may wait until a target has room (503); 0: none, which fails fast"),
    NUMBER("pending_ms", limits.pending_ms, 1, HOUR_MS, "1000",
           "that a request may wait until a target has room (503)"),
    END};
static const struct schema_section group_limits = {
    .keys = group_limits_keys, .item = "a target group's limits", .doc = "What targets are given at most."};
#undef HOLDER

#define HOLDER struct config_affinity
static const struct schema_choice affinity_types[] = {
    {"none", CONFIG_AFFINITY_NONE, "the algorithm decides for every request"},
    {"cookie", CONFIG_AFFINITY_COOKIE, "a cookie names the target: no lookup, the same on every node"},
    {"session", CONFIG_AFFINITY_SESSION,
     "a session cookie, mapped in memory; until the client sends it, its address"},
    {"client_ip", CONFIG_AFFINITY_CLIENT_IP, "the client's address, mapped in memory"},
    {NULL}};
static const struct schema_choice cookie_ids[] = {
    {"opaque", CONFIG_COOKIE_OPAQUE, "a hash of its address"},
    {"signed", CONFIG_COOKIE_SIGNED, "that with a signature by `secret`"},
    {"plain", CONFIG_COOKIE_PLAIN, "its address"},
    {NULL}};
static const struct schema_choice same_sites[] = {
    {"lax", CONFIG_SAME_SITE_LAX, "sent along when a link of another site is followed"},
    {"strict", CONFIG_SAME_SITE_STRICT, "sent from pages of the same site only"},
    {"none", CONFIG_SAME_SITE_NONE, "sent always; browsers ask for `secure` too"},
    {NULL}};
static const struct schema_key affinity_keys[] = {
    CHOICE(
        "type", type, affinity_types, "none",
        "cookie: the cookie names the target; session: a session cookie, mapped in memory, and the client's "
        "address until it comes; client_ip: the address, mapped in memory"),
    TEXT("cookie", cookie, check_token, EXPECT_TOKEN, NULL,
         "name of the cookie; lb_server for cookie and lb_session for session when left out"),
    SECONDS("ttl_s", ttl_ms, 1000, DAY_MS, "1800", "that a mapping lives without being used"),
    CHOICE(
        "id", id, cookie_ids, "opaque",
        "of the target in the cookie: a hash of its address, that with a signature, or the address itself"),
    {KEY("secret", type_text, "signs the cookie; the same on every node"),
     .offset = FIELD(secret, struct slice), .check = check_cookie_attribute,
     .expected = EXPECT_COOKIE_ATTRIBUTE, .secret = secret_whole},
    NUMBER("max_sessions", max_sessions, 1024, 67108864, "262144", "mappings kept in memory, 20 bytes each"),
    TEXT("path", path, check_cookie_attribute, EXPECT_COOKIE_ATTRIBUTE, "/", "attribute Path of the cookie"),
    TEXT("domain", domain, check_cookie_attribute, EXPECT_COOKIE_ATTRIBUTE, NULL,
         "attribute Domain of the cookie"),
    CHOICE("same_site", same_site, same_sites, "lax", "attribute SameSite of the cookie"),
    FLAG("http_only", http_only, "true", "attribute HttpOnly of the cookie"),
    FLAG("secure", secure, "false", "attribute Secure of the cookie; for sites that are reached by TLS only"),
    FLAG("max_age", cookie_max_age, "false",
         "attribute Max-Age of the cookie, ttl_s; without it the cookie ends with the browser"),
    END};
static const struct schema_section affinity_section = {
    .keys = affinity_keys,
    .item = "an affinity",
    .doc = "Keeping a client with the target that served it first."};
#undef HOLDER

#define HOLDER struct config_target
static const struct schema_key target_keys[] = {
    {KEY("ip", type_address, "address of the target"), .offset = FIELD(endpoint.ip, struct ip_addr)},
    NUMBER("port", endpoint.port, 1, 65535, NULL, "port of the target"),
    TEXT("unix", endpoint.unix_path, check_unix_path, EXPECT_UNIX, NULL,
         "a unix socket in place of ip and port"),
    TEXT("host", host, check_target_host, EXPECT_TARGET_HOST, NULL,
         "a name in place of ip: each of its addresses is a target with these settings, and it is asked for "
         "again by its TTL, see dns.md"),
    TEXT("srv", srv, check_srv, EXPECT_SRV, NULL,
         "the name of a service (SRV) in place of ip and port: its records are targets, with their ports and "
         "weights; those of the first priority are used, and the others while none of them can be"),
    NUMBER("weight", weight, 0, BALANCE_WEIGHT_MAX, "100", "its share; 0: takes no new work"),
    FLAG("backup", backup, "false", "used only when no other target can be"),
    FLAG("enabled", enabled, "true", "false: takes no new work"),
    PAIRS("tags", tags, n_tags, check_token_name, NULL, "texts", "labels for people and for the API"),
    END};
static const struct schema_section target_section = {
    .keys = target_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = FIELD(endpoint.text, struct slice),
    .item = "a target",
    .doc = "One server: an address and a port, or a unix socket. Or a name, which stands for all servers it "
           "resolves to."};
#undef HOLDER

#define HOLDER struct config_target_group
static const struct schema_key target_group_keys[] = {
    REQUIRED_TEXT("name", name, check_name, EXPECT_NAME, "label in metrics and logs, unique"),
    CHOICE("protocol", protocol, group_protocols, "HTTP", "what targets speak"),
    NUMBER("port", port, 1, 65535, NULL, "port of the targets that name none"),
    CHOICE("proxy_protocol", proxy_protocol, proxy_versions, "none",
           "the header in which targets are told the client of each connection, before its first byte and "
           "before TLS"),
    SECTION("tls", tls, schema_group_tls, "how targets are verified (HTTPS)"),
    CHOICE("algorithm", algorithm, algorithms, "p2c_least_request", "how a target is chosen"),
    {KEY("hash_key", type_hash_key, "what is hashed by consistent_hash and maglev"), .expected = EXPECT_TOKEN,
     .check = check_token, .default_text = "client_ip"},
    SECTION("health_check", health_check, health_check_section, "how targets are checked"),
    SECTION("outlier", outlier, outlier_section, "when real requests take a target out"),
    NUMBER("panic_threshold_pct", panic_threshold_pct, 0, 100, "50",
           "with fewer usable targets than this share, health is ignored and requests go to all; 0: never"),
    SECONDS("slow_start_s", slow_start_ms, 0, DAY_MS, "0",
            "that a new or returning target takes to get its full share; 0: at once"),
    CHOICE("slow_start_shape", slow_start_shape, slow_start_shapes, "linear", "how its share grows"),
    GROUPING("retry", retry_section, "trying a request again that failed"),
    GROUPING("timeouts", group_timeouts, "how long targets may take"),
    SECTION("affinity", affinity, affinity_section, "keeping a client with its target"),
    SECONDS(
        "deregistration_delay_s", deregistration_delay_ms, 0, HOUR_MS, "300",
        "that requests and tunnels of a target that was removed or disabled may go on; then they are cut"),
    GROUPING("limits", group_limits, "what targets are given at most"),
    ITEMS("targets", targets, n_targets, target_section, "the servers"),
    END};
const struct schema_section schema_target_group = {
    .is_object = true,
    .keys = target_group_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = FIELD(name, struct slice),
    .is_shared = true,
    .part_offset = FIELD(part, struct config_part *),
    .item = "a target group",
    .doc = "Servers that do the same work, and how one of them is chosen."};
#undef HOLDER
