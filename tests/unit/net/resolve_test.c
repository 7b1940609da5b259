/* SPDX-License-Identifier: Apache-2.0 */
/* Against a name server on a thread of this program. */
#include "net/resolve.h"

#include "core/clock.h"
#include "core/slice.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { ANSWER_MAX = 512, TYPE_A = 1, TYPE_AAAA = 28, TYPE_SRV = 33, WAIT_MS = 20000 };

/* One record that is answered for a name; the server fails when there is none. */
struct record {
    char first; /* of the name: each name of these tests has a first letter of its own */
    uint16_t type;
    uint32_t ttl_s;
    const char *ip; /* A, AAAA */
    uint16_t priority, weight, port;
    char host; /* SRV: of "HOST.test" */
};

struct fixture {
    struct loop loop;
    struct resolve *resolve;
    int fd;
    pthread_t thread;
    char servers[32];
    pthread_mutex_t mutex; /* covers what follows */
    struct record records[8];
    bool is_garbage, ends;
    uint32_t n_changes; /* the loop's thread only */
};

static size_t put16(unsigned char *out, unsigned v)
{
    out[0] = (unsigned char)(v >> 8);
    out[1] = (unsigned char)v;
    return 2;
}

static size_t put_record(unsigned char *out, const struct record *record)
{
    size_t n = put16(out, 0xc00c); /* the question's name */
    n += put16(out + n, record->type);
    n += put16(out + n, 1);
    n += put16(out + n, record->ttl_s >> 16);
    n += put16(out + n, record->ttl_s & 0xffff);
    if (record->type == TYPE_SRV) {
        n += put16(out + n, 6 + 8);
        n += put16(out + n, record->priority);
        n += put16(out + n, record->weight);
        n += put16(out + n, record->port);
        memcpy(out + n, "\1?\4test", 8);
        out[n + 1] = (unsigned char)record->host;
        return n + 8;
    }
    size_t size = record->type == TYPE_A ? 4 : 16;
    n += put16(out + n, (unsigned)size);
    assert_int_equal(inet_pton(size == 4 ? AF_INET : AF_INET6, record->ip, out + n), 1);
    return n + size;
}

static size_t answer(struct fixture *f, unsigned char *data, size_t len)
{
    unsigned type = 0, n = 0;
    size_t at = 12;
    while (at < len && data[at])
        at += 1u + data[at];
    type = (unsigned)data[at + 1] << 8 | data[at + 2];
    at += 5;
    for (size_t i = 0; i < iso_countof(f->records); i++)
        if (f->records[i].first == (char)data[13] && f->records[i].type == type) {
            at += put_record(data + at, &f->records[i]);
            n++;
        }
    put16(data + 2, n ? 0x8180 : 0x8182); /* without records: SERVFAIL */
    put16(data + 6, n);
    put16(data + 8, 0);
    put16(data + 10, 0);
    if (f->is_garbage)
        memset(data + 12, 0xc0, at - 12);
    return at;
}

static void *serve(void *arg)
{
    struct fixture *f = arg;
    for (;;) {
        unsigned char data[ANSWER_MAX];
        struct sockaddr_in peer;
        socklen_t peer_len = sizeof(peer);
        ssize_t n = recvfrom(f->fd, data, 256, 0, (struct sockaddr *)&peer, &peer_len);
        pthread_mutex_lock(&f->mutex);
        bool ends = f->ends;
        size_t len = n > 17 ? answer(f, data, (size_t)n) : 0;
        pthread_mutex_unlock(&f->mutex);
        if (ends)
            return NULL;
        if (len)
            sendto(f->fd, data, len, 0, (struct sockaddr *)&peer, peer_len);
    }
}

static void on_change(void *owner)
{
    struct fixture *f = owner;
    f->n_changes++;
    loop_stop(&f->loop);
}

static const struct resolve_settings both = {
    .min_ttl_ms = 1000, .max_ttl_ms = 300000, .with_ipv4 = true, .with_ipv6 = true};

static void configure(struct fixture *f, struct resolve_settings settings)
{
    settings.servers = f->servers;
    assert_int_equal(resolve_configure(f->resolve, &settings), ISO_OK);
}

static struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    assert_non_null(f);
    pthread_mutex_init(&f->mutex, NULL);
    f->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *)&addr, len), 0);
    assert_int_equal(getsockname(f->fd, (struct sockaddr *)&addr, &len), 0);
    snprintf(f->servers, sizeof(f->servers), "127.0.0.1:%u", ntohs(addr.sin_port));
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
    assert_int_equal(loop_init(&f->loop), ISO_OK);
    f->resolve = resolve_new(&f->loop, on_change, f);
    return f;
}

static void fixture_free(struct fixture *f)
{
    resolve_free(&f->resolve);
    pthread_mutex_lock(&f->mutex);
    f->ends = true;
    pthread_mutex_unlock(&f->mutex);
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    close(f->fd);
    loop_fini(&f->loop);
    free(f);
}

