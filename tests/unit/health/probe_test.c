/* SPDX-License-Identifier: Apache-2.0 */
#include "health/probe.h"

#include "peer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <sys/resource.h>

static struct config_status_range good[] = {{200, 399}};
static const struct config_health_check http = {.type = CONFIG_HEALTH_HTTP,
                                                .path = SLICE("/healthz"),
                                                .method = SLICE("GET"),
                                                .expect = good,
                                                .n_expect = 1,
                                                .timeout_ms = 10000};
static const struct config_health_check tcp = {.type = CONFIG_HEALTH_TCP, .timeout_ms = 10000};

static struct probe_result last;
static unsigned n_done;
static struct buf_pool bufs;

static void on_done(struct loop *loop, struct probe *probe, const struct probe_result *result)
{
    last = *result;
    n_done++;
    loop_stop(loop);
}

/* The same for a check that is to end by its timeout. */
static struct config_health_check impatient(const struct config_health_check *check)
{
    struct config_health_check out = *check;
    out.timeout_ms = 100;
    return out;
}

/* One check from begin to end on a loop of its own. */
static enum health_reason check(const struct net_addr *addr, const struct config_health_check *config)
{
    static struct loop loop;
    struct probe probe;
    struct probe_plan *plan = probe_plan_new(addr, config, NULL, CONFIG_PROXY_NONE);
    assert_int_equal(loop_init(&loop), ISO_OK);
    n_done = 0;
    probe_init(&probe, &bufs, NULL, on_done);
    probe_start(&loop, &probe, plan);
    if (!n_done)
        loop_run(&loop);
    assert_int_equal(n_done, 1);
    assert_false(probe_is_running(&probe));
    assert_int_equal(probe.conn.io.fd, -1);
    loop_fini(&loop);
    probe_plan_free(plan);
    return last.reason;
}

/* A check that is to end by its timeout with a connection that stands. On a machine that lets a connection
 * over loopback wait for as long as the whole check may take, the check is given more time: up to more than
 * any machine needs. */
static enum health_reason check_once_connected(const struct net_addr *addr,
                                               struct config_health_check *config)
{
    enum health_reason reason = check(addr, config);
    while (reason == HEALTH_REASON_CONNECT_TIMEOUT && config->timeout_ms < 10000) {
        config->timeout_ms *= 2;
        reason = check(addr, config);
    }
    return reason;
}

