/* SPDX-License-Identifier: Apache-2.0 */
#include "health/probe.h"

#include "core/clock.h"
#include "core/text.h"
#include "health/probe_h2.h"
#include "net/proxyproto.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

static bool has_request(const struct probe_plan *plan)
{
    return plan->check.type == CONFIG_HEALTH_HTTP || plan->check.type == CONFIG_HEALTH_DEEP ||
           plan->check.type == CONFIG_HEALTH_GRPC;
}

/* Targets that speak HTTP/2 are checked by it: what was chosen in the handshake, or what both sides know. */
static bool speaks_http2(const struct probe *probe)
{
    return probe->http2 &&
           (probe->plan->tls ? slice_eq(tls_alpn(&probe->conn), SLICE("h2")) : probe->plan->check.http2);
}

static struct slice copy(struct slice s)
{
    if (!s.ptr)
        return s;
    char *out = malloc(s.len + 1);
    iso_assert(out != NULL);
    memcpy(out, s.ptr, s.len);
    out[s.len] = '\0';
    return slice_of(out, s.len);
}

/* The target's own "ip:port", the default Host. Source: C-092. */
static void add_own_name(struct text *text, const struct net_addr *addr)
{
    char ip_text[IP_TEXT_MAX];
    struct ip_addr ip = net_addr_to_ip(addr);
    struct slice s = slice_of(ip_text, ip_print(&ip, ip_text));
    if (ip.family == 0)
        text_add(text, SLICE("localhost"));
    else
        text_printf(text, ip.family == 6 ? "[%.*s]:%u" : "%.*s:%u", SLICE_ARG(s), net_addr_port(addr));
}

static struct slice make_request(const struct net_addr *addr, const struct config_health_check *check)
{
    struct text text;
    bool is_grpc = check->type == CONFIG_HEALTH_GRPC;
    struct slice method = is_grpc ? SLICE("POST") : check->method.len ? check->method : SLICE("GET");
    struct slice path = is_grpc           ? SLICE("/grpc.health.v1.Health/Check")
                        : check->path.len ? check->path
                                          : SLICE("/");
    text_init(&text);
    text_printf(&text, "%.*s %.*s HTTP/1.1\r\nHost: ", SLICE_ARG(method), SLICE_ARG(path));
    if (check->host.ptr)
        text_add(&text, check->host);
    else
        add_own_name(&text, addr);
    text_add(&text, SLICE("\r\nUser-Agent: isobar-health-check\r\n"));
    if (is_grpc)
        probe_h2_add_grpc_fields(&text);
    else
        text_add(&text, SLICE("Accept: */*\r\nConnection: close\r\n"));
    if (!is_grpc && !slice_eq(method, SLICE("GET")) && !slice_eq(method, SLICE("HEAD")))
        text_add(&text, SLICE("Content-Length: 0\r\n")); /* RFC 9110 8.6: a method that may have a body */
    text_add(&text, SLICE("\r\n"));
    return text_slice(&text); /* the text's memory becomes the plan's */
}

static void set_port(struct net_addr *addr, uint16_t port)
{
    if (addr->sa.sa_family == AF_INET)
        addr->in4.sin_port = htons(port);
    else if (addr->sa.sa_family == AF_INET6)
        addr->in6.sin6_port = htons(port);
}

struct probe_plan *probe_plan_new(const struct net_addr *addr, const struct config_health_check *check,
                                  struct tls_client *tls, enum config_proxy_version proxy_protocol)
{
    struct probe_plan *plan = calloc(1, sizeof(*plan));
    iso_assert(plan != NULL);
    plan->addr = *addr;
    plan->check = *check;
    plan->check.path = copy(check->path);
    plan->check.host = copy(check->host);
    plan->check.method = copy(check->method);
    plan->check.expect_body = copy(check->expect_body);
    plan->check.service = copy(check->service);
    plan->check.expect_body_regex = copy(check->expect_body_regex);
    if (check->expect_body_regex.ptr)
        plan->pattern = body_pattern_new(check->expect_body_regex);
    plan->check.expect = calloc(check->n_expect + 1, sizeof(*check->expect));
    iso_assert(plan->check.expect != NULL);
    if (check->n_expect)
        memcpy(plan->check.expect, check->expect, check->n_expect * sizeof(*check->expect));
    if (check->port)
        set_port(&plan->addr, check->port);
    plan->tls = tls ? tls_client_ref(tls) : NULL;
    plan->proxy_protocol = proxy_protocol;
    plan->is_head = slice_eq(check->method, SLICE("HEAD"));
    if (has_request(plan))
        plan->request = make_request(addr, check);
    if (check->type == CONFIG_HEALTH_GRPC) {
        struct text message;
        text_init(&message);
        probe_h2_add_grpc_message(&message, check->service);
        plan->message = text_slice(&message);
    }
    return plan;
}

