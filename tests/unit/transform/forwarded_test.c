/* SPDX-License-Identifier: Apache-2.0 */
/* Requests are parsed and written by the real codec, so that what a test reads is what a target receives. */
#include "transform/forwarded.h"

#include "http1/parse.h"
#include "http1/write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct http_message msg;
static struct ip_prefix prefixes[2];
static struct forwarded_trust trust = {prefixes, 2};
static struct forwarded_facts facts;
static struct ip_addr peer;
static struct rng rng;
static char room[2048], head[4096], out[8192];

static int begin(void **state)
{
    assert_true(ip_prefix_parse(SLICE("10.0.0.0/8"), &prefixes[0]));
    assert_true(ip_prefix_parse(SLICE("2001:db8::/32"), &prefixes[1]));
    rng_init(&rng, 7);
    return 0;
}

static void parse(const char *fields)
{
    static const struct h1_limits limits = {65536, 8192, 250};
    enum http_reject why;
    size_t used;
    int len = snprintf(head, sizeof(head), "GET /x HTTP/1.1\r\nHost: shop.example:81\r\n%s\r\n", fields);
    assert_int_equal(h1_parse_request(head, (size_t)len, &limits, &msg, &used, &why), H1_COMPLETE);
}

static bool apply_in(const char *from, struct scratch scratch)
{
    assert_true(ip_parse(slice_str(from), &peer));
    facts = (struct forwarded_facts){
        .peer = &peer, .peer_trusted = forwarded_is_trusted(&trust, &peer), .local_port = 8080};
    return forwarded_apply(&facts, &msg, 0x0198c0ffee42, &rng, &scratch);
}

/* What the target gets behind Host, with the id that was made shown as <uuid>. */
static const char *forwarded(const char *from, const char *fields)
{
    static const char host[] = "GET /x HTTP/1.1\r\nHost: shop.example:81\r\n";
    parse(fields);
    assert_true(apply_in(from, (struct scratch){room, room + sizeof(room)}));
    size_t n = h1_write_request(out, sizeof(out), &msg);
    assert_in_range(n, 1, sizeof(out) - 1);
    out[n] = '\0';
    assert_memory_equal(out, host, sizeof(host) - 1);
    char *made = strstr(out, "0198c0ff-ee42-7");
    if (made) {
        memmove(made + 6, made + 36, strlen(made + 36) + 1);
        memcpy(made, "<uuid>", 6);
    }
    return out + sizeof(host) - 1;
}

#define OURS(ip)                                                                                             \
    "X-Forwarded-For: " ip "\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: shop.example:81\r\n"            \
    "X-Forwarded-Port: 8080\r\nX-Request-Id: <uuid>\r\n\r\n"

static void every_request_gets_our_fields_A4(void **state)
{
    assert_string_equal(forwarded("192.0.2.1", "Accept: */*\r\n"), "Accept: */*\r\n" OURS("192.0.2.1"));
    assert_string_equal(forwarded("2001:db9::1", ""), OURS("2001:db9::1"));
}

static void what_an_untrusted_peer_sent_is_replaced(void **state)
{
    assert_string_equal(forwarded("192.0.2.1",
                                  "X-Forwarded-For: 1.1.1.1\r\nx-forwarded-for: 2.2.2.2\r\n"
                                  "X-Forwarded-Proto: https\r\nX-Forwarded-Host: bank.example\r\n"
                                  "X-Forwarded-Port: 1\r\nX-Request-Id: mine\r\nX-Real-IP: 127.0.0.1\r\n"
                                  "Forwarded: for=127.0.0.1\r\nX-Kept: 1\r\n"),
                        "X-Kept: 1\r\n" OURS("192.0.2.1"));
}

