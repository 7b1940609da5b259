/* SPDX-License-Identifier: Apache-2.0 */
/* Drives the control thread over a real socket in this process. */
#include "control/control.h"

#include "control/admin.h"
#include "core/clock.h"
#include "core/text.h"
#include "metrics/fixture.h"
#include "net/addr.h"
#include "promlint.h"

#include <jansson.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

struct running {
    struct fixture *f;
    struct control *control;
    pthread_t thread;
    uint16_t port;
    _Atomic unsigned reloads, shutdowns, reopens, upgrades;
};

static void on_reload(void *owner)
{
    atomic_fetch_add(&((struct running *)owner)->reloads, 1);
}

static void on_shutdown(void *owner)
{
    struct running *r = owner;
    atomic_fetch_add(&r->shutdowns, 1);
    r->f->view.is_shutting_down = true;
}

static void on_upgrade(void *owner)
{
    atomic_fetch_add(&((struct running *)owner)->upgrades, 1);
}

static void on_reopen(void *owner)
{
    atomic_fetch_add(&((struct running *)owner)->reopens, 1);
}

static void *run(void *arg)
{
    control_run(((struct running *)arg)->control);
    return NULL;
}

static struct config_admin admin_at(const char *text, uint16_t port)
{
    struct config_admin admin = {.listen = {.text = slice_str(text), .port = port}};
    ip_parse(SLICE("127.0.0.1"), &admin.listen.ip);
    return admin;
}

static uint16_t listening_port(const struct control *control)
{
    const char *colon = strrchr(control_endpoint(control), ':');
    assert_non_null(colon);
    return (uint16_t)atoi(colon + 1);
}

static int start(void **state)
{
    struct running *r = calloc(1, sizeof(*r));
    struct iso_diag diag;
    r->f = fixture_new();
    struct control_callbacks callbacks = {r, on_reload, on_shutdown, on_upgrade, on_reopen};
    struct config_admin endpoint = admin_at("127.0.0.1:0", 0);
    diag_init(&diag);
    assert_int_equal(control_open(&callbacks, &r->f->view, &r->control), ISO_OK);
    assert_int_equal(control_listen(r->control, &endpoint, &diag), ISO_OK);
    diag_fini(&diag);
    r->port = listening_port(r->control);
    pthread_create(&r->thread, NULL, run, r);
    *state = r;
    return 0;
}

static void stop_call(struct loop *loop, void *arg)
{
    control_stop(((struct running *)arg)->control);
}

static int stop(void **state)
{
    struct running *r = *state;
    struct loop_call call = {.fn = stop_call, .arg = r};
    loop_post(control_loop(r->control), &call);
    pthread_join(r->thread, NULL);
    control_close(&r->control);
    fixture_free(r->f);
    free(r);
    return 0;
}

