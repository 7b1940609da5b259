/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as plain values: what the file says and what the API will say, decoded, defaulted and
 * validated, with every reference resolved to an index. A config is immutable once built and lives in one
 * arena and the parts that it shares with those before it; compile/ makes of it what the workers read. Only
 * keys that work exist here. Defaults: config/schema.
 */
#ifndef ISOBAR_CONFIG_MODEL_H
#define ISOBAR_CONFIG_MODEL_H

#include "core/arena.h"
#include "core/ip.h"

#include "balance/method.h"
#include "balance/slow_start.h"

#include "config/model_guard.h"
#include "config/model_l4.h"
#include "config/model_tls.h"
#include "config/redis_url.h"

/* Where to listen or connect. */
struct config_endpoint {
    struct slice text;      /* as configured, for messages: "127.0.0.1:80", "[::1]:80", "unix:/run/x.sock" */
    struct slice unix_path; /* ptr NULL: IP */
    struct ip_addr ip;      /* family 0: all addresses (both families) */
    uint16_t port;
};

struct config_access_log {
    struct slice file;   /* "off", "stdout" or a path */
    struct slice format; /* "json" or a format string, see docs/configuration.md */
};

enum config_store_file {
    CONFIG_STORE_FILE_SEED, /* fills an empty store; afterwards the store rules */
    CONFIG_STORE_FILE_WINS, /* rules, and is recorded as a version */
};

/* Where the configuration is kept beside the file. Source: H1, H3. */
struct config_store {
    bool set;               /* false: no store, the file is the state */
    struct slice url;       /* "sqlite:/path" or "postgresql://..." */
    uint8_t file;           /* enum config_store_file */
    struct slice last_good; /* file of the last document in force; "off"; ptr NULL: by the kind of store */
    uint32_t timeout_ms;    /* of each call */
    uint32_t keep_versions;
};

struct config_timeouts_listener {
    uint32_t header_ms;    /* whole head, from its first byte (or the connection's start) */
    uint32_t body_ms;      /* without any progress of the request body */
    uint32_t idle_ms;      /* keep-alive between requests */
    uint32_t handshake_ms; /* of TLS, from the connection's start */
    uint32_t tunnel_ms;    /* upgraded connection without bytes in either direction */
};

enum config_proxy_others { CONFIG_OTHERS_REFUSED, CONFIG_OTHERS_PLAIN };

/* Who may say in a PROXY header whom a connection is from. */
struct config_proxy_protocol {
    bool set;
    struct ip_prefix *from;
    uint32_t n_from;
    enum config_proxy_others others; /* connections from elsewhere */
};

struct config_limits_listener {
    uint32_t header_bytes;
    uint32_t headers;
    uint32_t uri_bytes;
    uint64_t body_bytes;           /* 0: no limit */
    uint32_t connections;          /* over all workers; 0: no limit */
    uint32_t replies;              /* datagrams back for each of the client that end a session; 0: any */
    uint32_t min_rate_bytes_per_s; /* of a request body, judged over several seconds; 0: no limit */
};

struct config_pair {
    struct slice name, value;
};

struct config_match {
    struct slice host; /* exact or "*.suffix" (one label or more in front); lower case; ptr NULL: any */
    struct slice path; /* exact */
    struct slice path_prefix; /* "/v2/" */
    struct slice path_regex;  /* PCRE2, anchored by the operator */
    struct slice *methods;    /* any may match */
    uint32_t n_methods;
    /* All pairs must match; the value "*" asks for presence only. Names of headers are in lower case. */
    struct config_pair *headers;
    uint32_t n_headers;
    struct config_pair *cookies;
    uint32_t n_cookies;
    struct config_pair *query;
    uint32_t n_query;
    struct ip_prefix *sources; /* any may match */
    uint32_t n_sources;
    struct slice *sni; /* of TLS that passes through: exact or "*.suffix", lower case; any may match */
    uint32_t n_sni;
    struct slice *alpn; /* any may match */
    uint32_t n_alpn;
};

struct config_forward {
    uint32_t target_group;          /* index into config.target_groups */
    struct slice target_group_name; /* as written */
    uint32_t weight;                /* 0..65535 */
};

struct config_redirect {
    bool set;
    struct slice scheme, host, path; /* ptr NULL: as requested; "{path}" "{query}" "{host}" are filled in */
    uint16_t port;                   /* 0: none in the answer */
    uint16_t status;                 /* 301 302 303 307 308 */
};