void probe_plan_free(struct probe_plan *plan)
{
    if (!plan)
        return;
    free((char *)plan->check.path.ptr);
    free((char *)plan->check.host.ptr);
    free((char *)plan->check.method.ptr);
    free((char *)plan->check.expect_body.ptr);
    free((char *)plan->check.expect_body_regex.ptr);
    body_pattern_free(plan->pattern);
    free(plan->check.expect);
    free((char *)plan->check.service.ptr);
    free((char *)plan->request.ptr);
    free((char *)plan->message.ptr);
    if (plan->tls)
        tls_client_unref(&plan->tls);
    free(plan);
}

bool probe_plan_eq(const struct probe_plan *a, const struct probe_plan *b)
{
    const struct config_health_check *x = &a->check, *y = &b->check;
    return a->addr.len == b->addr.len && memcmp(&a->addr.sa, &b->addr.sa, a->addr.len) == 0 &&
           slice_eq(a->request, b->request) && slice_eq(x->service, y->service) && x->http2 == y->http2 &&
           slice_eq(x->expect_body, y->expect_body) && slice_eq(x->expect_body_regex, y->expect_body_regex) &&
           ip_eq(&x->source, &y->source) && x->n_expect == y->n_expect &&
           memcmp(x->expect, y->expect, x->n_expect * sizeof(*x->expect)) == 0 && x->type == y->type &&
           x->deep_ejects == y->deep_ejects && x->interval_ms == y->interval_ms &&
           x->down_interval_ms == y->down_interval_ms && x->timeout_ms == y->timeout_ms &&
           x->healthy_threshold == y->healthy_threshold && x->unhealthy_threshold == y->unhealthy_threshold &&
           tls_client_id(a->tls) == tls_client_id(b->tls) && a->proxy_protocol == b->proxy_protocol;
}

static void end(struct loop *loop, struct probe *probe)
{
    probe_h2_end(probe);
    conn_close(&probe->conn, loop, probe->bufs);
    answer_fini(&probe->answer);
    probe->phase = PROBE_IDLE;
}

static void finish(struct loop *loop, struct probe *probe, enum health_reason reason)
{
    struct probe_result result = {
        .reason = reason, .http_status = probe->answer.http_status, .started_ns = probe->started_ns};
    end(loop, probe);
    result.ended_ns = clock_mono_ns();
    probe->on_done(loop, probe, &result);
}

/* What an errno of connect says. */
static enum health_reason reason_of(int error)
{
    switch (error) {
    case ECONNREFUSED:
        return HEALTH_REASON_REFUSED;
    case ETIMEDOUT:
        return HEALTH_REASON_CONNECT_TIMEOUT;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case EADDRNOTAVAIL:
        return HEALTH_REASON_LOCAL;
    default:
        return HEALTH_REASON_UNREACHABLE;
    }
}

/* An end is an end here, with close_notify or without: a check carries nothing that could be cut. */
static void read_answer(struct loop *loop, struct probe *probe)
{
    char data[16 << 10];
    enum health_reason reason;
    if (probe->is_http2) {
        if (probe_h2_read(probe, loop->now_ns, &reason))
            finish(loop, probe, reason);
        return;
    }
    while (probe->conn.can_read) {
        size_t n = 0;
        enum conn_result result = conn_read(&probe->conn, data, sizeof(data), &n);
        if (result == CONN_BLOCKED)
            return;
        if (result == CONN_EOF || (result == CONN_FAILED && probe->conn.saw_eof))
            return finish(loop, probe, answer_end(&probe->answer));
        if (result == CONN_FAILED)
            return finish(loop, probe, HEALTH_REASON_CLOSED);
        if (answer_feed(&probe->answer, data, n, &reason))
            return finish(loop, probe, reason);
    }
}

static void on_open(struct loop *loop, struct probe *probe)
{
    struct slice request = probe->plan->request;
    if (!has_request(probe->plan))
        return finish(loop, probe, HEALTH_REASON_OK);
    probe->phase = PROBE_RECEIVING;
    if (speaks_http2(probe)) {
        if (!probe_h2_begin(probe))
            return finish(loop, probe, HEALTH_REASON_CLOSED);
        return read_answer(loop, probe);
    }
    if (probe->plan->check.type == CONFIG_HEALTH_GRPC) /* the handshake ended in HTTP/1.1 */
        return finish(loop, probe, HEALTH_REASON_INVALID);
    if (conn_write(&probe->conn, probe->bufs, &(struct iovec){(char *)request.ptr, request.len}, 1) ==
        CONN_FAILED)
        return finish(loop, probe, HEALTH_REASON_CLOSED);
    read_answer(loop, probe);
}