static int dial(uint16_t port)
{
    struct net_addr addr;
    struct ip_addr ip;
    int one = 1;
    ip_parse(SLICE("127.0.0.1"), &ip);
    net_addr_ip(&addr, &ip, port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, &addr.sa, addr.len), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

static void say(int fd, struct slice s)
{
    while (s.len) {
        ssize_t n = send(fd, s.ptr, s.len, MSG_NOSIGNAL);
        if (n <= 0)
            return;
        s = slice_of(s.ptr + n, s.len - (size_t)n);
    }
}

/* All that comes until the other side closes. */
static void hear(int fd, struct text *out)
{
    char data[4096];
    text_init(out);
    for (ssize_t n; (n = recv(fd, data, sizeof(data), 0)) > 0;)
        text_add(out, slice_of(data, (size_t)n));
    text_add(out, SLICE(""));
    close(fd);
}

/* The answer to a request on a connection of its own. */
static struct text ask(const struct running *r, const char *request)
{
    struct text text;
    int fd = dial(r->port);
    say(fd, slice_str(request));
    hear(fd, &text);
    return text;
}

static unsigned status_of(const struct text *answer)
{
    return answer->len > 12 ? (unsigned)atoi(answer->data + 9) : 0;
}

static const char *body_of(const struct text *answer)
{
    const char *end = strstr(answer->data, "\r\n\r\n");
    return end ? end + 4 : "";
}

static void expect(const struct running *r, const char *request, unsigned status, const char *part)
{
    struct text answer = ask(r, request);
    assert_int_equal(status_of(&answer), status);
    if (part && !strstr(answer.data, part))
        fail_msg("no %s in %s", part, answer.data);
    text_fini(&answer);
}

#define CLOSE "Host: x\r\nConnection: close\r\n\r\n"

static void healthz_says_whether_the_process_serves(void **state)
{
    struct running *r = *state;
    expect(r, "GET /healthz HTTP/1.1\r\n" CLOSE, 200, "\r\n\r\nok\n");
    kill(getpid(), SIGTERM);
    while (!atomic_load(&r->shutdowns))
        usleep(1000);
    expect(r, "GET /healthz HTTP/1.1\r\n" CLOSE, 503, "shutting down\n");
}

static void metrics_are_served_in_the_format_asked_for_C_145(void **state)
{
    struct running *r = *state;
    struct text answer = ask(r, "GET /metrics HTTP/1.1\r\n" CLOSE);
    assert_int_equal(status_of(&answer), 200);
    assert_non_null(strstr(answer.data, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    promlint(slice_str(body_of(&answer)), false);
    text_fini(&answer);
    answer = ask(r, "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0\r\n" CLOSE);
    assert_non_null(
        strstr(answer.data, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"));
    promlint(slice_str(body_of(&answer)), true);
    text_fini(&answer);
}

static void api_health_counts_targets_G4(void **state)
{
    struct running *r = *state;
    atomic_store(&r->f->backends[1].health.state, TARGET_ACTIVE);
    struct text answer = ask(r, "GET /api/health?target_group=web HTTP/1.1\r\n" CLOSE);
    json_t *json = json_loads(body_of(&answer), 0, NULL);
    assert_non_null(json);
    assert_true(json_is_true(json_object_get(json, "healthy")));
    assert_string_equal(json_string_value(json_object_get(json, "role")), "primary");
    assert_int_equal(json_integer_value(json_object_get(json, "healthy_backends")), 1);
    assert_int_equal(json_integer_value(json_object_get(json, "total_backends")), 3);
    assert_int_equal(json_integer_value(json_object_get(json, "version")), 7);
    json_decref(json);
    text_fini(&answer);
    expect(r, "GET /api/health?target_group=nope HTTP/1.1\r\n" CLOSE, 404, "\"code\":\"not_found\"");
}

static void unknown_pages_and_methods_are_told_apart(void **state)
{
    struct running *r = *state;
    expect(r, "GET /nope HTTP/1.1\r\n" CLOSE, 404, "{\"error\":{\"code\":\"not_found\",");
    expect(r, "DELETE /metrics HTTP/1.1\r\n" CLOSE, 405, "\r\nAllow: GET, HEAD\r\n");
    expect(r, "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", 405,
           "Connection: close\r\n");
    expect(r, "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody", 413, "body_too_large");
    expect(r, "GET / HTTP/1.1\r\n" CLOSE, 200, "/metrics");
}

static void head_has_the_length_and_no_body(void **state)
{
    struct running *r = *state;
    struct text answer = ask(r, "HEAD /healthz HTTP/1.1\r\n" CLOSE);
    assert_int_equal(status_of(&answer), 200);
    assert_non_null(strstr(answer.data, "Content-Length: 3\r\n"));
    assert_string_equal(body_of(&answer), "");
    text_fini(&answer);
}

static void a_connection_is_kept_and_requests_may_be_pipelined(void **state)
{
    struct running *r = *state;
    struct text answer;
    int fd = dial(r->port);
    say(fd, SLICE("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /nope HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz "
                  "HTTP/1.1\r\n" CLOSE));
    hear(fd, &answer);
    const char *second = strstr(answer.data + 1, "HTTP/1.1 404");
    assert_int_equal(status_of(&answer), 200);
    assert_non_null(second);
    assert_non_null(strstr(second, "HTTP/1.1 200"));
    text_fini(&answer);
}

static void a_request_that_comes_byte_by_byte_is_answered(void **state)
{
    struct running *r = *state;
    static const char request[] = "GET /healthz HTTP/1.1\r\n" CLOSE;
    struct text answer;
    int fd = dial(r->port);
    for (size_t i = 0; i < sizeof(request) - 1; i++)
        say(fd, slice_of(request + i, 1));
    hear(fd, &answer);
    assert_int_equal(status_of(&answer), 200);
    text_fini(&answer);
}

static void an_answer_larger_than_the_socket_is_sent_as_it_is_read(void **state)
{
    struct running *r = *state;
    struct text answer;
    int fd = dial(r->port), small = 128 << 10;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    for (int i = 0; i < 200; i++)
        say(fd, SLICE("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"));
    say(fd, SLICE("GET /healthz HTTP/1.1\r\n" CLOSE));
    hear(fd, &answer);
    assert_true(answer.len > 200 * 4096);
    assert_true(slice_ends(text_slice(&answer), SLICE("\r\n\r\nok\n")));
    text_fini(&answer);
}

static void rejects_what_is_too_large_or_not_http(void **state)
{
    struct running *r = *state;
    static char request[40000];
    size_t n =
        (size_t)snprintf(request, sizeof(request), "GET /%0*d HTTP/1.1\r\n" CLOSE, ADMIN_URI_BYTES + 10, 7);
    assert_true(n < sizeof(request));
    expect(r, request, 414, "uri-too-long");
    snprintf(request, sizeof(request), "GET / HTTP/1.1\r\nX: %0*d\r\n" CLOSE, 30000, 7);
    expect(r, request, 431, "head-too-large");
    n = (size_t)snprintf(request, sizeof(request), "GET / HTTP/1.1\r\n");
    for (int i = 0; i < ADMIN_FIELDS + 1; i++)
        n += (size_t)snprintf(request + n, sizeof(request) - n, "X: 1\r\n");
    snprintf(request + n, sizeof(request) - n, CLOSE);
    expect(r, request, 431, "too-many-fields");
    expect(r, "GARBAGE\r\n\r\n", 400, "Connection: close");
    expect(r, "GET / HTTP/1.1\r\n\r\n", 400, "bad-host");
    expect(r, "GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505, NULL);
}

static void more_connections_than_allowed_close_the_longest_idle(void **state)
{
    struct running *r = *state;
    int fds[ADMIN_CONNECTIONS + 8];
    for (size_t i = 0; i < iso_countof(fds); i++)
        fds[i] = dial(r->port);
    expect(r, "GET /healthz HTTP/1.1\r\n" CLOSE, 200, "ok\n");
    char c;
    assert_int_equal(recv(fds[0], &c, 1, 0), 0); /* gone */
    struct pollfd last = {.fd = fds[iso_countof(fds) - 1], .events = POLLIN};
    assert_int_equal(poll(&last, 1, 0), 0); /* still there */
    for (size_t i = 0; i < iso_countof(fds); i++)
        close(fds[i]);
}

static void signals_become_calls_on_the_control_thread(void **state)
{
    struct running *r = *state;
    kill(getpid(), SIGHUP);
    while (!atomic_load(&r->reloads))
        usleep(1000);
    kill(getpid(), SIGUSR1);
    while (!atomic_load(&r->reopens))
        usleep(1000);
    kill(getpid(), SIGUSR2);
    while (!atomic_load(&r->upgrades))
        usleep(1000);
    kill(getpid(), SIGINT);
    while (!atomic_load(&r->shutdowns))
        usleep(1000);
    assert_int_equal(atomic_load(&r->reloads), 1);
}

/* Without the thread: what control_listen() does, step by step. */
static void another_endpoint_takes_over_only_when_it_could_be_bound(void **state)
{
    struct fixture *f = fixture_new();
    struct control_callbacks callbacks = {NULL, on_reload, on_shutdown, on_upgrade, on_reopen};
    struct control *control, *other;
    struct iso_diag diag;
    char first[64], taken[64];
    struct config_admin any = admin_at("127.0.0.1:0", 0), none = {0};
    diag_init(&diag);
    assert_int_equal(control_open(&callbacks, &f->view, &control), ISO_OK);
    assert_int_equal(control_open(&callbacks, &f->view, &other), ISO_OK);
    assert_string_equal(control_endpoint(control), "");
    assert_int_equal(control_listen(control, &any, &diag), ISO_OK);
    assert_int_equal(control_listen(other, &any, &diag), ISO_OK);
    strcpy(first, control_endpoint(control));
    strcpy(taken, control_endpoint(other));

    struct config_admin busy = admin_at(taken, listening_port(other));
    assert_int_equal(control_listen(control, &busy, &diag), ISO_ERR_SYSTEM);
    assert_string_equal(diag.first->path, "/admin/listen");
    assert_string_equal(control_endpoint(control), first);
    close(dial(listening_port(control)));
    assert_int_equal(control_listen(control, &any, &diag), ISO_OK);
    assert_string_equal(control_endpoint(control), first);

    /* The same port on all addresses overlaps with its own old listener. */
    struct config_admin all = {.listen = {.text = SLICE("all"), .port = listening_port(control)}};
    uint16_t port = listening_port(control);
    assert_int_equal(control_listen(control, &all, &diag), ISO_OK);
    assert_string_equal(control_endpoint(control), "all");
    close(dial(port));
    assert_int_equal(control_listen(control, &none, &diag), ISO_OK);
    assert_string_equal(control_endpoint(control), "");
    diag_fini(&diag);
    control_close(&control);
    control_close(&other);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(healthz_says_whether_the_process_serves, start, stop),
        cmocka_unit_test_setup_teardown(metrics_are_served_in_the_format_asked_for_C_145, start, stop),
        cmocka_unit_test_setup_teardown(api_health_counts_targets_G4, start, stop),
        cmocka_unit_test_setup_teardown(unknown_pages_and_methods_are_told_apart, start, stop),
        cmocka_unit_test_setup_teardown(head_has_the_length_and_no_body, start, stop),
        cmocka_unit_test_setup_teardown(a_connection_is_kept_and_requests_may_be_pipelined, start, stop),
        cmocka_unit_test_setup_teardown(a_request_that_comes_byte_by_byte_is_answered, start, stop),
        cmocka_unit_test_setup_teardown(an_answer_larger_than_the_socket_is_sent_as_it_is_read, start, stop),
        cmocka_unit_test_setup_teardown(rejects_what_is_too_large_or_not_http, start, stop),
        cmocka_unit_test_setup_teardown(more_connections_than_allowed_close_the_longest_idle, start, stop),
        cmocka_unit_test_setup_teardown(signals_become_calls_on_the_control_thread, start, stop),
        cmocka_unit_test(another_endpoint_takes_over_only_when_it_could_be_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