struct config_respond {
    bool set;
    uint16_t status;
    struct slice body;
    struct config_pair *headers;
    uint32_t n_headers;
};

struct config_header_ops {
    struct config_pair *set;
    uint32_t n_set;
    struct config_pair *add;
    uint32_t n_add;
    struct slice *remove;
    uint32_t n_remove;
};

struct config_rewrite {
    struct slice path_prefix; /* replaces the matched path_prefix; ptr NULL: no change */
    struct slice host;        /* Host towards the target; ptr NULL: kept */
    struct config_header_ops request, response;
};

enum { CONFIG_LIMIT_REQUESTS_MAX = 1000000 };
enum config_limit_algorithm { CONFIG_LIMIT_TOKEN_BUCKET, CONFIG_LIMIT_SLIDING_WINDOW };

enum config_limit_scope { CONFIG_LIMIT_NODE, CONFIG_LIMIT_FLEET };
enum config_limit_away { CONFIG_LIMIT_ALONE, CONFIG_LIMIT_REFUSE };

/* How many requests each client may make under a rule. Source: F1. */
struct config_rate_limit {
    bool set;
    bool dry_run;      /* only counts */
    bool tells_all;    /* key headers: answers of targets say what remains, too */
    uint8_t algorithm; /* enum config_limit_algorithm */
    uint8_t scope;     /* enum config_limit_scope */
    uint8_t away;      /* enum config_limit_away: while the shared state is slow or away */
    struct slice
        *key;       /* parts, all together: "all", "client_ip", "header:NAME", "cookie:NAME", "query:NAME" */
    uint32_t n_key; /* 0: client_ip */
    uint32_t requests;  /* per period */
    uint32_t period_ms; /* key per_s */
    uint32_t burst;     /* 0: as many as requests */
    uint32_t max_clients;
};

/* One routing rule. Exactly one action: forward (n_forward > 0), redirect, respond or deny (deny_status !=
 * 0). */
struct config_rule {
    struct slice name; /* "" when the operator gave none */
    struct config_match match;
    struct config_forward *forward;
    uint32_t n_forward;
    struct config_redirect redirect;
    struct config_respond respond;
    uint16_t deny_status;
    struct config_rewrite rewrite;
    struct config_rate_limit rate_limit;
    struct config_sources sources;
    struct config_jwt jwt;
    struct config_basic_auth basic_auth;
};

/* TLS: passed on as it is; for listeners only. H2C and GRPC: HTTP/2 without TLS; for target groups only. */
enum config_protocol {
    CONFIG_HTTP,
    CONFIG_HTTPS,
    CONFIG_TCP,
    CONFIG_TLS,
    CONFIG_UDP,
    CONFIG_H2C,
    CONFIG_GRPC
};

/* Are bytes relayed, whatever they are? */
static inline bool config_is_relayed(enum config_protocol protocol)
{
    return protocol == CONFIG_TCP || protocol == CONFIG_TLS || protocol == CONFIG_UDP;
}

/* HTTP/2 with clients. */
struct config_http2 {
    bool cleartext;
    uint32_t max_streams;
};

struct config_listener {
    struct slice name; /* "LB/PORT" unless given; unique; label of the metrics */
    struct config_endpoint endpoint;
    enum config_protocol protocol;
    struct config_proxy_protocol proxy_protocol;
    struct config_sources sources;
    struct config_connection_rate connection_rate;
    struct config_hsts hsts;
    bool security_headers;
    struct config_timeouts_listener timeouts;
    struct config_limits_listener limits;
    struct config_http2 http2;
    struct config_rule *rules; /* in the file's order; route.c sorts by precedence */
    uint32_t n_rules;
    int32_t default_target_group;           /* index; -1: none, then 404 where no rule matches */
    struct slice default_target_group_name; /* as written; ptr NULL: none */
    struct config_redirect redirect;        /* of the whole listener */
    struct slice *certificate_names;        /* as written */
    uint32_t *certificates;                 /* [n_certificates]; indexes into config.certificates */
    uint32_t n_certificates;
    struct config_listener_tls tls;
};

struct config_load_balancer {
    struct slice name;
    struct ip_addr vip; /* of its listeners; family 0: all addresses */
    struct config_listener *listeners;
    uint32_t n_listeners;
};

/* DEEP is HTTP that asks for what the process depends on; without deep_ejects it only warns. Source: D1, D8.
 */
