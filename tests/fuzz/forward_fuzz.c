/* SPDX-License-Identifier: Apache-2.0 */
/* A request's whole way through the proxy but for the sockets: parsed, routed, given the forwarded fields,
 * rewritten, written, and parsed again as its target would. The target must read one request with the framing
 * that was decided here, the very fields that were kept, and one X-Forwarded-For; the chosen rule must be the
 * one that a plain walk over all rules finds. The input is a request head. */
#include "http1/parse.h"
#include "http1/write.h"
#include "route/route.h"
#include "transform/forwarded.h"
#include "transform/rewrite.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define S(lit)                                                                                               \
    {                                                                                                        \
        ("" lit), sizeof(lit) - 1                                                                            \
    }

static struct slice methods[] = {S("POST"), S("PURGE")};
static struct config_pair headers[] = {{S("x-beta"), S("1")}, {S("accept"), S("*")}};
static struct config_pair cookies[] = {{S("ab"), S("b")}};
static struct config_pair query[] = {{S("v"), S("2")}};
static struct ip_prefix trusted[2];

static struct config_rule rules[] = {
    {.match.host = S("a.example")},
    {.match.host = S("*.example")},
    {.match.host = S("*.a.example")},
    {.match = {.host = S("a.example"), .path_prefix = S("/a/")}},
    {.match = {.host = S("*.example"), .path = S("/a")}},
    {.match.path = S("/")},
    {.match.path_prefix = S("/a")},
    {.match.path_prefix = S("/a/b/")},
    {.match.path_prefix = S("/ab")},
    {.match = {.path_prefix = S("/a"), .methods = methods, .n_methods = 2}},
    {.match = {.path_prefix = S("/a/b"), .headers = headers, .n_headers = 2}},
    {.match = {.path_prefix = S("/a/b"), .cookies = cookies, .n_cookies = 1}},
    {.match = {.path = S("/a/b"), .query = query, .n_query = 1}},
    {.match.path_regex = S("^/(x+)+y$"), .deny_status = 403},
    {.match.path_regex = S("[.]php$")},
};

static struct config_listener listener = {.rules = rules, .n_rules = iso_countof(rules)};
static const struct config_rule changes = {
    .match.path_prefix = S("/a"),
    .rewrite = {.path_prefix = S("/new"), .request = {.set = headers, .n_set = 1}}};
static const struct forwarded_trust trust = {trusted, iso_countof(trusted)};
static const struct h1_limits limits = {.head_bytes = 65536, .uri_bytes = 32768, .fields = 200};
static const struct h1_limits targets_limits = {.head_bytes = 1 << 20, .uri_bytes = 1 << 20, .fields = 256};

static struct route_table *table;
static struct route_scratch *scratch;
static struct http_message msg, again;
static char room[128 << 10], out[256 << 10];

static void set_up(void)
{
    static struct arena arena;
    struct iso_diag diag;
    arena_init(&arena);
    diag_init(&diag);
    iso_assert(route_compile(&listener, &arena, &table, &diag) == ISO_OK);
    diag_fini(&diag);
    scratch = route_scratch_new();
    iso_assert(ip_prefix_parse(SLICE("10.0.0.0/8"), &trusted[0]));
    iso_assert(ip_prefix_parse(SLICE("2001:db8::/32"), &trusted[1]));
}

/* Is the rule chosen no worse than any other that is free of further conditions? */
static void check_route(const struct config_rule *found)
{
    char lower[256];
    struct slice host = route_host(msg.authority), path = msg.path;
    if (host.len > sizeof(lower))
        return;
    for (size_t i = 0; i < host.len; i++)
        lower[i] = ascii_lower(host.ptr[i]);
    host.ptr = lower;
    bool is_a = slice_eq(host, SLICE("a.example"));
    bool is_sub = host.len > 10 && slice_ends(host, SLICE(".a.example"));
    bool is_example = host.len > 8 && slice_ends(host, SLICE(".example"));
    bool below_a = slice_eq(path, SLICE("/a")) || slice_starts(path, SLICE("/a/"));
    if (is_a)
        iso_assert(found == &rules[below_a ? 3 : 0]);
    else if (is_sub)
        iso_assert(found == &rules[2]);
    else if (is_example)
        iso_assert(found == &rules[slice_eq(path, SLICE("/a")) ? 4 : 1]);
    else if (slice_eq(path, SLICE("/")))
        iso_assert(found == &rules[5]);
    else if (below_a)
        iso_assert(found == &rules[6] || found == &rules[7] || (found >= &rules[9] && found <= &rules[12]));
    else if (slice_eq(path, SLICE("/ab")) || slice_starts(path, SLICE("/ab/")))
        iso_assert(found == &rules[8]);
    else
        iso_assert(!found || found == &rules[13] || found == &rules[14]);
}

