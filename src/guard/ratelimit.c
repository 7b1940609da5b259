/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/ratelimit.h"

#include "config/schema.h"
#include "core/clock.h"
#include "worker/worker.h"

#include <stdio.h>

enum part_kind { PART_ALL, PART_CLIENT_IP, PART_HEADER, PART_COOKIE, PART_QUERY };

/* One thing that tells clients apart. */
struct ratelimit_part {
    enum part_kind kind;
    struct slice name; /* of the header, cookie or parameter */
};

enum { REPORTS_MAX = 4096 }; /* of one worker, on their way to the shared state's thread */

static const struct {
    const char *word;
    enum part_kind kind;
} part_words[] = {{"all", PART_ALL},
                  {"client_ip", PART_CLIENT_IP},
                  {"header", PART_HEADER},
                  {"cookie", PART_COOKIE},
                  {"query", PART_QUERY}};

static struct ratelimit_part parse_part(struct slice text)
{
    size_t colon = slice_find(text, ':');
    struct ratelimit_part part = {.kind = PART_CLIENT_IP};
    for (size_t i = 0; i < iso_countof(part_words); i++)
        if (slice_eq(slice_of(text.ptr, colon), slice_str(part_words[i].word)))
            part.kind = part_words[i].kind;
    if (colon < text.len)
        part.name = slice_of(text.ptr + colon + 1, text.len - colon - 1);
    return part;
}

static void add_parts(struct snap_limit *limit, struct arena *arena)
{
    uint32_t n = limit->config->n_key ? limit->config->n_key : 1;
    struct ratelimit_part *parts = arena_array(arena, struct ratelimit_part, n);
    parts[0].kind = PART_CLIENT_IP;
    for (uint32_t i = 0; i < limit->config->n_key; i++)
        parts[i] = parse_part(limit->config->key[i]);
    limit->parts = parts;
    limit->n_parts = n;
}

/* What must stay the same for a client's use to be kept over a reload: the listener, the rule by its name or,
 * without one, its match, and the limit itself. */
static void find_runtime(struct registry *registry, const struct snap_listener *listener,
                         const struct config_rule *rule, struct snap_limit *snap)
{
    const struct config_rate_limit *config = &rule->rate_limit;
    const struct schema_key *match = schema_rule_match(), *limit = schema_rule_rate_limit();
    struct limiter_policy policy = {.requests = config->requests,
                                    .period_ns = config->period_ms * NS_PER_MS,
                                    .burst = config->burst ? config->burst : config->requests,
                                    .is_fleet = config->scope == CONFIG_LIMIT_FLEET};
    if (config->algorithm == CONFIG_LIMIT_SLIDING_WINDOW)
        policy.algorithm = LIMITER_SLIDING_WINDOW;
    struct text name;
    text_init(&name);
    text_printf(&name, "%.*s\n", SLICE_ARG(listener->config->name));
    if (rule->name.len)
        text_add(&name, rule->name);
    else
        match->type->print(match, rule, SCHEMA_PLAIN, &name);
    text_printf(&name, "\n");
    limit->type->print(limit, rule, SCHEMA_PLAIN, &name);
    snap->runtime = registry_limit(registry, text_slice(&name), &policy, config->max_clients);
    snap->fleet_id = iso_hash64(text_slice(&name), 0);
    text_fini(&name);
}

/* Source: draft-ietf-httpapi-ratelimit-headers-10, 3. The window is given when it is of whole seconds. */
static struct slice print_policy(const struct config_rate_limit *config, struct arena *arena)
{
    char *text = config->period_ms % 1000 == 0 ? arena_printf(arena, "\"default\";q=%u;w=%u",
                                                              config->requests, config->period_ms / 1000)
                                               : arena_printf(arena, "\"default\";q=%u", config->requests);
    return slice_str(text);
}

void ratelimit_build(struct snapshot *snapshot, struct registry *registry, struct snap_listener *listener)
{
    const struct config_listener *config = listener->config;
    struct arena *arena = &snapshot->arena;
    listener->limits = arena_array(arena, struct snap_limit, config->n_rules + 1);
    listener->rule_limits = arena_alloc(arena, sizeof(*listener->rule_limits) * (config->n_rules + 1));
    for (uint32_t i = 0; i < config->n_rules; i++) {
        const struct config_rule *rule = &config->rules[i];
        if (!rule->rate_limit.set)
            continue;
        struct snap_limit *limit = &listener->limits[listener->n_limits++];
        limit->config = &rule->rate_limit;
        limit->label = rule->name.len ? rule->name : slice_str(arena_printf(arena, "rules/%u", i));
        limit->policy = print_policy(limit->config, arena);
        find_runtime(registry, listener, rule, limit);
        add_parts(limit, arena);
        listener->rule_limits[i] = limit;
    }
}