enum config_health_type {
    CONFIG_HEALTH_NONE,
    CONFIG_HEALTH_TCP,
    CONFIG_HEALTH_HTTP,
    CONFIG_HEALTH_DEEP,
    CONFIG_HEALTH_GRPC
};

struct config_status_range {
    uint16_t from, to;
};

struct config_health_check {
    enum config_health_type type;
    struct slice path, host, method;    /* host: ptr NULL is the target's own "ip:port" */
    struct config_status_range *expect; /* default 200-399 */
    uint32_t n_expect;
    struct slice expect_body;       /* substring within the first 64 KiB; ptr NULL: not looked at */
    struct slice expect_body_regex; /* key body_regex; PCRE2 over the same; ptr NULL: not looked at */
    struct ip_addr source;          /* that checks come from; family 0: any of the machine's */
    uint16_t port;                  /* 0: the target's */
    uint32_t interval_ms;           /* key interval_s */
    uint32_t down_interval_ms;      /* key down_interval_s; 0: as interval */
    uint32_t timeout_ms;
    uint32_t healthy_threshold, unhealthy_threshold;
    bool deep_ejects;
    struct slice service; /* of a grpc check; empty: the server as a whole */
    bool http2;           /* no key: without TLS the group's targets speak HTTP/2 */
};

enum config_affinity_type {
    CONFIG_AFFINITY_NONE,
    CONFIG_AFFINITY_COOKIE,    /* the cookie names the target */
    CONFIG_AFFINITY_SESSION,   /* a session cookie, mapped in a table */
    CONFIG_AFFINITY_CLIENT_IP, /* the client's address, mapped in a table */
};
enum config_cookie_id { CONFIG_COOKIE_OPAQUE, CONFIG_COOKIE_SIGNED, CONFIG_COOKIE_PLAIN };
enum config_same_site { CONFIG_SAME_SITE_LAX, CONFIG_SAME_SITE_STRICT, CONFIG_SAME_SITE_NONE };

struct config_affinity {
    uint8_t type;      /* enum config_affinity_type */
    uint8_t id;        /* enum config_cookie_id */
    uint8_t same_site; /* enum config_same_site */
    bool http_only, secure, cookie_max_age;
    struct slice cookie; /* its name */
    struct slice secret; /* signs the cookie */
    struct slice path, domain;
    uint32_t ttl_ms; /* key ttl_s */
    uint32_t max_sessions;
};

/* Passive checks: what real requests say of targets. */
struct config_outlier {
    uint32_t consecutive_5xx, consecutive_gateway_errors; /* 0: not looked at */
    uint32_t error_rate_pct;                              /* 0: not looked at */
    uint32_t min_requests;                                /* within the window, for a rate to say something */
    uint32_t window_ms;                                   /* key window_s */
    uint32_t base_ejection_ms, max_ejection_ms;           /* keys base_ejection_s, max_ejection_s */
    uint32_t max_ejection_pct;
    bool checks_end_ejection; /* healthy_threshold checks that passed bring a target back before its time */
};

enum config_hash_kind {
    CONFIG_HASH_CLIENT_IP,
    CONFIG_HASH_HEADER,
    CONFIG_HASH_COOKIE,
    CONFIG_HASH_QUERY,
    CONFIG_HASH_PATH
};

struct config_target {
    struct config_endpoint endpoint; /* of a name: its text (and port), no address until it is resolved */
    struct slice host;               /* ptr NULL: not named by a host */
    struct slice srv;                /* ptr NULL: not named by a service */
    uint32_t weight;
    bool backup, enabled;
    uint16_t order; /* of backups: the lowest that has a usable one serves; 0 but for targets of names */
    struct config_pair *tags;
    uint32_t n_tags;
};

/* Of the header that targets are told the client in; 0: none. */
enum config_proxy_version { CONFIG_PROXY_NONE, CONFIG_PROXY_V1, CONFIG_PROXY_V2 };

struct config_part;