static void a_trusted_peers_chain_becomes_one_field_with_the_peer_behind_it(void **state)
{
    assert_string_equal(forwarded("10.1.1.1",
                                  "X-Forwarded-For: 1.1.1.1, 2.2.2.2\r\nA: b\r\nX-Forwarded-For:\r\n"
                                  "X-Forwarded-For: 3.3.3.3\r\n"),
                        "A: b\r\n" OURS("1.1.1.1, 2.2.2.2, 3.3.3.3, 10.1.1.1"));
    assert_string_equal(forwarded("10.1.1.1", ""), OURS("10.1.1.1"));
}

static void what_else_a_trusted_peer_said_is_kept(void **state)
{
    static const char fields[] =
        "X-Forwarded-Proto: https\r\nX-Forwarded-Host: bank.example\r\nX-Forwarded-Port: 443\r\n"
        "X-Request-Id: abc-123\r\nX-Real-IP: 1.1.1.1\r\nForwarded: for=1.1.1.1\r\n";
    char expected[1024];
    snprintf(expected, sizeof(expected), "%sX-Forwarded-For: 10.1.1.1\r\n\r\n", fields);
    assert_string_equal(forwarded("10.1.1.1", fields), expected);
    assert_true(slice_eq(facts.request_id, SLICE("abc-123")));
}

static void a_trusted_peers_request_id_is_kept_only_when_sane(void **state)
{
    char fields[512];
    assert_string_equal(forwarded("10.1.1.1", "X-Request-Id: two words\r\n"), OURS("10.1.1.1"));
    assert_string_equal(forwarded("10.1.1.1", "X-Request-Id: \x80\r\n"), OURS("10.1.1.1"));
    assert_string_equal(forwarded("10.1.1.1", "X-Request-Id:\r\n"), OURS("10.1.1.1"));
    snprintf(fields, sizeof(fields), "X-Request-Id: %0129d\r\n", 1);
    assert_string_equal(forwarded("10.1.1.1", fields), OURS("10.1.1.1"));
    forwarded("10.1.1.1", "X-Request-Id: first\r\nX-Request-Id: second\r\n");
    assert_true(slice_eq(facts.request_id, SLICE("first")));
    assert_null(strstr(out, "second"));
}

static void connection_cannot_take_our_fields_away_C_037(void **state)
{
    assert_string_equal(
        forwarded("192.0.2.1", "Connection: close, X-Drop-Me, X-Forwarded-For, Host, Content-Length\r\n"
                               "X-Drop-Me: 1\r\nX-Forwarded-For: 1.1.1.1\r\nContent-Length: 3\r\n"
                               "Keep-Alive: 5\r\nProxy-Connection: x\r\nTE: gzip\r\n"),
        "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: shop.example:81\r\n"
        "X-Forwarded-Port: 8080\r\nX-Request-Id: <uuid>\r\nContent-Length: 3\r\n\r\n");
    assert_string_equal(forwarded("10.1.1.1", "Connection: X-Forwarded-For\r\nX-Forwarded-For: 1.1.1.1\r\n"),
                        OURS("1.1.1.1, 10.1.1.1"));
}

static void tls_is_https(void **state)
{
    parse("");
    assert_true(ip_parse(SLICE("192.0.2.1"), &peer));
    facts = (struct forwarded_facts){.peer = &peer, .tls = true, .local_port = 443};
    struct scratch scratch = {room, room + sizeof(room)};
    assert_true(forwarded_apply(&facts, &msg, 0, &rng, &scratch));
    struct http_field *proto = http_message_find(&msg, HTTP_FIELD_X_FORWARDED_PROTO);
    assert_true(slice_eq(http_field_value(proto), SLICE("https")));
}

static void a_unix_peer_is_unknown_and_has_no_port(void **state)
{
    parse("");
    peer = (struct ip_addr){0};
    facts = (struct forwarded_facts){.peer = &peer};
    struct scratch scratch = {room, room + sizeof(room)};
    assert_true(forwarded_apply(&facts, &msg, 0, &rng, &scratch));
    struct http_field *chain = http_message_find(&msg, HTTP_FIELD_X_FORWARDED_FOR);
    assert_true(slice_eq(http_field_value(chain), SLICE("unknown")));
    assert_null(http_message_find(&msg, HTTP_FIELD_X_FORWARDED_PORT));
}