static unsigned hex_digit(char c)
{
    return c >= '0' && c <= '9'                    ? (unsigned)(c - '0')
           : (unsigned)(ascii_lower(c) - 'a') < 6u ? (unsigned)(ascii_lower(c) - 'a' + 10)
                                                   : 16;
}

/* A value of the query as the target will read it: "%41" and "A" must not be two clients. Into scratch with
 * room for any head. */
static struct slice decode_query(struct slice value, char *out)
{
    size_t n = 0;
    for (size_t i = 0; i < value.len; i++) {
        unsigned high, low;
        if (value.ptr[i] == '%' && i + 2 < value.len && (high = hex_digit(value.ptr[i + 1])) < 16 &&
            (low = hex_digit(value.ptr[i + 2])) < 16) {
            out[n++] = (char)(high << 4 | low);
            i += 2;
        } else {
            out[n++] = value.ptr[i] == '+' ? ' ' : value.ptr[i];
        }
    }
    return slice_of(out, n);
}

static bool read_part(const struct ratelimit_part *part, struct http_message *msg, char *scratch,
                      struct slice *value)
{
    struct http_field *field;
    switch (part->kind) {
    case PART_ALL:
        *value = SLICE("");
        return true;
    case PART_CLIENT_IP:
        return false;
    case PART_HEADER:
        field = http_message_find_name(msg, part->name);
        if (field)
            *value = http_field_value(field);
        return field != NULL;
    case PART_COOKIE:
        return http_message_cookie(msg, part->name, value);
    case PART_QUERY:
        if (!http_query_find(msg->query, part->name, value))
            return false;
        *value = decode_query(*value, scratch);
        return true;
    }
    return false;
}

/* The client's address (an IPv6 client owns its /64) also stands for a part that the request lacks. The kind
 * is mixed in behind the hash, so that no header's value can name another client's address. */
static uint64_t hash_part(const struct siphash_key *salt, const struct ratelimit_part *part,
                          struct http_message *msg, const struct ip_addr *ip, char *scratch)
{
    struct slice value;
    if (read_part(part, msg, scratch, &value))
        return hash_mix64(siphash(salt, value) + part->kind);
    value = slice_of((const char *)ip->bytes, ip->family == 6 ? 8 : 4);
    return hash_mix64(siphash(salt, value) + PART_CLIENT_IP);
}

static uint64_t client_key(const struct snap_limit *limit, const struct siphash_key *salt,
                           struct http_message *msg, const struct ip_addr *ip, char *scratch)
{
    uint64_t key = hash_part(salt, &limit->parts[0], msg, ip, scratch);
    for (uint32_t i = 1; i < limit->n_parts; i++)
        key = hash_mix64(key + hash_part(salt, &limit->parts[i], msg, ip, scratch));
    return key;
}

static void on_report_returned(struct loop *loop, void *arg)
{
    struct worker *worker = container_of(loop, struct worker, loop);
    slab_give(&worker->reports, arg);
}

/* What the client's bucket is called in the store: the same on every node, so without this process's secret.
 * 128 bits of the client, that nobody finds another one's name. */
static void name_bucket(const struct snap_limit *limit, struct http_message *msg,
                        const struct ip_addr *client, char *scratch, struct fleet_bucket *bucket)
{
    const struct siphash_key salts[] = {{limit->fleet_id, 1}, {limit->fleet_id, 2}};
    int n = snprintf(bucket->name, sizeof(bucket->name), "limit:%016lx:%016lx%016lx", limit->fleet_id,
                     client_key(limit, &salts[0], msg, client, scratch),
                     client_key(limit, &salts[1], msg, client, scratch));
    bucket->name_len = (uint16_t)n;
}

static void report(const struct snap_limit *limit, struct worker *worker, uint64_t key,
                   struct http_message *msg, const struct ip_addr *client)
{
    struct shared_report *sent = worker->reports.live < REPORTS_MAX ? slab_try_take(&worker->reports) : NULL;
    if (!sent) {
        limiter_answer(limit->runtime->limiter, key, worker->loop.now_ns, NULL);
        return;
    }
    sent->home = &worker->loop;
    sent->returned = on_report_returned;
    sent->bucket.limiter = limit->runtime->limiter;
    sent->bucket.key = key;
    name_bucket(limit, msg, client, worker->scratch, &sent->bucket);
    shared_state_report(limit->shared, sent);
}