/* Replaces what the server knows. */
static void set(struct fixture *f, const struct record *records, size_t n)
{
    pthread_mutex_lock(&f->mutex);
    memset(f->records, 0, sizeof(f->records));
    memcpy(f->records, records, n * sizeof(*records));
    pthread_mutex_unlock(&f->mutex);
}

#define SET(f, ...)                                                                                          \
    set(f, (const struct record[]){__VA_ARGS__},                                                             \
        sizeof((const struct record[]){__VA_ARGS__}) / sizeof(struct record))

static void add(struct fixture *f, enum resolve_kind kind, const char *name)
{
    resolve_add(f->resolve, &(struct resolve_name){kind, name}, 1);
    assert_true(resolve_settle(f->resolve, WAIT_MS));
}

/* "10.0.0.1:80/10*5 ..." with priority and weight of services. */
static const char *view(const struct fixture *f, enum resolve_kind kind, const char *name)
{
    static char out[512];
    struct resolve_view found;
    size_t n = 0;
    assert_true(resolve_find(f->resolve, kind, name, &found));
    out[0] = '\0';
    for (uint32_t i = 0; i < found.n; i++) {
        char ip[IP_TEXT_MAX];
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%s%.*s", i ? " " : "",
                              (int)ip_print(&found.addrs[i].ip, ip), ip);
        if (kind == RESOLVE_SRV)
            n += (size_t)snprintf(out + n, sizeof(out) - n, ":%u/%u*%u", found.addrs[i].port,
                                  found.addrs[i].priority, found.addrs[i].weight);
    }
    return out;
}

static void a_ttl_is_held_within_its_bounds(void **state)
{
    assert_int_equal(resolve_next_ms(&both, 0, 0), 1000);
    assert_int_equal(resolve_next_ms(&both, 1, 0), 1000);
    assert_int_equal(resolve_next_ms(&both, 60, 0), 60000);
    assert_int_equal(resolve_next_ms(&both, 300, 0), 300000);
    assert_int_equal(resolve_next_ms(&both, 86400, 0), 300000);
    assert_int_equal(resolve_next_ms(&both, UINT32_MAX, 0), 300000);
}

static void failures_are_repeated_at_growing_distances(void **state)
{
    static const uint32_t expected_ms[] = {1000, 2000, 4000, 8000, 16000, 30000, 30000};
    for (uint32_t i = 0; i < iso_countof(expected_ms); i++)
        assert_int_equal(resolve_next_ms(&both, UINT32_MAX, i + 1), expected_ms[i]);
    struct resolve_settings slow = {.min_ttl_ms = 5000, .max_ttl_ms = 10000};
    assert_int_equal(resolve_next_ms(&slow, 0, 1), 5000);
    assert_int_equal(resolve_next_ms(&slow, 0, 9), 10000);
}

static void a_host_has_the_addresses_of_both_families_in_order(void **state)
{
    struct fixture *f = fixture_new();
    SET(f, {'a', TYPE_A, 60, "10.0.0.2"}, {'a', TYPE_AAAA, 60, "2001:db8::1"}, {'a', TYPE_A, 60, "10.0.0.1"});
    configure(f, both);
    add(f, RESOLVE_HOST, "a.test");
    assert_string_equal(view(f, RESOLVE_HOST, "a.test"), "10.0.0.1 10.0.0.2 2001:db8::1");
    fixture_free(f);
}

/* Asks again at once, as if its TTL had passed: other servers do, and the same one twice is another list. */
static void ask_again(struct fixture *f)
{
    struct resolve_settings settings = both;
    struct resolve_view before, after;
    char servers[72];
    resolve_find(f->resolve, RESOLVE_HOST, "a.test", &before);
    snprintf(servers, sizeof(servers), before.lookups % 2 ? "%s,%s" : "%s", f->servers, f->servers);
    settings.servers = servers;
    assert_int_equal(resolve_configure(f->resolve, &settings), ISO_OK);
    uint64_t until_ns = clock_mono_ns() + WAIT_MS * NS_PER_MS;
    do {
        resolve_add(f->resolve, &(struct resolve_name){RESOLVE_HOST, "z.test"},
                    1); /* something to wait for */
        resolve_settle(f->resolve, WAIT_MS);
        resolve_find(f->resolve, RESOLVE_HOST, "a.test", &after);
        resolve_retain(f->resolve, &(struct resolve_name){RESOLVE_HOST, "a.test"}, 1);
    } while (after.lookups == before.lookups && clock_mono_ns() < until_ns);
    assert_true(after.lookups > before.lookups);
}

static void a_family_that_fails_keeps_its_addresses_H3(void **state)
{
    struct fixture *f = fixture_new();
    struct resolve_view found;
    SET(f, {'a', TYPE_A, 60, "10.0.0.1"}, {'a', TYPE_AAAA, 60, "2001:db8::1"});
    configure(f, both);
    add(f, RESOLVE_HOST, "a.test");
    SET(f, {'a', TYPE_A, 60, "10.0.0.9"});
    ask_again(f);
    assert_string_equal(view(f, RESOLVE_HOST, "a.test"), "10.0.0.9 2001:db8::1");
    SET(f, {'b', TYPE_A, 60, "10.0.0.9"});
    ask_again(f);
    assert_string_equal(view(f, RESOLVE_HOST, "a.test"), "10.0.0.9 2001:db8::1");
    resolve_find(f->resolve, RESOLVE_HOST, "a.test", &found);
    assert_true(found.has_failed && found.failures == 1);
    fixture_free(f);
}

