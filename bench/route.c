/* SPDX-License-Identifier: Apache-2.0 */
/* What a request costs between parsing and sending: finding its rule among 1, 10 and 1,000, drawing a target
 * group, the forwarded fields, and writing the head; and what a pattern costs at its limits. The best of
 * several rounds, in nanoseconds, with everything hot in the cache. */
#include "core/clock.h"
#include "http1/parse.h"
#include "http1/write.h"
#include "route/route.h"
#include "route/route_pattern.h"
#include "transform/forwarded.h"
#include "transform/rewrite.h"

#include <stdio.h>

enum { ROUNDS = 30, TURNS_PER_ROUND = 20000 };

static const char small[] = "GET /svc-7/items/4711?page=2 HTTP/1.1\r\n"
                            "Host: h7.example:8080\r\n"
                            "User-Agent: curl/8.5.0 test\r\n"
                            "Accept: */*\r\n"
                            "Accept-Encoding: gzip\r\n\r\n";

static const char browser[] =
    "GET /svc-7/catalogue/shoes/index.html?colour=blue&size=44&sort=price HTTP/1.1\r\n"
    "Host: h7.example\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 "
    "Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Referer: https://www.shop.example/catalogue/shoes\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: session=0123456789abcdef0123456789abcdef; lb_server=web-3; consent=all\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "Sec-Fetch-Dest: document\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Priority: u=0, i\r\n\r\n";

static const char chained[] = "GET /svc-7/items/4711?page=2 HTTP/1.1\r\n"
                              "Host: h7.example:8080\r\n"
                              "X-Forwarded-For: 198.51.100.7\r\n"
                              "X-Request-Id: 0198c0ff-ee42-7abc-8def-0123456789ab\r\n"
                              "Accept: */*\r\n\r\n";

static struct http_message msg;
static char out[8192], room[1024];
static struct rng rng;
static struct ip_addr client = {.family = 4, .bytes = {203, 0, 113, 77}};

static void parse(const char *head)
{
    static const struct h1_limits limits = {.head_bytes = 16384, .uri_bytes = 8192, .fields = 100};
    size_t used;
    enum http_reject why;
    iso_assert(h1_parse_request(head, strlen(head), &limits, &msg, &used, &why) == H1_COMPLETE);
}

/* Prints the best round of `statement`. */
#define MEASURE(name, statement)                                                                             \
    do {                                                                                                     \
        double best_ns_ = 1e9;                                                                               \
        for (int round_ = 0; round_ < ROUNDS; round_++) {                                                    \
            uint64_t begin_ns_ = clock_mono_ns();                                                            \
            for (int turn_ = 0; turn_ < TURNS_PER_ROUND; turn_++) {                                          \
                statement;                                                                                   \
                __asm__ volatile("" ::: "memory");                                                           \
            }                                                                                                \
            double ns_ = (double)(clock_mono_ns() - begin_ns_) / TURNS_PER_ROUND;                            \
            best_ns_ = ns_ < best_ns_ ? ns_ : best_ns_;                                                      \
        }                                                                                                    \
        printf("%-52s %8.1f ns\n", name, best_ns_);                                                          \
    } while (0)

typedef void rule_fn(struct arena *arena, struct config_rule *rule, uint32_t i);

static void by_prefix(struct arena *arena, struct config_rule *rule, uint32_t i)
{
    rule->match.path_prefix = slice_str(arena_printf(arena, "/svc-%u/", i));
}

static void by_host(struct arena *arena, struct config_rule *rule, uint32_t i)
{
    rule->match.host = slice_str(arena_printf(arena, "h%u.example", i));
}

static void by_wildcard(struct arena *arena, struct config_rule *rule, uint32_t i)
{
    rule->match.host = slice_str(i == 7 ? "*.example" : arena_printf(arena, "*.w%u.example", i));
}

static void by_host_prefix_and_header(struct arena *arena, struct config_rule *rule, uint32_t i)
{
    by_host(arena, rule, i);
    by_prefix(arena, rule, i);
    rule->match.headers = arena_new(arena, struct config_pair);
    rule->match.headers[0] = (struct config_pair){SLICE("accept-encoding"), SLICE("*")};
    rule->match.n_headers = 1;
}

static void by_pattern(struct arena *arena, struct config_rule *rule, uint32_t i)
{
    rule->match.path_regex = slice_str(arena_printf(arena, "^/svc-%u/[a-z]+/", i));
}

static void measure_rules(const char *kind, uint32_t n, rule_fn *fill)
{
    struct arena arena;
    struct iso_diag diag;
    struct route_table *table;
    struct route_scratch *scratch = route_scratch_new();
    arena_init(&arena);
    diag_init(&diag);
    struct config_listener listener = {.rules = arena_array(&arena, struct config_rule, n), .n_rules = n};
    for (uint32_t i = 0; i < n; i++)
        fill(&arena, &listener.rules[i], n == 1 ? 7 : i); /* the request is for the seventh */
    iso_err err = route_compile(&listener, &arena, &table, &diag);
    iso_assert(!err);
    char name[80];
    snprintf(name, sizeof(name), "match, %u rules by %s", n, kind);
    if (n > 0)
        iso_assert(route_match(table, &msg, &client, scratch) == &listener.rules[n == 1 ? 0 : 7]);
    MEASURE(name, route_match(table, &msg, &client, scratch));
    route_table_fini(table);
    route_scratch_free(scratch);
    diag_fini(&diag);
    arena_fini(&arena);
}

