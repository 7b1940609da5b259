/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the table about rate limits. */
#include "config/schema_table.h"

static const struct schema_choice algorithms[] = {
    {"token_bucket", CONFIG_LIMIT_TOKEN_BUCKET,
     "burst requests at once, refilled evenly: the same average, bursts allowed"},
    {"sliding_window", CONFIG_LIMIT_SLIDING_WINDOW, "at most requests within any per_s seconds"},
    {NULL}};

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
    FLAG("dry_run", dry_run, "false", "only counts and logs what would be refused"),
    NUMBER("max_clients", max_clients, 16, 100000000, "65536",
           "known at the same time; 18 bytes each, as sliding_window 82; see rate-limits.md"),
    END};
const struct schema_section schema_rate_limit = {
    .keys = rate_limit_keys,
    .item = "a rate limit",
    .doc = "Refuses requests beyond a client's share with 429, before a target is chosen."};
#undef HOLDER