static void without_a_host_there_is_no_forwarded_host(void **state)
{
    parse("");
    msg.authority = (struct slice){0};
    assert_true(apply_in("192.0.2.1", (struct scratch){room, room + sizeof(room)}));
    assert_null(http_message_find(&msg, HTTP_FIELD_X_FORWARDED_HOST));
}

static void request_ids_are_uuid_version_7_of_the_time_and_differ(void **state)
{
    char seen[1000][36];
    for (size_t i = 0; i < iso_countof(seen); i++) {
        parse("");
        assert_true(apply_in("192.0.2.1", (struct scratch){room, room + sizeof(room)}));
        const char *id = facts.request_id.ptr;
        assert_int_equal(facts.request_id.len, 36);
        assert_memory_equal(id, "0198c0ff-ee42-7", 15);
        assert_true(id[18] == '-' && id[23] == '-' && strchr("89ab", id[19]));
        for (size_t at = 0; at < 36; at++)
            assert_true(at == 8 || at == 13 || at == 18 || at == 23
                            ? id[at] == '-'
                            : strchr("0123456789abcdef", id[at]) != NULL);
        for (size_t before = 0; before < i; before++)
            assert_memory_not_equal(seen[before], id, 36);
        memcpy(seen[i], id, 36);
    }
}

static void too_little_room_is_refused_and_never_written_over(void **state)
{
    static const char *const peers[] = {"192.0.2.1", "10.1.1.1"};
    for (size_t p = 0; p < iso_countof(peers); p++) {
        bool fitted = false;
        for (size_t cap = 0; cap < 600; cap++) {
            char *exact = malloc(cap + 1);
            parse("X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2222::2222, 3.3.3.3\r\n");
            bool fits = apply_in(peers[p], (struct scratch){exact, exact + cap});
            assert_true(fits || !fitted);
            fitted = fits;
            free(exact);
        }
        assert_true(fitted);
    }
}

static void a_full_field_array_is_refused(void **state)
{
    parse("");
    while (http_message_add(&msg, SLICE("a"), SLICE("b")))
        continue;
    assert_false(apply_in("192.0.2.1", (struct scratch){room, room + sizeof(room)}));
}

static void assert_client(const char *from, const char *fields, const char *expected)
{
    struct ip_addr client, want;
    parse(fields);
    assert_true(ip_parse(slice_str(from), &peer) && ip_parse(slice_str(expected), &want));
    client = forwarded_client(&trust, &peer, &msg);
    if (!ip_eq(&client, &want)) {
        char text[IP_TEXT_MAX];
        fail_msg("from %s with %s: %.*s", from, fields, (int)ip_print(&client, text), text);
    }
}

static void an_untrusted_peer_is_the_client_whatever_it_says_C_134(void **state)
{
    assert_client("192.0.2.1", "X-Forwarded-For: 1.1.1.7\r\n", "192.0.2.1");
    assert_client("192.0.2.1", "X-Forwarded-For: 10.0.0.1\r\nX-Real-IP: 1.1.1.1\r\n", "192.0.2.1");
}

static void the_client_is_the_rightmost_untrusted_address_C_134(void **state)
{
    assert_client("10.0.0.1", "", "10.0.0.1");
    assert_client("10.0.0.1", "X-Forwarded-For: 6.6.6.6, 1.1.1.1\r\n", "1.1.1.1");
    assert_client("10.0.0.1", "X-Forwarded-For: 6.6.6.6 , 1.1.1.1,10.2.2.2 ,\t10.3.3.3\r\n", "1.1.1.1");
    assert_client("10.0.0.1", "X-Forwarded-For: 6.6.6.6\r\nA: b\r\nX-Forwarded-For: 1.1.1.1\r\n", "1.1.1.1");
    assert_client("10.0.0.1", "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 10.2.2.2\r\n", "1.1.1.1");
    assert_client("2001:db8::9", "X-Forwarded-For: 2001:db9::1, 2001:db8::1\r\n", "2001:db9::1");
    assert_client("10.0.0.1", "X-Forwarded-For: ::ffff:1.1.1.1\r\n", "1.1.1.1");
}

