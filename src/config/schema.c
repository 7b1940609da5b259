/* SPDX-License-Identifier: Apache-2.0 */
/* The table. Each section names its holder in HOLDER; each line is KIND(key, field, ..., text for the
 * reference). The macros check that the field has the type which the kind writes. */
#include "config/schema.h"

#include "config/checks.h"
#include "config/types.h"

#define FIELD(field, type)                                                                                   \
    (uint32_t)(offsetof(HOLDER, field) +                                                                     \
               0 * sizeof(char[__builtin_types_compatible_p(typeof(((HOLDER *)0)->field), type) ? 1 : -1]))
#define WIDTH(field) (uint32_t)sizeof(((HOLDER *)0)->field)

#define KEY(key, kind, text) .name = (key), .type = &(kind), .present_offset = SCHEMA_NO_OFFSET, .doc = (text)

#define NUMBER(key, field, least, most, standard, text)                                                      \
    {                                                                                                        \
        KEY(key, type_number, text), .offset = offsetof(HOLDER, field), .size = WIDTH(field),                \
                                     .min = (least), .max = (most), .default_text = (standard)               \
    }
#define SECONDS(key, field, least_ms, most_ms, standard, text)                                               \
    {                                                                                                        \
        KEY(key, type_seconds, text), .offset = FIELD(field, uint32_t), .size = WIDTH(field),                \
                                      .min = (least_ms), .max = (most_ms), .default_text = (standard)        \
    }
#define FLAG(key, field, standard, text)                                                                     \
    {                                                                                                        \
        KEY(key, type_flag, text), .offset = FIELD(field, bool), .default_text = (standard)                  \
    }
#define TEXT(key, field, checker, wanted, standard, text)                                                    \
    {                                                                                                        \
        KEY(key, type_text, text), .offset = FIELD(field, struct slice), .check = (checker),                 \
                                   .expected = (wanted), .default_text = (standard)                          \
    }
#define REQUIRED_TEXT(key, field, checker, wanted, text)                                                     \
    {                                                                                                        \
        KEY(key, type_text, text), .offset = FIELD(field, struct slice), .check = (checker),                 \
                                   .expected = (wanted), .required = true                                    \
    }
#define CHOICE(key, field, table, standard, text)                                                            \
    {                                                                                                        \
        KEY(key, type_choice, text), .offset = offsetof(HOLDER, field), .size = WIDTH(field),                \
                                     .choices = (table), .default_text = (standard)                          \
    }
#define TEXTS(key, field, count, checker, wanted, text)                                                      \
    {                                                                                                        \
        KEY(key, type_texts, text), .offset = FIELD(field, struct slice *),                                  \
                                    .count_offset = FIELD(count, uint32_t), .check = (checker),              \
                                    .expected = (wanted)                                                     \
    }
#define PREFIXES(key, field, count, text)                                                                    \
    {                                                                                                        \
        KEY(key, type_prefixes, text), .offset = FIELD(field, struct ip_prefix *),                           \
                                       .count_offset = FIELD(count, uint32_t)                                \
    }
#define PAIRS(key, field, count, name_checker, checker, wanted, text)                                        \
    {                                                                                                        \
        KEY(key, type_pairs, text), .offset = FIELD(field, struct config_pair *),                            \
                                    .count_offset = FIELD(count, uint32_t), .check_name = (name_checker),    \
                                    .check = (checker), .expected = (wanted)                                 \
    }
#define SECTION(key, field, table, text)                                                                     \
    {                                                                                                        \
        KEY(key, type_section, text), .offset = offsetof(HOLDER, field), .section = &(table)                 \
    }
/* A section whose keys belong to the same holder. */
#define GROUPING(key, table, text)                                                                           \
    {                                                                                                        \
        KEY(key, type_section, text), .section = &(table)                                                    \
    }
#define OPTIONAL(key, field, present, table, text)                                                           \
    {                                                                                                        \
        .name = (key), .type = &type_section, .present_offset = FIELD(present, bool),                        \
        .offset = offsetof(HOLDER, field), .section = &(table), .optional = true, .doc = (text)              \
    }
#define ITEMS(key, field, count, table, text)                                                                \
    {                                                                                                        \
        KEY(key, type_items, text), .offset = offsetof(HOLDER, field),                                       \
                                    .count_offset = FIELD(count, uint32_t), .section = &(table)              \
    }