struct config_target_group {
    struct slice name;
    enum config_protocol protocol;
    uint16_t port; /* of targets that name none; 0: none */
    enum config_proxy_version proxy_protocol;
    enum balance_method_id algorithm;
    enum config_hash_kind hash_kind;
    struct slice hash_name;
    struct config_group_tls tls;
    struct config_health_check health_check;
    struct config_outlier outlier;
    uint32_t panic_threshold_pct;
    uint32_t slow_start_ms; /* key slow_start_s; 0: none */
    enum slow_start_shape slow_start_shape;
    struct {
        uint32_t attempts; /* tries in all, the first included; 1: no retry */
        bool on_connect_failure, on_reset, on_refused_stream, on_gateway_error;
        uint32_t per_try_ms; /* until another target is tried; 0: only response_ms counts */
        uint32_t backoff_ms; /* before another try; 0: at once */
        uint32_t budget_pct; /* of requests that may be sent to a target a second time; connect failures are
                                free */
    } retry;
    struct {
        uint32_t connect_ms, response_ms, idle_ms;
    } timeouts; /* idle_ms: of pooled connections */
    struct {
        uint32_t connections; /* per target, over all workers; 0: no limit */
        uint32_t requests;    /* per target at the same time, over all workers; 0: no limit */
        uint32_t streams;     /* requests on one HTTP/2 connection */
        uint32_t pending;     /* requests of a group that may wait for a connection, over all workers */
        uint32_t pending_ms;
    } limits;
    struct config_affinity affinity;
    uint32_t deregistration_delay_ms; /* key deregistration_delay_s */
    struct config_target *targets;
    uint32_t n_targets;
    bool has_names;           /* some of the targets: they are resolved */
    struct config_part *part; /* shared (counted); owns what is pointed to from here; NULL: the config does */
};

/* Which addresses of a name become targets; with a preference the others become backups. */
enum config_family {
    CONFIG_FAMILY_PREFER_IPV4,
    CONFIG_FAMILY_PREFER_IPV6,
    CONFIG_FAMILY_IPV4,
    CONFIG_FAMILY_IPV6,
    CONFIG_FAMILY_ANY
};

struct config_resolver {
    struct slice *servers; /* "10.0.0.2:53", "[::1]:53"; none: those of the system */
    uint32_t n_servers;
    uint32_t min_ttl_ms, max_ttl_ms; /* keys min_ttl_s, max_ttl_s */
    enum config_family family;
};

struct config_admin {
    struct config_endpoint listen; /* port 0: any free one; text.ptr NULL: no admin listener */
    struct slice token_file;       /* ptr NULL: no tokens; then whoever reaches it may do everything */
    bool insecure;                 /* other machines may reach it without TLS */
    struct {
        bool set;
        struct slice cert_file, key_file; /* key_file.ptr NULL: the key is in cert_file */
        struct slice client_ca_file;      /* ptr NULL: clients show no certificate */
    } tls;
};

/* Where nodes keep what they share; not set: each keeps its own. */
struct config_shared_state {
    bool set;
    struct slice url;
    uint32_t timeout_ms;
    struct slice ca_file; /* of rediss://; ptr NULL: the system's authorities */
    /* from the url */
    struct redis_url server;
};

struct config {
    struct arena arena;    /* owns everything below, but for what parts own (config/part.h) */
    struct slice base_dir; /* where relative paths of the document began */
    uint32_t n_shares;     /* control thread only: holders beside the first, see config_share() */
    struct config_admin admin;
    uint32_t workers; /* 0: one per CPU */
    struct config_store store;
    struct ip_prefix *trusted_proxies;
    uint32_t n_trusted_proxies;
    bool via; /* adds Via: off by default */
    uint32_t
        lame_duck_ms; /* key lame_duck_s: serving on after SIGTERM, so that others notice and go elsewhere */
    uint32_t shutdown_ms;    /* key shutdown_s: how long SIGTERM waits for requests in flight */
    uint32_t watch_files_ms; /* key watch_files_s; 0: files are read again at a reload only */
    struct config_access_log access_log;
    struct config_resolver resolver;
    struct config_shared_state shared_state;
    struct config_load_balancer *load_balancers;
    uint32_t n_load_balancers;
    struct config_certificate *certificates;
    uint32_t n_certificates;
    struct config_target_group *target_groups;
    uint32_t n_target_groups;
    struct config_node *nodes;
    uint32_t n_nodes;
    struct config_l4 l4;
    struct config_decap decap;
};

/* On a packet node the listener's VIP is spread over the targets of its group, not over the nodes. */
static inline bool config_l4_has_targets(const struct config *config, const struct config_listener *listener)
{
    return config->l4.set && config->l4.reals == CONFIG_L4_TARGETS && listener->protocol == CONFIG_TCP &&
           listener->default_target_group >= 0;
}

#endif