static void secure(struct loop *loop, struct probe *probe)
{
    probe->phase = PROBE_SECURING;
    switch (conn_handshake(&probe->conn, probe->bufs)) {
    case CONN_OK:
        return on_open(loop, probe);
    case CONN_BLOCKED:
        return;
    case CONN_EOF:
    case CONN_FAILED:
        return finish(loop, probe, HEALTH_REASON_TLS);
    }
}

/* A header that says that the check is our own (v2 LOCAL) or for nobody known (v1). Source: C-090. */
static bool send_header(struct probe *probe)
{
    struct proxyproto header = {.version = probe->plan->proxy_protocol == CONFIG_PROXY_V1 ? 1 : 2,
                                .is_local = true};
    char out[PROXYPROTO_V1_BYTES];
    size_t len = proxyproto_write(&header, out, sizeof(out));
    return send(probe->conn.io.fd, out, len, MSG_NOSIGNAL) == (ssize_t)len;
}

static void on_connected(struct loop *loop, struct probe *probe)
{
    if (probe->plan->proxy_protocol != CONFIG_PROXY_NONE && !send_header(probe))
        return finish(loop, probe, HEALTH_REASON_CLOSED);
    if (probe->plan->tls)
        return secure(loop, probe);
    probe->conn.is_connecting = false;
    on_open(loop, probe);
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct probe *probe = container_of(io, struct probe, conn.io);
    int error = 0;
    socklen_t len = sizeof(error);
    conn_note_events(&probe->conn, events);
    switch ((enum probe_phase)probe->phase) {
    case PROBE_IDLE:
        return;
    case PROBE_CONNECTING:
        if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
            return;
        if (getsockopt(io->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
            error = errno;
        return error ? finish(loop, probe, reason_of(error)) : on_connected(loop, probe);
    case PROBE_SECURING:
        return secure(loop, probe);
    case PROBE_RECEIVING:
        if (conn_flush(&probe->conn, probe->bufs) == CONN_FAILED)
            return finish(loop, probe, HEALTH_REASON_CLOSED);
        return read_answer(loop, probe);
    }
}

static void on_deadline(struct loop *loop, struct loop_timer *timer)
{
    struct probe *probe = container_of(timer, struct probe, conn.timer);
    finish(loop, probe,
           probe->phase == PROBE_CONNECTING ? HEALTH_REASON_CONNECT_TIMEOUT : HEALTH_REASON_RESPONSE_TIMEOUT);
}

void probe_init(struct probe *probe, struct buf_pool *bufs, struct tls_thread *tls, probe_done_fn *on_done)
{
    *probe = (struct probe){.bufs = bufs, .tls = tls, .on_done = on_done};
    conn_init(&probe->conn, -1, on_ready, on_deadline);
}

bool probe_is_running(const struct probe *probe)
{
    return probe->phase != PROBE_IDLE;
}

/* From the address that the operator named, where the target's family allows it. False: errno says why. */
static bool bind_source(int fd, const struct probe_plan *plan)
{
    struct net_addr source;
    int yes = 1;
    net_addr_ip(&source, &plan->check.source, 0);
    if (!plan->check.source.family || source.sa.sa_family != plan->addr.sa.sa_family)
        return true;
    /* The port is chosen at connect, so that ports last for as many targets as there are. */
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &yes, sizeof(yes));
    return bind(fd, &source.sa, source.len) == 0;
}

void probe_start(struct loop *loop, struct probe *probe, const struct probe_plan *plan)
{
    iso_assert(!probe_is_running(probe));
    probe->plan = plan;
    probe->phase = PROBE_CONNECTING;
    probe->started_ns = clock_mono_ns();
    probe->is_decided = false;
    answer_init(&probe->answer, &plan->check, plan->pattern, plan->is_head);
    int fd = socket(plan->addr.sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    conn_init(&probe->conn, fd, on_ready, on_deadline);
    probe->conn.is_connecting = true;
    probe->conn.can_read = false;
    if (fd < 0 || !bind_source(fd, plan))
        return finish(loop, probe, HEALTH_REASON_LOCAL);
    struct ip_addr ip = net_addr_to_ip(&plan->addr);
    if (plan->tls && !tls_connect(probe->tls, &probe->conn, plan->tls, &ip, NULL))
        return finish(loop, probe, HEALTH_REASON_LOCAL);
    bool is_connected = connect(fd, &plan->addr.sa, plan->addr.len) == 0;
    if (!is_connected && errno != EINPROGRESS)
        return finish(loop, probe, reason_of(errno));
    if (loop_arm(loop, &probe->conn.io))
        return finish(loop, probe, HEALTH_REASON_LOCAL);
    loop_timer_set(loop, &probe->conn.timer, probe->started_ns + plan->check.timeout_ms * NS_PER_MS);
    if (is_connected)
        on_connected(loop, probe);
}

void probe_abort(struct loop *loop, struct probe *probe)
{
    if (probe_is_running(probe))
        end(loop, probe);
}