static uint32_t count_kept(const struct http_message *message)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < message->n_fields; i++)
        n += !(message->fields[i].flags & HTTP_FIELD_DROP);
    return n;
}

static uint32_t count_id(const struct http_message *message, enum http_field_id id)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < message->n_fields; i++)
        n += message->fields[i].id == id && !(message->fields[i].flags & HTTP_FIELD_DROP);
    return n;
}

/* Host comes behind the others when it was made from the target's authority, which is compared itself. */
static bool is_compared(const struct http_field *f)
{
    return !(f->flags & HTTP_FIELD_DROP) && f->id != HTTP_FIELD_HOST;
}

/* The target's view must be ours, field by field. */
static void check_target(size_t written)
{
    enum http_reject why;
    size_t used;
    iso_assert(h1_parse_request(out, written, &targets_limits, &again, &used, &why) == H1_COMPLETE);
    iso_assert(used == written);
    iso_assert(slice_eq(again.method_text, msg.method_text));
    iso_assert(slice_eq(again.path, msg.path) && slice_eq(again.query, msg.query));
    iso_assert(again.framing == msg.framing && again.content_length == msg.content_length);
    iso_assert(again.expect_continue == msg.expect_continue && again.te_trailers == msg.te_trailers);
    iso_assert(again.upgrade == msg.upgrade && again.keep_alive);
    iso_assert(slice_eq(again.authority, msg.authority));
    iso_assert(count_id(&again, HTTP_FIELD_X_FORWARDED_FOR) == 1);
    iso_assert(count_id(&again, HTTP_FIELD_X_REQUEST_ID) == 1);
    iso_assert(count_id(&again, HTTP_FIELD_HOST) == 1);
    iso_assert(count_kept(&again) == count_kept(&msg) + (count_id(&msg, HTTP_FIELD_HOST) == 0));
    for (uint32_t i = 0, at = 0; i < msg.n_fields; i++) {
        const struct http_field *f = &msg.fields[i];
        if (!is_compared(f))
            continue;
        while (!is_compared(&again.fields[at]))
            at++;
        iso_assert(slice_eq(http_field_name(f), http_field_name(&again.fields[at])));
        iso_assert(slice_eq(http_field_value(f), http_field_value(&again.fields[at])));
        at++;
    }
}

static void check_redirect(void)
{
    static const struct config_redirect https = {.scheme = S("https")};
    struct scratch made = {room, room + sizeof(room)};
    struct slice location;
    iso_assert(rewrite_redirect(&https, &msg, false, &made, &location));
    if (route_host(msg.authority).len)
        iso_assert(slice_starts(location, SLICE("https://")));
    else
        iso_assert(location.ptr[0] == '/' && (location.len == 1 || location.ptr[1] != '/'));
    iso_assert(!memchr(location.ptr, '\r', location.len) && !memchr(location.ptr, '\n', location.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    enum http_reject why;
    size_t used;
    if (!table)
        set_up();
    if (h1_parse_request((const char *)data, len, &limits, &msg, &used, &why) != H1_COMPLETE)
        return 0;
    bool from_trusted = len & 1;
    struct ip_addr peer = {.family = 4, .bytes = {from_trusted ? 10 : 11, 1, 1, 1}};
    struct ip_addr client = forwarded_client(&trust, &peer, &msg);
    iso_assert(from_trusted ? client.family == 4 || client.family == 6 : ip_eq(&client, &peer));
    check_route(route_match(table, &msg, &client, scratch));
    check_redirect();

    struct rng rng;
    rng_init(&rng, len);
    struct scratch made = {room, room + sizeof(room)};
    struct forwarded_facts facts = {
        .peer = &peer, .peer_trusted = forwarded_is_trusted(&trust, &peer), .local_port = 80};
    if (!msg.authority.len) /* HTTP/1.0 without Host: the proxy then names the target */
        msg.authority = SLICE("target.example");
    iso_assert(forwarded_apply(&facts, &msg, 1, &rng, &made));
    if (len & 2 && route_prefix_has(SLICE("/a"), msg.path))
        iso_assert(rewrite_request(&changes, &msg, &made));
    size_t written = h1_write_request(out, sizeof(out), &msg);
    iso_assert(written > 0);
    check_target(written);
    return 0;
}