#define END                                                                                                  \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }

#define MINUTE_MS 60000
#define HOUR_MS   3600000
#define DAY_MS    86400000

static const struct schema_choice protocols[] = {{"HTTP", CONFIG_HTTP, "HTTP/1.1"}, {NULL}};

static const struct schema_choice redirect_statuses[] = {
    {"301", 301, "moved for good; clients may turn POST into GET"},
    {"302", 302, "moved for a while; clients may turn POST into GET"},
    {"303", 303, "look there with GET"},
    {"307", 307, "moved for a while; method and body stay"},
    {"308", 308, "moved for good; method and body stay"},
    {NULL}};

static const struct schema_choice algorithms[] = {
#define METHOD(id, name, needs_hash, text) {name, BALANCE_##id, text},
#include "balance/methods.def"
#undef METHOD
    {NULL}};

static const struct schema_choice health_types[] = {
    {"none", CONFIG_HEALTH_NONE, "no checks: every target counts as healthy"},
    {"tcp", CONFIG_HEALTH_TCP, "a connection is accepted"},
    {"http", CONFIG_HEALTH_HTTP, "a request is answered with an expected status"},
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
    PAIRS("set_headers", request.set, request.n_set, check_own_field, check_field_value, "field values",
          "request fields that replace those of the same name"),
    PAIRS("add_headers", request.add, request.n_add, check_own_field, check_field_value, "field values",
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
    PAIRS("headers", headers, n_headers, check_field_name, check_field_value, "field values",
          "all of these request fields, compared exactly; \"*\": present"),
    PAIRS("cookies", cookies, n_cookies, check_token_name, check_field_value, "cookie values",
          "all of these cookies; \"*\": present"),
    PAIRS("query", query, n_query, NULL, NULL, "values", "all of these query parameters; \"*\": present"),
    PREFIXES("source", sources, n_sources, "the client's address is in any of these"),
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
    END};
static const struct schema_section rule_section = {
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
    NUMBER("idle_ms", idle_ms, 1, DAY_MS, "60000", "between two requests of a connection"),
    NUMBER("tunnel_ms", tunnel_ms, 1, 7 * DAY_MS, "3600000",
           "of an upgraded connection without a byte in either direction"),
    END};
static const struct schema_section listener_timeouts = {
    .keys = listener_timeouts_keys, .item = "a listener's timeouts", .doc = "How long clients may take."};
#undef HOLDER

#define HOLDER struct config_limits_listener
static const struct schema_key listener_limits_keys[] = {
    NUMBER("header_bytes", header_bytes, 512, 65536, "32768", "of a request's head (431)"),
    NUMBER("headers", headers, 8, 256, "100", "number of fields in a request's head (431)"),
    NUMBER("uri_bytes", uri_bytes, 64, 65536, "8192", "of a request's target (414)"),
    NUMBER("body_bytes", body_bytes, 0, INT64_MAX, "0", "of a request's body (413); 0: no limit"),
    NUMBER("connections", connections, 0, 10000000, "0",
           "open at the same time, over all workers; 0: no limit"),
    NUMBER("min_rate_bytes_per_s", min_rate_bytes_per_s, 0, 1000000000, "100",
           "slowest request body that is waited for, judged over several seconds (408); 0: any"),
    END};
static const struct schema_section listener_limits = {
    .keys = listener_limits_keys, .item = "a listener's limits", .doc = "What clients may send."};
#undef HOLDER

#define HOLDER struct config_listener
static const struct schema_key listener_keys[] = {
    TEXT("name", name, check_name, EXPECT_NAME, NULL,
         "label in metrics and logs, unique; unset: LOAD_BALANCER/PORT"),
    NUMBER("port", endpoint.port, 1, 65535, NULL, "port on the load balancer's vip"),
    TEXT("unix", endpoint.unix_path, check_unix_path, EXPECT_UNIX, NULL, "a unix socket in place of a port"),
    CHOICE("protocol", protocol, protocols, "HTTP", "what clients speak"),
    TEXT("default_target_group", default_target_group_name, check_name, EXPECT_NAME, NULL,
         "target group of the requests that no rule takes; unset: 404"),
    OPTIONAL("redirect", redirect, redirect.set, redirect_section,
             "answers every request with another location"),
    ITEMS("rules", rules, n_rules, rule_section, "which request goes where"),
    SECTION("timeouts", timeouts, listener_timeouts, "how long clients may take"),
    SECTION("limits", limits, listener_limits, "what clients may send"),
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
static const struct schema_section load_balancer_section = {.is_object = true,
                                                            .keys = load_balancer_keys,
                                                            .bytes = sizeof(HOLDER),
                                                            .identity_offset = FIELD(name, struct slice),
                                                            .item = "a load balancer",
                                                            .doc = "An address and its listeners."};
#undef HOLDER

#define HOLDER struct config_health_check
static const struct schema_key expect_keys[] = {
    {KEY("status", type_statuses, "statuses that count as healthy"),
     .offset = FIELD(expect, struct config_status_range *), .count_offset = FIELD(n_expect, uint32_t),
     .default_text = "200-399"},
    TEXT("body", expect_body, NULL, NULL, NULL,
         "a text that the first 64 KiB of the body must contain; unset: the body is not looked at"),
    END};
static const struct schema_section expect_section = {
    .keys = expect_keys, .item = "an expectation", .doc = "What a healthy answer looks like (type http)."};

static const struct schema_key health_check_keys[] = {
    CHOICE("type", type, health_types, "tcp", "how targets are checked"),
    TEXT("path", path, check_request_target, EXPECT_TARGET, "/", "what is asked for (http)"),
    TEXT("host", host, check_host, EXPECT_HOST, NULL, "Host of the check (http); unset: the target's own"),
    TEXT("method", method, check_method, "a method such as GET", "GET", "of the check (http)"),
    GROUPING("expect", expect_section, "what a healthy answer looks like (http)"),
    NUMBER("port", port, 1, 65535, NULL, "port that is checked; unset: the target's own"),
    SECONDS("interval_s", interval_ms, 10, DAY_MS, "5", "from one check to the next"),
    SECONDS("down_interval_s", down_interval_ms, 0, DAY_MS, "0",
            "the same for a target that is down; 0: as interval_s"),
    NUMBER("timeout_ms", timeout_ms, 1, HOUR_MS, "2000", "until a check counts as failed"),
    NUMBER("healthy_threshold", healthy_threshold, 1, 100, "2", "successes in a row until a target is up"),
    NUMBER("unhealthy_threshold", unhealthy_threshold, 1, 100, "3",
           "failures in a row until a target is down"),
    END};
static const struct schema_section health_check_section = {
    .keys = health_check_keys,
    .item = "a health check",
    .doc =
        "Checks of each target. Let them ask whether the process itself can serve, not whether its database "
        "or "
        "its neighbours can: a fault that all targets share would otherwise take all of them out at once."};
#undef HOLDER

#define HOLDER struct config_target_group
static const struct schema_choice retry_causes[] = {
    {"connect_failure", FIELD(retry.on_connect_failure, bool), "no connection could be made"},
    {"reset", FIELD(retry.on_reset, bool), "the connection ended before any byte of an answer"},
    {"gateway_error", FIELD(retry.on_gateway_error, bool), "the target answered 502, 503 or 504"},
    {NULL}};
static const struct schema_key retry_keys[] = {
    NUMBER("attempts", retry.attempts, 1, 10, "2", "tries in all, the first included; 1: no retry"),
    {KEY("on", type_switches,
         "what is tried again, on another target where there is one, and never after a byte "
         "went to the client"),
     .choices = retry_causes, .default_text = "[connect_failure, reset]"},
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
    NUMBER("pending", limits.pending, 0, 10000000, "1024",
           "requests of the group that may wait for a connection (503)"),
    NUMBER("pending_ms", limits.pending_ms, 1, HOUR_MS, "1000",
           "that a request may wait for a connection (503)"),
    END};
static const struct schema_section group_limits = {
    .keys = group_limits_keys, .item = "a target group's limits", .doc = "What targets are given at most."};
#undef HOLDER

#define HOLDER struct config_target
static const struct schema_key target_keys[] = {
    {KEY("ip", type_address, "address of the target"), .offset = FIELD(endpoint.ip, struct ip_addr)},
    NUMBER("port", endpoint.port, 1, 65535, NULL, "port of the target"),
    TEXT("unix", endpoint.unix_path, check_unix_path, EXPECT_UNIX, NULL,
         "a unix socket in place of ip and port"),
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
    .doc = "One server: an address and a port, or a unix socket.",
    .hint_key = "host",
    .hint = "a target is named by \"ip\" and \"port\", or by \"unix\"; host names are not resolved"};
#undef HOLDER

#define HOLDER struct config_target_group
static const struct schema_key target_group_keys[] = {
    REQUIRED_TEXT("name", name, check_name, EXPECT_NAME, "label in metrics and logs, unique"),
    CHOICE("protocol", protocol, protocols, "HTTP", "what targets speak"),
    CHOICE("algorithm", algorithm, algorithms, "p2c_least_request", "how a target is chosen"),
    {KEY("hash_key", type_hash_key, "what is hashed by consistent_hash and maglev"), .expected = EXPECT_TOKEN,
     .check = check_token, .default_text = "client_ip"},
    SECTION("health_check", health_check, health_check_section, "how targets are checked"),
    GROUPING("retry", retry_section, "trying a request again that failed"),
    GROUPING("timeouts", group_timeouts, "how long targets may take"),
    GROUPING("limits", group_limits, "what targets are given at most"),
    ITEMS("targets", targets, n_targets, target_section, "the servers"),
    END};
static const struct schema_section target_group_section = {
    .is_object = true,
    .keys = target_group_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = FIELD(name, struct slice),
    .item = "a target group",
    .doc = "Servers that do the same work, and how one of them is chosen."};
#undef HOLDER

#define HOLDER struct config
static const struct schema_key admin_keys[] = {{KEY("listen", type_endpoint, "where; port 0: any free one"),
                                                .offset = FIELD(admin, struct config_endpoint),
                                                .default_text = "127.0.0.1:8443"},
                                               END};
static const struct schema_section admin_section = {
    .keys = admin_keys,
    .item = "an admin section",
    .doc = "Metrics and health of the balancer itself, on a thread of its own; reachable from this machine "
           "only."};
#undef HOLDER

#define HOLDER struct config_access_log
static const struct schema_key access_log_keys[] = {
    TEXT("file", file, check_log_file, "\"off\", \"stdout\" or a file name", "off",
         "where lines go; a file is appended to"),
    TEXT("format", format, check_log_format, EXPECT_LOG_FORMAT, "json",
         "what a line holds, see access-log.md"),
    END};
static const struct schema_section access_log_section = {
    .keys = access_log_keys, .item = "an access log", .doc = "One line for each request."};
#undef HOLDER

#define HOLDER struct config_node
static const struct schema_choice node_states[] = {
    {"up", CONFIG_NODE_UP, "takes flows by its weight"},
    {"drain", CONFIG_NODE_DRAIN, "takes no new flows; old ones stay for move_window_s"},
    {"down", CONFIG_NODE_DOWN, "takes nothing; its flows go to others at once"},
    {NULL}};
static const struct schema_key node_keys[] = {
    REQUIRED_TEXT("name", name, check_name, EXPECT_NAME,
                  "what the Maglev table hashes, unique, never changed"),
    {KEY("ip", type_address, "where the tunnel ends"), .offset = FIELD(ip, struct ip_addr), .required = true},
    NUMBER("weight", weight, 0, BALANCE_WEIGHT_MAX, "100", "its share; 0: takes no new flows"),
    CHOICE("state", state, node_states, "up", "whether it takes traffic"),
    NUMBER("server_id", server_id, 0, 0xffffffff, "0", "what names it in QUIC connection ids; 0: nothing"),
    END};
static const struct schema_section node_section = {
    .keys = node_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = FIELD(name, struct slice),
    .item = "a node",
    .doc = "A machine behind the packet tier: it takes the tunnelled packets of VIPs and answers clients "
           "itself."};
#undef HOLDER

#define HOLDER struct config_l4_vip
static const struct schema_choice l4_protocols[] = {
    {"TCP", CONFIG_L4_TCP, "TCP"}, {"UDP", CONFIG_L4_UDP, "UDP"}, {NULL}};
static const struct schema_choice l4_hashes[] = {
    {"flow", CONFIG_L4_HASH_FLOW, "addresses, ports and protocol"},
    {"source", CONFIG_L4_HASH_SOURCE, "the client's address: all its flows go to one node"},
    {"port", CONFIG_L4_HASH_PORT, "the destination port alone"},
    {NULL}};
static const struct schema_choice l4_vip_tables[] = {
    {"node", CONFIG_L4_AS_NODE, "as l4.flow_table says"},
    {"moved", CONFIG_L4_MOVED, "only flows of slots that changed their owner lately"},
    {"always", CONFIG_L4_ALWAYS, "every flow"},
    {"never", CONFIG_L4_NEVER, "none"},
    {NULL}};
static const struct schema_key l4_vip_keys[] = {
    {KEY("address", type_prefixes, "address or prefix, or a list of them"),
     .offset = FIELD(addresses, struct ip_prefix *), .count_offset = FIELD(n_addresses, uint32_t),
     .required = true},
    NUMBER("port", port, 0, 65535, "0", "port; 0: every port"),
    CHOICE("protocol", protocol, l4_protocols, "TCP", "TCP or UDP"),
    CHOICE("flow_table", flow_table, l4_vip_tables, "node", "which flows are remembered"),
    CHOICE("hash", hash, l4_hashes, "flow", "what decides the node of a flow"),
    FLAG("quic", quic, "false", "UDP: the server id in the connection id decides, where there is one"),
    FLAG("fragments", fragments, "false",
         "true: fragments are forwarded, and hash is source; false: dropped"),
    TEXTS("nodes", nodes, n_nodes, check_name, EXPECT_NAME, "names of nodes; unset: all"),
    END};
static const struct schema_section l4_vip_section = {
    .keys = l4_vip_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = SCHEMA_NO_OFFSET,
    .item = "a VIP of the packet tier",
    .doc = "A VIP beside those of load_balancers that have a vip."};
#undef HOLDER

#define HOLDER struct config_l4
static const struct schema_choice l4_modes[] = {
    {"native", CONFIG_L4_NATIVE, "in the driver, or not at all"},
    {"generic", CONFIG_L4_GENERIC, "in the kernel's network stack: any interface, several times the cost"},
    {"native_or_generic", CONFIG_L4_NATIVE_OR_GENERIC, "generic where the driver cannot, with a warning"},
    {NULL}};
static const struct schema_choice l4_encapsulations[] = {
    {"ipip", CONFIG_L4_IPIP, "IP in IP"},
    {"gue", CONFIG_L4_GUE, "UDP, then the packet (GUE variant 1)"},
    {NULL}};
static const struct schema_choice l4_tables[] = {
    {"moved", CONFIG_L4_MOVED, "only flows of slots that changed their owner lately"},
    {"always", CONFIG_L4_ALWAYS, "every flow"},
    {"never", CONFIG_L4_NEVER, "none"},
    {NULL}};
static const struct schema_choice l4_scopes[] = {{"node", CONFIG_L4_SHARED, "one table for all CPUs"},
                                                 {"cpu", CONFIG_L4_PER_CPU, "a table for each CPU"},
                                                 {NULL}};
static const struct schema_key announce_keys[] = {
    TEXT("bird", announce.bird, NULL, NULL, NULL, "control socket of BIRD 2; unset: nothing is announced"),
    TEXT("file", announce.file, NULL, NULL, "/run/isobar-l4/bird.conf",
         "written by isobar and included by bird.conf: static protocols isobar4 and isobar6 with the VIPs"),
    FLAG("without_reals", announce.without_reals, "false", "false: VIPs without a usable node are withdrawn"),
    END};
static const struct schema_section announce_section = {
    .keys = announce_keys,
    .item = "an announcement",
    .doc = "How routers learn that this node takes the VIPs."};
static const struct schema_key l4_keys[] = {
    TEXTS("interfaces", interfaces, n_interfaces, NULL, NULL, "where packets for VIPs arrive"),
    TEXT("pin", pin, NULL, NULL, "/sys/fs/bpf/isobar-l4", "folder on a bpf file system; one for each node"),
    CHOICE("mode", mode, l4_modes, "native", "where the XDP program runs"),
    TEXT("gateway_mac", gateway_mac, check_mac, EXPECT_MAC, "auto",
         "next hop of tunnel packets; auto: back to where the packet came from"),
    CHOICE("encapsulation", encapsulation, l4_encapsulations, "ipip", "the tunnel to nodes"),
    NUMBER("gue_port", gue_port, 1, 65535, "6080", "destination port of GUE"),
    {KEY("gue_source_v4", type_address, "source of GUE packets to IPv4 nodes"),
     .offset = FIELD(gue_source_v4, struct ip_addr)},
    {KEY("gue_source_v6", type_address, "source of GUE packets to IPv6 nodes"),
     .offset = FIELD(gue_source_v6, struct ip_addr)},
    PREFIXES("tunnel_sources", tunnel_sources, n_tunnel_sources,
             "source of IP-in-IP packets, one prefix a family; the bits behind it vary by flow. "
             "Unset: 198.18.0.0/16 and 100::/64"),
    CHOICE("flow_table", flow_table, l4_tables, "moved", "which flows are remembered"),
    CHOICE("flow_scope", flow_scope, l4_scopes, "node", "whether CPUs share the flow table"),
    NUMBER("flow_entries", flow_entries, 1024, 1 << 26, "1048576", "size of the flow table, 16 bytes each"),
    NUMBER("flow_inserts_per_s", flow_inserts_per_s, 0, 100000000, "250000",
           "entries that a CPU may write in a second"),
    NUMBER("table_size", table_size, 3, 1 << 24, "65537",
           "slots of a Maglev table, a prime; equal on all nodes"),
    NUMBER("move_window_s", move_window_s, 1, 86400, "300",
           "how long a slot remembers its owner of before, and a drained node keeps its flows"),
    NUMBER("max_packet", max_packet, 0, 65535, "0",
           "largest packet of a client; 0: what the interface's MTU leaves beside the tunnel header"),
    FLAG("too_big_replies", too_big_replies, "true", "larger ones are answered with the size that fits"),
    NUMBER("hash_seed", hash_seed, 0, 0x7fffffffffffffff, "0", "secret of the hash; equal on all nodes"),
    NUMBER("linger_s", linger_s, 0, 3600, "5", "that a leaving node goes on forwarding after the withdrawal"),
    GROUPING("announce", announce_section, "how routers learn that this node takes the VIPs"),
    ITEMS("vips", vips, n_vips, l4_vip_section, "VIPs beside those of load_balancers"),
    END};
static const struct schema_section l4_section = {
    .keys = l4_keys, .item = "an l4 section", .doc = "The packet tier on this machine (isobar l4)."};
#undef HOLDER

#define HOLDER struct config
static const struct schema_key config_keys[] = {
    GROUPING("admin", admin_section, "metrics and health of the balancer itself"),
    NUMBER("workers", workers, 0, 1024, "0", "traffic threads; 0: one per CPU"),
    PREFIXES(
        "trusted_proxies", trusted_proxies, n_trusted_proxies,
        "hops in front of us whose X-Forwarded-* and X-Request-Id are believed and extended; those of all "
        "others are replaced"),
    FLAG("via", via, "false", "adds a Via field"),
    SECONDS("shutdown_s", shutdown_ms, 0, HOUR_MS, "30", "that SIGTERM waits for requests in flight"),
    SECTION("access_log", access_log, access_log_section, "one line for each request"),
    ITEMS("load_balancers", load_balancers, n_load_balancers, load_balancer_section, "where clients arrive"),
    ITEMS("target_groups", target_groups, n_target_groups, target_group_section, "where requests go"),
    ITEMS("nodes", nodes, n_nodes, node_section, "machines behind the packet tier"),
    OPTIONAL("l4", l4, l4.set, l4_section, "the packet tier on this machine"),
    END};
const struct schema_section schema_config = {
    .keys = config_keys, .item = "a configuration", .doc = "The keys at the top of the document."};
#undef HOLDER

const struct schema_key *schema_find(const struct schema_section *section, struct slice name)
{
    for (const struct schema_key *key = section->keys; key->name; key++)
        if (slice_eq(slice_str(key->name), name))
            return key;
    return NULL;
}

const struct schema_key *schema_rule_match(void)
{
    return schema_find(&rule_section, SLICE("match"));
}

bool schema_is_section(const struct schema_key *key)
{
    return key->type == &type_section;
}

bool schema_is_list(const struct schema_key *key)
{
    return key->type == &type_items;
}
