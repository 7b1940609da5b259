/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the table about what is counted and kept beyond one request: rate limits, and where nodes share
 * what they keep. */
#include "config/schema_table.h"

static const struct schema_choice algorithms[] = {
    {"token_bucket", CONFIG_LIMIT_TOKEN_BUCKET,
     "burst requests at once, refilled evenly: the same average, bursts allowed"},
    {"sliding_window", CONFIG_LIMIT_SLIDING_WINDOW, "at most requests within any per_s seconds"},
    {NULL}};

static const struct schema_choice scopes[] = {
    {"node", CONFIG_LIMIT_NODE, "each node counts by itself"},
    {"fleet", CONFIG_LIMIT_FLEET, "all nodes with the same shared_state together"},
    {NULL}};

static const struct schema_choice aways[] = {
    {"alone", CONFIG_LIMIT_ALONE, "each node counts by itself meanwhile"},
    {"refuse", CONFIG_LIMIT_REFUSE, "every request is refused with 503"},
    {NULL}};

static const struct schema_choice told[] = {
    {"refused", false, "only those who are refused"}, {"all", true, "answers of targets too"}, {NULL}};

#define HOLDER struct config_rate_limit
static const struct schema_key rate_limit_keys[] = {
    TEXTS(
        "key", key, n_key, check_limit_key, EXPECT_LIMIT_KEY,
        "what tells clients apart, all parts together; a request without one of them counts by its address; "
        "unset: client_ip"),
    {KEY("requests", type_number, "for each client in per_s seconds"), .offset = FIELD(requests, uint32_t),
     .size = WIDTH(requests), .min = 1, .max = CONFIG_LIMIT_REQUESTS_MAX, .required = true},
    SECONDS("per_s", period_ms, 1000, DAY_MS, "1", "that requests is counted over"),
    NUMBER("burst", burst, 0, CONFIG_LIMIT_REQUESTS_MAX, "0",
           "most at once (token_bucket); 0: as many as requests"),
    CHOICE("algorithm", algorithm, algorithms, "token_bucket", "how requests are counted"),
    CHOICE("scope", scope, scopes, "node", "who counts together"),
    CHOICE("when_away", away, aways, "alone", "with scope fleet, while the shared state is slow or away"),
    CHOICE("headers", tells_all, told, "refused", "who is told by RateLimit fields what remains"),
    FLAG("dry_run", dry_run, "false", "only counts and logs what would be refused"),
    NUMBER("max_clients", max_clients, 16, 100000000, "65536",
           "known at the same time; 18 bytes each, sliding_window 82, with scope fleet 37 more; see "
           "rate-limits.md"),
    END};
const struct schema_section schema_rate_limit = {
    .keys = rate_limit_keys,
    .item = "a rate limit",
    .doc = "Refuses requests beyond a client's share with 429, before a target is chosen."};
#undef HOLDER

#define HOLDER struct config_shared_state
static const struct schema_key shared_state_keys[] = {
    {KEY("url", type_text, "redis://[[user]:password@]host[:port][/db]; rediss:// over TLS; Redis or Valkey"),
     .offset = FIELD(url, struct slice), .required = true, .secret = secret_in_url},
    NUMBER("timeout_ms", timeout_ms, 1, 1000, "5",
           "that a request waits for a session's target; then the algorithm decides"),
    TEXT("ca_file", ca_file, check_file, EXPECT_FILE, NULL,
         "whose signature the server's certificate needs (rediss://); unset: the system's authorities"),
    END};
const struct schema_section schema_shared_state = {
    .keys = shared_state_keys,
    .item = "a shared state",
    .doc =
        "A Redis or Valkey where nodes share sessions, see affinity.md. While it is slow or away each node "
        "goes on by itself."};
#undef HOLDER