void ratelimit_init(struct worker *worker)
{
    slab_init(&worker->reports, sizeof(struct shared_report));
}

void ratelimit_fini(struct worker *worker)
{
    slab_fini(&worker->reports);
}

uint32_t ratelimit_seconds(uint64_t ns)
{
    uint64_t s = (ns + NS_PER_S - 1) / NS_PER_S;
    return s ? (uint32_t)s : 1;
}

/* Source: RFC 6585 4; draft-ietf-httpapi-ratelimit-headers, version 7 for the three fields that most clients
 * know, version 10 for the two that are to replace them. Values go into texts[]. */
void ratelimit_print(const struct snap_limit *limit, uint32_t remaining, uint32_t next_s, uint32_t reset_s,
                     char texts[RATELIMIT_FIELDS][RATELIMIT_VALUE_MAX],
                     struct h1_pair fields[RATELIMIT_FIELDS])
{
    uint32_t most = limiter_policy(limit->runtime->limiter)->burst;
    int n[RATELIMIT_FIELDS];
    n[0] = snprintf(texts[0], RATELIMIT_VALUE_MAX, "%u", most);
    n[1] = snprintf(texts[1], RATELIMIT_VALUE_MAX, "%u", remaining);
    n[2] = snprintf(texts[2], RATELIMIT_VALUE_MAX, "%u", reset_s);
    n[4] = snprintf(texts[4], RATELIMIT_VALUE_MAX, "\"default\";r=%u;t=%u", remaining, next_s);
    fields[0] = (struct h1_pair){SLICE("RateLimit-Limit"), slice_of(texts[0], (size_t)n[0])};
    fields[1] = (struct h1_pair){SLICE("RateLimit-Remaining"), slice_of(texts[1], (size_t)n[1])};
    fields[2] = (struct h1_pair){SLICE("RateLimit-Reset"), slice_of(texts[2], (size_t)n[2])};
    fields[3] = (struct h1_pair){SLICE("RateLimit-Policy"), limit->policy};
    fields[4] = (struct h1_pair){SLICE("RateLimit"), slice_of(texts[4], (size_t)n[4])};
}

/* Takes one request from the client's share. */
static void take(const struct snap_limit *limit, struct worker *worker, struct http_message *msg,
                 const struct ip_addr *client, struct limiter_verdict *verdict)
{
    uint64_t now_ns = worker->loop.now_ns;
    uint64_t key = client_key(limit, &limit->runtime->salt, msg, client, worker->scratch);
    bool wants_report;
    if (!limit->shared || !shared_state_answers(limit->shared)) {
        limiter_take(limit->runtime->limiter, key, now_ns, verdict);
        return;
    }
    limiter_take_fleet(limit->runtime->limiter, key, now_ns, verdict, &wants_report);
    if (wants_report)
        report(limit, worker, key, msg, client);
}

enum exchange_end ratelimit_take(const struct snap_limit *limit, struct worker *worker,
                                 struct http_message *msg, const struct ip_addr *client,
                                 struct limiter_verdict *verdict)
{
    struct limit_counters *counters = &limit->runtime->workers[worker->index];
    if (limit->shared && !shared_state_answers(limit->shared)) {
        counter_add(&counters->alone, 1);
        if (limit->config->away == CONFIG_LIMIT_REFUSE)
            return END_RATE_UNKNOWN;
    }
    take(limit, worker, msg, client, verdict);
    if (verdict->passes) {
        counter_add(&counters->passed, 1);
        return END_NORMAL;
    }
    if (limit->config->dry_run) {
        counter_add(&counters->would_refuse, 1);
        return END_WOULD_RATE_LIMIT;
    }
    counter_add(&counters->refused, 1);
    return END_RATE_LIMITED;
}

enum exchange_end ratelimit_peek(const struct snap_limit *limit, struct http_message *msg,
                                 const struct ip_addr *client, char *scratch, uint64_t now_ns,
                                 struct limiter_verdict *verdict)
{
    uint64_t key = client_key(limit, &limit->runtime->salt, msg, client, scratch);
    bool is_alone = limit->shared && !shared_state_answers(limit->shared);
    *verdict = (struct limiter_verdict){0};
    if (is_alone && limit->config->away == CONFIG_LIMIT_REFUSE)
        return END_RATE_UNKNOWN;
    if (limit->shared && !is_alone)
        limiter_peek_fleet(limit->runtime->limiter, key, now_ns, verdict);
    else
        limiter_peek(limit->runtime->limiter, key, now_ns, verdict);
    return verdict->passes ? END_NORMAL : limit->config->dry_run ? END_WOULD_RATE_LIMIT : END_RATE_LIMITED;
}