static void a_good_answer_passes(void **state)
{
    struct peer peer;
    peer_start(&peer, peer_says, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    assert_int_equal(check(&peer.addr, &http), HEALTH_REASON_OK);
    assert_int_equal(last.http_status, 200);
    peer_stop(&peer);
}

static void the_request_is_http_1_1_with_the_targets_own_host_C_092(void **state)
{
    struct peer peer;
    char want[256];
    peer_start(&peer, peer_says, "HTTP/1.1 200 OK\r\n\r\n");
    check(&peer.addr, &http);
    peer_stop(&peer);
    snprintf(want, sizeof(want),
             "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: isobar-health-check\r\nAccept: "
             "*/*\r\nConnection: close\r\n\r\n",
             net_addr_port(&peer.addr));
    assert_string_equal(peer.last_request, want);
}

static void host_method_and_port_can_be_set_C_092(void **state)
{
    struct peer peer;
    struct config_health_check config = http;
    peer_start(&peer, peer_says, "HTTP/1.1 200 OK\r\n\r\n");
    config.host = SLICE("n1.example");
    config.method = SLICE("POST");
    config.port = net_addr_port(&peer.addr);
    struct net_addr other = peer.addr;
    other.in4.sin_port = htons(1);
    assert_int_equal(check(&other, &config), HEALTH_REASON_OK);
    peer_stop(&peer);
    assert_non_null(strstr(peer.last_request, "POST /healthz HTTP/1.1\r\nHost: n1.example\r\n"));
    assert_non_null(strstr(peer.last_request, "\r\nContent-Length: 0\r\n"));
}

static void a_redirect_is_not_followed_C_091(void **state)
{
    static char text[256];
    struct peer peer, elsewhere;
    peer_start(&elsewhere, peer_says, "HTTP/1.1 200 OK\r\n\r\n");
    snprintf(text, sizeof(text), "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%u/\r\n\r\n",
             net_addr_port(&elsewhere.addr));
    peer_start(&peer, peer_says, text);
    assert_int_equal(check(&peer.addr, &http), HEALTH_REASON_OK);
    assert_int_equal(last.http_status, 302);
    peer_stop(&peer);
    peer_stop(&elsewhere);
    assert_int_equal(peer.accepted, 1);
    assert_int_equal(elsewhere.accepted, 0);
}

static void reasons_are_distinct_C_098(void **state)
{
    struct peer peer;
    peer_start(&peer, peer_says, "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n");
    assert_int_equal(check(&peer.addr, &http), HEALTH_REASON_STATUS);
    assert_int_equal(last.http_status, 500);
    peer_stop(&peer);
    assert_int_equal(check(&peer.addr, &http), HEALTH_REASON_REFUSED);
    assert_int_equal(check(&peer.addr, &tcp), HEALTH_REASON_REFUSED);
    peer_start(&peer, peer_says, "");
    assert_int_equal(check(&peer.addr, &http), HEALTH_REASON_CLOSED);
    assert_int_equal(check(&peer.addr, &tcp), HEALTH_REASON_OK);
    peer_stop(&peer);
    peer_start(&peer, peer_says, "220 smtp.example ESMTP\r\n");
    assert_int_equal(check(&peer.addr, &http), HEALTH_REASON_INVALID);
    peer_stop(&peer);
}

static void silence_ends_at_the_timeout_C_098(void **state)
{
    struct peer peer;
    struct config_health_check config = impatient(&http);
    peer_start(&peer, peer_is_silent, NULL);
    assert_int_equal(check_once_connected(&peer.addr, &config), HEALTH_REASON_RESPONSE_TIMEOUT);
    assert_true(last.ended_ns - last.started_ns >= 100 * 1000000ull);
    assert_int_equal(check(&peer.addr, &tcp), HEALTH_REASON_OK);
    peer_stop(&peer);
}

static bool drips(struct peer *peer, int fd, const char *request)
{
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
    peer_send(fd, text, sizeof(text) - 1);
    for (int i = 0; i < 1000 && send(fd, "x", 1, MSG_NOSIGNAL) == 1; i++)
        usleep(10000);
    return false;
}

static void a_dripping_body_ends_at_the_timeout_C_098(void **state)
{
    struct peer peer;
    struct config_health_check config = impatient(&http);
    config.expect_body = SLICE("never");
    peer_start(&peer, drips, NULL);
    assert_int_equal(check_once_connected(&peer.addr, &config), HEALTH_REASON_RESPONSE_TIMEOUT);
    assert_int_equal(check(&peer.addr, &http), HEALTH_REASON_OK); /* a good head is enough */
    peer_stop(&peer);
}

static void a_handshake_without_answer_is_a_connect_timeout_C_098(void **state)
{
    /* A full queue drops SYNs as a firewall would. */
    struct net_addr addr;
    struct ip_addr ip;
    socklen_t len = sizeof(addr.in4);
    int clients[16];
    ip_parse(SLICE("127.0.0.1"), &ip);
    net_addr_ip(&addr, &ip, 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0 && bind(fd, &addr.sa, addr.len) == 0 && listen(fd, 0) == 0);
    assert_int_equal(getsockname(fd, &addr.sa, &len), 0);
    for (int i = 0; i < 16; i++) {
        clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        (void)!connect(clients[i], &addr.sa, addr.len);
    }
    struct config_health_check of_tcp = impatient(&tcp), of_http = impatient(&http);
    assert_int_equal(check(&addr, &of_tcp), HEALTH_REASON_CONNECT_TIMEOUT);
    assert_int_equal(check(&addr, &of_http), HEALTH_REASON_CONNECT_TIMEOUT);
    for (int i = 0; i < 16; i++)
        close(clients[i]);
    close(fd);
}

static void a_unix_socket_that_is_missing_is_unreachable(void **state)
{
    struct net_addr addr;
    assert_true(net_addr_unix(&addr, SLICE("/nonexistent/isobar.sock")));
    assert_int_equal(check(&addr, &http), HEALTH_REASON_UNREACHABLE);
}

static void no_descriptors_is_our_own_error_not_the_targets(void **state)
{
    struct net_addr addr;
    struct ip_addr ip;
    struct rlimit before, none;
    static struct loop loop;
    struct probe probe;
    ip_parse(SLICE("127.0.0.1"), &ip);
    net_addr_ip(&addr, &ip, 1);
    struct probe_plan *plan = probe_plan_new(&addr, &http, NULL, CONFIG_PROXY_NONE);
    assert_int_equal(loop_init(&loop), ISO_OK);
    probe_init(&probe, &bufs, NULL, on_done);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = 0;
    setrlimit(RLIMIT_NOFILE, &none);
    probe_start(&loop, &probe, plan);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(last.reason, HEALTH_REASON_LOCAL);
    loop_fini(&loop);
    probe_plan_free(plan);
}

static void plans_differ_when_anything_that_matters_does(void **state)
{
    static struct config_status_range other_range[] = {{200, 299}};
    struct net_addr addr, other_addr;
    struct ip_addr ip;
    struct config_health_check checks[] = {http, http, http, http, http, http, http, http, http, http, http};
    ip_parse(SLICE("10.0.0.1"), &ip);
    net_addr_ip(&addr, &ip, 80);
    net_addr_ip(&other_addr, &ip, 81);
    checks[1].path = SLICE("/other");
    checks[2].host = SLICE("h");
    checks[3].expect = other_range;
    checks[4].expect_body = SLICE("x");
    checks[5].port = 90;
    checks[6].interval_ms = 1;
    checks[7].timeout_ms = 1;
    checks[8].healthy_threshold = 9;
    checks[9].type = CONFIG_HEALTH_TCP;
    checks[10].down_interval_ms = 3;
    struct probe_plan *plan = probe_plan_new(&addr, &http, NULL, CONFIG_PROXY_NONE),
                      *moved = probe_plan_new(&other_addr, &http, NULL, CONFIG_PROXY_NONE);
    assert_false(probe_plan_eq(plan, moved));
    for (size_t i = 0; i < iso_countof(checks); i++) {
        struct probe_plan *other = probe_plan_new(&addr, &checks[i], NULL, CONFIG_PROXY_NONE);
        assert_int_equal(probe_plan_eq(plan, other), i == 0);
        probe_plan_free(other);
    }
    probe_plan_free(plan);
    probe_plan_free(moved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_answer_passes),
        cmocka_unit_test(the_request_is_http_1_1_with_the_targets_own_host_C_092),
        cmocka_unit_test(host_method_and_port_can_be_set_C_092),
        cmocka_unit_test(a_redirect_is_not_followed_C_091),
        cmocka_unit_test(reasons_are_distinct_C_098),
        cmocka_unit_test(silence_ends_at_the_timeout_C_098),
        cmocka_unit_test(a_dripping_body_ends_at_the_timeout_C_098),
        cmocka_unit_test(a_handshake_without_answer_is_a_connect_timeout_C_098),
        cmocka_unit_test(a_unix_socket_that_is_missing_is_unreachable),
        cmocka_unit_test(no_descriptors_is_our_own_error_not_the_targets),
        cmocka_unit_test(plans_differ_when_anything_that_matters_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