static void measure_matching(void)
{
    static const uint32_t counts[] = {1, 10, 1000};
    parse(small);
    measure_rules("path prefix", 0, by_prefix);
    for (size_t i = 0; i < iso_countof(counts); i++) {
        measure_rules("path prefix", counts[i], by_prefix);
        measure_rules("host", counts[i], by_host);
        measure_rules("wildcard host", counts[i], by_wildcard);
        measure_rules("host, path prefix and header", counts[i], by_host_prefix_and_header);
        measure_rules("pattern", counts[i], by_pattern);
    }
    struct config_forward forward[] = {{.target_group = 0, .weight = 95}, {.target_group = 1, .weight = 5}};
    struct config_rule rule = {.forward = forward, .n_forward = 2};
    MEASURE("draw one of 2 target groups", route_forward(&rule, &rng));
}

static void apply(bool trusted, uint32_t n_fields)
{
    struct forwarded_facts facts = {.peer = &client, .peer_trusted = trusted, .local_port = 8080};
    struct scratch scratch = {room, room + sizeof(room)};
    bool fits = forwarded_apply(&facts, &msg, 0x0198c0ffee42, &rng, &scratch);
    iso_assert(fits);
    msg.n_fields = n_fields;
}

static void apply_to_chain(uint32_t n_fields)
{
    apply(true, n_fields);
    for (uint32_t i = 0; i < n_fields; i++)
        msg.fields[i].flags = 0;
}

static void rewrite(const struct config_rule *rule, const struct http_message *before)
{
    struct scratch scratch = {room, room + sizeof(room)};
    bool fits = rewrite_request(rule, &msg, &scratch);
    iso_assert(fits);
    memcpy(&msg, before, offsetof(struct http_message, fields));
}

static void measure_fields(void)
{
    parse(small);
    uint32_t n = msg.n_fields;
    MEASURE("forwarded fields, 4 received", apply(false, n));
    parse(browser);
    n = msg.n_fields;
    MEASURE("forwarded fields, 14 received", apply(false, n));
    parse(chained);
    n = msg.n_fields;
    MEASURE("forwarded fields, from a trusted proxy", apply_to_chain(n));

    struct config_pair set[] = {{SLICE("X-Env"), SLICE("prod")}};
    struct config_rule rule = {.match.path_prefix = SLICE("/svc-7/"),
                               .rewrite = {.path_prefix = SLICE("/"), .request = {.set = set, .n_set = 1}}};
    parse(small);
    struct http_message before = msg;
    MEASURE("rewrite of path prefix and one field", rewrite(&rule, &before));
}

static void measure_writing(void)
{
    struct scratch scratch = {room, room + sizeof(room)};
    struct forwarded_facts facts = {.peer = &client, .local_port = 8080};
    size_t n = 0;
    char name[80];
    parse(small);
    iso_assert(forwarded_apply(&facts, &msg, 0, &rng, &scratch));
    snprintf(name, sizeof(name), "write a request of %zu bytes", h1_write_request(out, sizeof(out), &msg));
    MEASURE(name, n += h1_write_request(out, sizeof(out), &msg));
    parse(browser);
    scratch.at = room;
    iso_assert(forwarded_apply(&facts, &msg, 0, &rng, &scratch));
    snprintf(name, sizeof(name), "write a request of %zu bytes", h1_write_request(out, sizeof(out), &msg));
    MEASURE(name, n += h1_write_request(out, sizeof(out), &msg));

    static const char answer[] = "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 29 Nov 2026 21:00:00 GMT\r\n"
                                 "Content-Type: application/json\r\nContent-Length: 512\r\n\r\n";
    static const struct h1_limits limits = {.head_bytes = 16384, .uri_bytes = 8192, .fields = 100};
    size_t used;
    enum http_reject why;
    iso_assert(h1_parse_response(answer, sizeof(answer) - 1, &limits, HTTP_GET, &msg, &used, &why) ==
               H1_COMPLETE);
    snprintf(name, sizeof(name), "write a response of %zu bytes",
             h1_write_response(out, sizeof(out), &msg, 1, false));
    MEASURE(name, n += h1_write_response(out, sizeof(out), &msg, 1, false));
    iso_assert(n > 0);
}

static void measure_pattern(const char *text, size_t len)
{
    static char path[8192] = "/";
    struct pattern_scratch *scratch = pattern_scratch_new();
    struct pattern *pattern;
    char fault[PATTERN_FAULT_MAX];
    iso_err err = pattern_compile(slice_str(text), &pattern, fault);
    iso_assert(!err);
    memset(path + 1, 'a', sizeof(path) - 1);
    path[len - 1] = '!';
    uint64_t best_ns = UINT64_MAX;
    enum pattern_result result = PATTERN_NO_MATCH;
    for (int round = 0; round < 10; round++) {
        uint64_t begin_ns = clock_mono_ns();
        result = pattern_match(pattern, slice_of(path, len), scratch);
        uint64_t ns = clock_mono_ns() - begin_ns;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    static const char *const results[] = {"no match", "match", "gave up"};
    printf("pattern %-32s %4zu bytes, %-9s %8.1f us\n", text, len, results[result], (double)best_ns / 1000);
    pattern_free(pattern);
    pattern_scratch_free(scratch);
}

static void measure_patterns(void)
{
    static const char *const texts[] = {"^/(a+)+$",         "(a|aa)+$",
                                        "^/.*.*.*.*[bc]$",  "[^/]+[-.](php|cgi)$",
                                        "(?=(.*a))\\1[bc]", "[a-z]*?[a-z]*?[a-z]*?[89]"};
    static const size_t lengths[] = {64, 2048, 8000};
    for (size_t i = 0; i < iso_countof(texts); i++)
        for (size_t l = 0; l < iso_countof(lengths); l++)
            measure_pattern(texts[i], lengths[l]);
}

int main(void)
{
    rng_init(&rng, 1);
    measure_matching();
    measure_fields();
    measure_writing();
    measure_patterns();
    return 0;
}
