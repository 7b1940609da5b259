/* SPDX-License-Identifier: Apache-2.0 */
/* The top of the table, and what is asked of it as a whole. */
#include "config/schema_table.h"

#define HOLDER struct config_admin
static const struct schema_key admin_tls_keys[] = {
    REQUIRED_TEXT("cert_file", tls.cert_file, check_file, EXPECT_FILE,
                  "PEM: the certificate, then its chain"),
    TEXT("key_file", tls.key_file, check_file, EXPECT_FILE, NULL,
         "PEM: its private key; unset: in cert_file"),
    TEXT("client_ca_file", tls.client_ca_file, check_file, EXPECT_FILE, NULL,
         "PEM: clients must show a certificate that one of these authorities signed"),
    END};
static const struct schema_section admin_tls = {.keys = admin_tls_keys,
                                                .item = "the admin listener's TLS section",
                                                .doc = "HTTPS on the admin listener."};

static const struct schema_key admin_keys[] = {
    {KEY("listen", type_endpoint, "where; port 0: any free one"),
     .offset = FIELD(listen, struct config_endpoint), .default_text = "127.0.0.1:8443"},
    TEXT("token_file", token_file, check_file, EXPECT_FILE, NULL,
         "bearer tokens, one a line: `ROLE TOKEN [NAME]`, where the role is read, operate or admin; unset: "
         "whoever reaches the address may do everything"),
    {.name = "tls",
     .type = &type_section,
     .present_offset = FIELD(tls.set, bool),
     .section = &admin_tls,
     .optional = true,
     .doc = "serves HTTPS"},
    FLAG("insecure", insecure, "false",
         "true: an address that other machines can reach is served without TLS, tokens included"),
    END};
static const struct schema_section admin_section = {
    .keys = admin_keys,
    .item = "an admin section",
    .doc =
        "The API, metrics and health of the balancer itself, on a thread of its own. An address that other "
        "machines can reach needs token_file, and tls or insecure: true."};
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

#define HOLDER struct config_resolver
static const struct schema_choice families[] = {
    {"prefer_ipv4", CONFIG_FAMILY_PREFER_IPV4, "IPv4; where there is one, IPv6 addresses are backups"},
    {"prefer_ipv6", CONFIG_FAMILY_PREFER_IPV6, "IPv6; where there is one, IPv4 addresses are backups"},
    {"ipv4", CONFIG_FAMILY_IPV4, "IPv4 only"},
    {"ipv6", CONFIG_FAMILY_IPV6, "IPv6 only"},
    {"any", CONFIG_FAMILY_ANY, "both alike"},
    {NULL}};
static const struct schema_key resolver_keys[] = {
    TEXTS("servers", servers, n_servers, check_dns_server, EXPECT_DNS_SERVER,
          "name servers, the first one first; unset: the system's hosts file and servers"),
    SECONDS("min_ttl_s", min_ttl_ms, 100, DAY_MS, "1", "a shorter TTL counts as this"),
    SECONDS("max_ttl_s", max_ttl_ms, 100, DAY_MS, "300", "a longer TTL counts as this"),
    CHOICE("family", family, families, "prefer_ipv4", "which addresses of a name become targets"), END};
static const struct schema_section resolver_section = {
    .keys = resolver_keys, .item = "a resolver", .doc = "How the names of targets are resolved, see dns.md."};
#undef HOLDER

#define HOLDER struct config_store
static const struct schema_choice store_files[] = {
    {"seed", CONFIG_STORE_FILE_SEED,
     "the file fills an empty store; afterwards the store rules, and what the file says otherwise is logged"},
    {"wins", CONFIG_STORE_FILE_WINS,
     "the file rules at every start and SIGHUP, and is recorded as a version"},
    {NULL}};
static const struct schema_key store_keys[] = {
    {KEY("url", type_text, "where versions of the configuration are kept"),
     .offset = FIELD(url, struct slice), .check = check_store_url, .expected = EXPECT_STORE_URL,
     .required = true, .secret = secret_in_url},
    CHOICE("file", file, store_files, "seed", "what the file is beside the store"),
    TEXT("last_good", last_good, check_off_or_file, "\"off\" or a file name", NULL,
         "file that keeps the last document in force, to start from while the store is away; unset: "
         "/var/lib/isobar/last-good.json for PostgreSQL, none for SQLite"),
    NUMBER("timeout_ms", timeout_ms, 100, 60000, "3000", "for each call of the store"),
    NUMBER("keep_versions", keep_versions, 2, 100000, "100",
           "older versions are dropped, those beyond 256 MiB too"),
    END};
static const struct schema_section store_section = {
    .keys = store_keys,
    .item = "a store section",
    .doc = "Where changes of the API are kept, see store.md. Without it the file is the state, and changes "
           "last until "
           "the next start. This section and admin come from the file of each node, never from the store."};
#undef HOLDER

#define HOLDER struct config
static const struct schema_key config_keys[] = {
    SECTION("admin", admin, admin_section, "API, metrics and health of the balancer itself"),
    NUMBER("workers", workers, 0, 1024, "0", "traffic threads; 0: one per CPU"),
    PREFIXES(
        "trusted_proxies", trusted_proxies, n_trusted_proxies,
        "hops in front of us whose X-Forwarded-* and X-Request-Id are believed and extended; those of all "
        "others are replaced"),
    FLAG("via", via, "false", "adds a Via field"),
    SECONDS("shutdown_s", shutdown_ms, 0, HOUR_MS, "30", "that SIGTERM waits for requests in flight"),
    SECONDS("lame_duck_s", lame_duck_ms, 0, HOUR_MS, "0",
            "that SIGTERM goes on serving, with /healthz at 503 and Connection: close on answers, before it "
            "stops"),
    SECONDS("watch_files_s", watch_files_ms, 0, DAY_MS, "30",
            "from one look to the next at certificates, keys and other files that are named here: those that "
            "changed are read again; 0: at a reload only"),
    SECTION("access_log", access_log, access_log_section, "one line for each request"),
    SECTION("resolver", resolver, resolver_section, "how the names of targets are resolved"),
    ITEMS("load_balancers", load_balancers, n_load_balancers, schema_load_balancer, "where clients arrive"),
    ITEMS("certificates", certificates, n_certificates, schema_certificate, "what TLS listeners show"),
    ITEMS("target_groups", target_groups, n_target_groups, schema_target_group, "where requests go"),
    {.name = "shared_state",
     .type = &type_section,
     .present_offset = FIELD(shared_state.set, bool),
     .offset = offsetof(HOLDER, shared_state),
     .section = &schema_shared_state,
     .optional = true,
     .doc = "a Redis where nodes share sessions"},
    ITEMS("nodes", nodes, n_nodes, schema_node, "machines behind the packet tier"),
    OPTIONAL("l4", l4, l4.set, schema_l4, "the packet tier on this machine"),
    {.name = "store",
     .type = &type_section,
     .present_offset = FIELD(store.set, bool),
     .offset = offsetof(HOLDER, store),
     .section = &store_section,
     .optional = true,
     .doc = "where versions of the configuration are kept"},
    OPTIONAL("decap", decap, decap.set, schema_decap,
             "what the packet tier sends here is taken out of its tunnel"),
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
    return schema_find(&schema_rule, SLICE("match"));
}

const struct schema_key *schema_rule_rate_limit(void)
{
    return schema_find(&schema_rule, SLICE("rate_limit"));
}

bool schema_is_section(const struct schema_key *key)
{
    return key->type == &type_section;
}

bool schema_is_list(const struct schema_key *key)
{
    return key->type == &type_items;
}