static void records_of_a_service_to_one_place_are_one_with_both_weights_C_119(void **state)
{
    struct fixture *f = fixture_new();
    SET(f, {'_', TYPE_SRV, 60, NULL, 10, 30, 80, 'b'}, {'_', TYPE_SRV, 60, NULL, 20, 12, 80, 'c'},
        {'_', TYPE_SRV, 60, NULL, 10, 5, 81, 'c'}, {'b', TYPE_A, 60, "10.0.0.1"},
        {'c', TYPE_A, 60, "10.0.0.1"});
    struct resolve_settings settings = both;
    settings.with_ipv6 = false;
    configure(f, settings);
    add(f, RESOLVE_SRV, "_x._tcp.test");
    assert_string_equal(view(f, RESOLVE_SRV, "_x._tcp.test"), "10.0.0.1:80/10*42 10.0.0.1:81/10*5");
    fixture_free(f);
}

static void hosts_of_a_service_go_with_it(void **state)
{
    struct fixture *f = fixture_new();
    struct resolve_view found;
    SET(f, {'_', TYPE_SRV, 60, NULL, 0, 1, 80, 'b'}, {'b', TYPE_A, 60, "10.0.0.1"});
    configure(f, both);
    add(f, RESOLVE_SRV, "_x._tcp.test");
    assert_true(resolve_find(f->resolve, RESOLVE_HOST, "b.test", &found));
    resolve_retain(f->resolve, NULL, 0);
    assert_false(resolve_find(f->resolve, RESOLVE_SRV, "_x._tcp.test", &found));
    assert_false(resolve_find(f->resolve, RESOLVE_HOST, "b.test", &found));
    fixture_free(f);
}

static void a_name_may_go_while_it_is_asked_for(void **state)
{
    struct fixture *f = fixture_new();
    configure(f, both);
    resolve_add(f->resolve, &(struct resolve_name){RESOLVE_HOST, "a.test"}, 1);
    resolve_retain(f->resolve, NULL, 0);
    SET(f, {'b', TYPE_A, 60, "10.0.0.1"});
    add(f, RESOLVE_HOST, "b.test");
    assert_string_equal(view(f, RESOLVE_HOST, "b.test"), "10.0.0.1");
    fixture_free(f);
}

static void an_answer_that_cannot_be_read_is_a_failure(void **state)
{
    struct fixture *f = fixture_new();
    struct resolve_view found;
    SET(f, {'_', TYPE_SRV, 60, NULL, 0, 1, 80, 'b'}, {'a', TYPE_A, 60, "10.0.0.1"});
    pthread_mutex_lock(&f->mutex);
    f->is_garbage = true;
    pthread_mutex_unlock(&f->mutex);
    configure(f, both);
    const struct resolve_name names[] = {{RESOLVE_SRV, "_x._tcp.test"}, {RESOLVE_HOST, "a.test"}};
    resolve_add(f->resolve, names, 2);
    assert_true(resolve_settle(f->resolve, 60000));
    for (int i = 0; i < 2; i++) {
        resolve_find(f->resolve, names[i].kind, names[i].name, &found);
        assert_true(found.has_failed && found.n == 0);
    }
    fixture_free(f);
}

static void a_change_is_told_once_its_ttl_has_passed_C_116(void **state)
{
    struct fixture *f = fixture_new();
    struct resolve_settings settings = both;
    settings.min_ttl_ms = 100;
    SET(f, {'a', TYPE_A, 0, "10.0.0.1"});
    configure(f, settings);
    add(f, RESOLVE_HOST, "a.test");
    assert_int_equal(f->n_changes, 0);
    SET(f, {'a', TYPE_A, 0, "10.0.0.2"});
    loop_run(&f->loop);
    assert_int_equal(f->n_changes, 1);
    assert_string_equal(view(f, RESOLVE_HOST, "a.test"), "10.0.0.2");
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ttl_is_held_within_its_bounds),
        cmocka_unit_test(failures_are_repeated_at_growing_distances),
        cmocka_unit_test(a_host_has_the_addresses_of_both_families_in_order),
        cmocka_unit_test(a_family_that_fails_keeps_its_addresses_H3),
        cmocka_unit_test(records_of_a_service_to_one_place_are_one_with_both_weights_C_119),
        cmocka_unit_test(hosts_of_a_service_go_with_it),
        cmocka_unit_test(a_name_may_go_while_it_is_asked_for),
        cmocka_unit_test(an_answer_that_cannot_be_read_is_a_failure),
        cmocka_unit_test(a_change_is_told_once_its_ttl_has_passed_C_116),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