static void entries_may_have_ports_C_134(void **state)
{
    assert_client("10.0.0.1", "X-Forwarded-For: 1.1.1.1:80\r\n", "1.1.1.1");
    assert_client("10.0.0.1", "X-Forwarded-For: [2001:db9::1]:4711\r\n", "2001:db9::1");
    assert_client("10.0.0.1", "X-Forwarded-For: [2001:db9::1], 10.2.2.2:99999\r\n", "10.0.0.1");
}

static void an_entry_that_is_no_address_ends_the_walk_C_134(void **state)
{
    static const char *const bad[] = {
        "unknown",     "",          "1.1.1",     "1.1.1.1:", "1.1.1.1:x",   "_hidden",
        "for=1.1.1.1", "1.1.1.1;2", "[1.1.1.1]", "[::1",     "\"1.1.1.1\"", ":80"};
    for (size_t i = 0; i < iso_countof(bad); i++) {
        char fields[128];
        snprintf(fields, sizeof(fields), "X-Forwarded-For: 6.6.6.6, %s, 10.2.2.2\r\n", bad[i]);
        assert_client("10.0.0.1", fields, "10.2.2.2");
    }
}

static void a_chain_of_trusted_addresses_ends_at_the_leftmost_C_134(void **state)
{
    assert_client("10.0.0.1", "X-Forwarded-For: 10.4.4.4, 10.3.3.3, 10.2.2.2\r\n", "10.4.4.4");
}

static void long_chains_are_walked_whatever_their_count_C_134(void **state)
{
    static const int counts[] = {10, 20, 60, 200};
    for (size_t i = 0; i < iso_countof(counts); i++) {
        char fields[3500] = "X-Forwarded-For: 6.6.6.6, 1.1.1.1";
        for (int n = 0; n < counts[i]; n++)
            strcat(fields, ", 10.2.2.2");
        strcat(fields, "\r\n");
        assert_client("10.0.0.1", fields, "1.1.1.1");
    }
}

static void without_trusted_proxies_nobody_is_trusted(void **state)
{
    const struct forwarded_trust nobody = {0};
    parse("X-Forwarded-For: 1.1.1.1\r\n");
    assert_true(ip_parse(SLICE("10.0.0.1"), &peer));
    struct ip_addr client = forwarded_client(&nobody, &peer, &msg);
    assert_true(ip_eq(&client, &peer));
}

#define test(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(every_request_gets_our_fields_A4),
        test(what_an_untrusted_peer_sent_is_replaced),
        test(a_trusted_peers_chain_becomes_one_field_with_the_peer_behind_it),
        test(what_else_a_trusted_peer_said_is_kept),
        test(a_trusted_peers_request_id_is_kept_only_when_sane),
        test(connection_cannot_take_our_fields_away_C_037),
        test(tls_is_https),
        test(a_unix_peer_is_unknown_and_has_no_port),
        test(without_a_host_there_is_no_forwarded_host),
        test(request_ids_are_uuid_version_7_of_the_time_and_differ),
        test(too_little_room_is_refused_and_never_written_over),
        test(a_full_field_array_is_refused),
        test(an_untrusted_peer_is_the_client_whatever_it_says_C_134),
        test(the_client_is_the_rightmost_untrusted_address_C_134),
        test(entries_may_have_ports_C_134),
        test(an_entry_that_is_no_address_ends_the_walk_C_134),
        test(a_chain_of_trusted_addresses_ends_at_the_leftmost_C_134),
        test(long_chains_are_walked_whatever_their_count_C_134),
        test(without_trusted_proxies_nobody_is_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
