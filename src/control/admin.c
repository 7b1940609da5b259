/* SPDX-License-Identifier: Apache-2.0 */
#include "control/admin.h"

#include "control/pages.h"
#include "core/clock.h"
#include "core/log.h"
#include "http1/parse.h"
#include "http1/write.h"
#include "net/listen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum conn_phase {
    CONN_IDLE,    /* no byte of a request yet */
    CONN_READING, /* a head has begun */
    CONN_WRITING, /* its answer is not all sent */
    CONN_LINGER,  /* all is sent, the peer's bytes are thrown away until it closes, so that it can read us */
};

/* A head, and the empty lines that the parser skips before it. */
enum { IN_BYTES = ADMIN_HEAD_BYTES + 64 };

struct admin_conn {
    struct loop_io io;
    struct loop_timer deadline;
    struct list node; /* in admin->conns, longest idle first */
    struct admin *admin;
    struct loop_deferred release;
    uint8_t phase; /* enum conn_phase */
    bool close_after;
    char *in; /* owns; [IN_BYTES]; NULL while idle */
    size_t in_len;
    char *out; /* owns; the answer; NULL when there is none */
    size_t out_len, out_sent;
};

struct admin {
    struct loop *loop;
    const struct control_view *view;
    struct loop_io listener;
    struct loop_timer retry; /* of accept(), when there was no descriptor */
    struct net_addr addr;
    char *configured; /* owns; the endpoint as configured; NULL: no listener */
    char actual[128]; /* with the port the kernel chose */
    struct list conns;
    uint32_t n_conns;
};

static const struct h1_limits limits = {
    .head_bytes = ADMIN_HEAD_BYTES, .uri_bytes = ADMIN_URI_BYTES, .fields = ADMIN_FIELDS};

static void release_conn(struct loop *loop, struct loop_deferred *deferred)
{
    free(container_of(deferred, struct admin_conn, release));
}

static void close_conn(struct admin_conn *conn)
{
    struct admin *admin = conn->admin;
    loop_timer_remove(admin->loop, &conn->deadline);
    loop_close(admin->loop, &conn->io);
    list_remove(&conn->node);
    admin->n_conns--;
    free(conn->in);
    free(conn->out);
    conn->in = conn->out = NULL;
    conn->release.release = release_conn;
    loop_defer(admin->loop, &conn->release);
}

/* Enters a phase and gives it its time. */
static void set_phase(struct admin_conn *conn, enum conn_phase phase, uint32_t seconds)
{
    conn->phase = phase;
    loop_timer_set(conn->admin->loop, &conn->deadline, conn->admin->loop->now_ns + seconds * NS_PER_S);
}

static void go_idle(struct admin_conn *conn)
{
    free(conn->in);
    conn->in = NULL;
    set_phase(conn, CONN_IDLE, ADMIN_IDLE_S);
    list_remove(&conn->node);
    list_push_back(&conn->admin->conns, &conn->node);
}

static void queue_answer(struct admin_conn *conn, const struct page_reply *reply, bool is_head,
                         unsigned minor)
{
    char date[40];
    time_t now = (time_t)(conn->admin->loop->wall_ns / NS_PER_S);
    struct tm tm;
    struct h1_pair fields[] = {{SLICE("Cache-Control"), SLICE("no-store")}, {SLICE("Allow"), reply->allow}};
    struct h1_answer answer = {.status = reply->status,
                               .reason_word = reply->error_code,
                               .body = text_slice(&reply->body),
                               .content_type = reply->content_type,
                               .fields = fields,
                               .n_fields = reply->allow.len ? 2 : 1,
                               .head = is_head,
                               .json = reply->error_code.len > 0,
                               .close = conn->close_after,
                               .client_minor = minor};
    gmtime_r(&now, &tm);
    answer.date = slice_of(date, strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm));
    enum { HEAD_BYTES_MAX = 2048 };
    size_t cap = answer.body.len + HEAD_BYTES_MAX;
    conn->out = malloc(cap);
    iso_assert(conn->out != NULL);
    conn->out_len = h1_write_answer(conn->out, cap, &answer);
    iso_assert(conn->out_len > 0);
    conn->out_sent = 0;
    set_phase(conn, CONN_WRITING, ADMIN_REQUEST_S);
}

/* What was refused before it was a request; the connection ends with the answer. */
static void refuse(struct admin_conn *conn, unsigned status, const char *code, const char *message)
{
    struct page_reply reply;
    page_reply_init(&reply);
    page_reply_error(&reply, status, slice_str(code), message);
    conn->close_after = true;
    queue_answer(conn, &reply, false, 1);
    page_reply_fini(&reply);
}

static void answer_request(struct admin_conn *conn, struct http_message *request)
{
    struct page_reply reply;
    bool has_body = request->framing != HTTP_BODY_NONE &&
                    !(request->framing == HTTP_BODY_LENGTH && request->content_length == 0);
    page_reply_init(&reply);
    page_answer(conn->admin->view, request, &reply);
    if (has_body && reply.status != 404 && reply.status != 405)
        page_reply_error(&reply, 413, SLICE("body_too_large"), "this page takes no body");
    conn->close_after = has_body || !request->keep_alive || conn->admin->view->is_shutting_down;
    queue_answer(conn, &reply, request->method == HTTP_HEAD, request->version_minor);
    page_reply_fini(&reply);
}

/* Answers the request at the front of the input; false when there is not a whole one. */
static bool take_request(struct admin_conn *conn)
{
    struct http_message request;
    size_t used;
    enum http_reject why;
    switch (h1_parse_request(conn->in, conn->in_len, &limits, &request, &used, &why)) {
    case H1_INCOMPLETE:
        return false;
    case H1_REJECTED:
        refuse(conn, http_reject_status(why), http_reject_word(why), http_reject_text(why));
        conn->in_len = 0;
        return true;
    case H1_COMPLETE:
        break;
    }
    answer_request(conn, &request);
    conn->in_len -= used;
    memmove(conn->in, conn->in + used, conn->in_len);
    return true;
}

/* False when the socket takes no more or the connection is gone. */
static bool send_answer(struct admin_conn *conn)
{
    while (conn->out_sent < conn->out_len) {
        ssize_t n =
            send(conn->io.fd, conn->out + conn->out_sent, conn->out_len - conn->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return false;
        if (n < 0) {
            close_conn(conn);
            return false;
        }
        conn->out_sent += (size_t)n;
        set_phase(conn, CONN_WRITING, ADMIN_REQUEST_S);
    }
    free(conn->out);
    conn->out = NULL;
    if (conn->close_after) {
        enum { LINGER_S = 2 };
        shutdown(conn->io.fd, SHUT_WR);
        set_phase(conn, CONN_LINGER, LINGER_S);
    } else if (conn->in_len) {
        set_phase(conn, CONN_READING, ADMIN_REQUEST_S);
    } else {
        go_idle(conn);
    }
    return true;
}

/* False when there is nothing to read now or the connection is gone. */
static bool receive(struct admin_conn *conn)
{
    char thrown_away[4096];
    bool is_over = conn->phase == CONN_LINGER;
    if (!is_over && !conn->in) {
        conn->in = malloc(IN_BYTES);
        iso_assert(conn->in != NULL);
    }
    ssize_t n = is_over ? recv(conn->io.fd, thrown_away, sizeof(thrown_away), 0)
                        : recv(conn->io.fd, conn->in + conn->in_len, IN_BYTES - conn->in_len, 0);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        close_conn(conn);
        return false;
    }
    if (!is_over) {
        conn->in_len += (size_t)n;
        if (conn->phase == CONN_IDLE)
            set_phase(conn, CONN_READING, ADMIN_REQUEST_S);
    }
    return true;
}

/* Goes on until something would block. */
static void drive(struct admin_conn *conn)
{
    for (;;) {
        if (conn->phase == CONN_WRITING && !send_answer(conn))
            return;
        if (conn->phase == CONN_READING && take_request(conn))
            continue;
        if (!receive(conn))
            return;
    }
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    drive(container_of(io, struct admin_conn, io));
}

static void on_deadline(struct loop *loop, struct loop_timer *timer)
{
    struct admin_conn *conn = container_of(timer, struct admin_conn, deadline);
    if (conn->phase != CONN_READING) {
        close_conn(conn);
        return;
    }
    refuse(conn, 408, "request_timeout", "the request did not arrive in time");
    conn->in_len = 0;
    drive(conn);
}

static bool make_room(struct admin *admin)
{
    if (admin->n_conns < ADMIN_CONNECTIONS)
        return true;
    list_for_each (node, &admin->conns) {
        struct admin_conn *conn = container_of(node, struct admin_conn, node);
        if (conn->phase == CONN_IDLE) {
            close_conn(conn);
            return true;
        }
    }
    return false;
}

static void add_conn(struct admin *admin, int fd)
{
    struct admin_conn *conn = calloc(1, sizeof(*conn));
    iso_assert(conn != NULL);
    *conn = (struct admin_conn){.io = {.fd = fd, .on_ready = on_ready}, .admin = admin};
    loop_timer_init(&conn->deadline, on_deadline);
    list_push_back(&admin->conns, &conn->node);
    admin->n_conns++;
    set_phase(conn, CONN_IDLE, ADMIN_REQUEST_S); /* the first request is due sooner than the next ones */
    if (loop_arm(admin->loop, &conn->io))
        close_conn(conn);
}

static void accept_all(struct admin *admin)
{
    for (;;) {
        int fd = accept4(admin->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && make_room(admin))
            add_conn(admin, fd);
        else if (fd >= 0)
            close(fd);
        else if (errno != EINTR && errno != ECONNABORTED)
            break;
    }
    if (errno != EAGAIN)
        loop_timer_set(admin->loop, &admin->retry, admin->loop->now_ns + NS_PER_S);
}

static void on_accept(struct loop *loop, struct loop_io *io, uint32_t events)
{
    accept_all(container_of(io, struct admin, listener));
}

static void on_retry(struct loop *loop, struct loop_timer *timer)
{
    struct admin *admin = container_of(timer, struct admin, retry);
    if (admin->listener.fd >= 0)
        accept_all(admin);
}

struct admin *admin_new(struct loop *loop, const struct control_view *view)
{
    struct admin *admin = calloc(1, sizeof(*admin));
    iso_assert(admin != NULL);
    *admin = (struct admin){.loop = loop, .view = view, .listener = {.fd = -1, .on_ready = on_accept}};
    list_init(&admin->conns);
    loop_timer_init(&admin->retry, on_retry);
    return admin;
}

static void stop_listening(struct admin *admin)
{
    loop_timer_remove(admin->loop, &admin->retry);
    loop_disarm(admin->loop, &admin->listener);
    loop_close(admin->loop, &admin->listener);
    if (admin->configured)
        listen_remove_file(&admin->addr);
    free(admin->configured);
    admin->configured = NULL;
    admin->actual[0] = '\0';
}

void admin_free(struct admin **taken)
{
    struct admin *admin = *taken;
    *taken = NULL;
    if (!admin)
        return;
    list_for_each_safe (node, next, &admin->conns)
        close_conn(container_of(node, struct admin_conn, node));
    stop_listening(admin);
    free(admin);
}

static iso_err fail(struct iso_diag *diag, const struct config_endpoint *endpoint, int why)
{
    diag_add(diag, DIAG_ERROR, "", 0, 0, "/admin/listen", "cannot listen on %.*s: %s",
             SLICE_ARG(endpoint->text), strerror(why));
    return ISO_ERR_SYSTEM;
}

static const struct listen_options options = {.backlog = ADMIN_CONNECTIONS};

/* The new address overlaps the one in use (0.0.0.0 and 127.0.0.1 with one port): the old one must go first,
 * and comes back when the new one fails. */
static int swap_overlapping(struct admin *admin, const struct net_addr *addr, int *fd)
{
    loop_close(admin->loop, &admin->listener);
    int why = listen_open(addr, &options, fd);
    if (!why)
        return 0;
    int old = -1;
    if (listen_open(&admin->addr, &options, &old) == 0) {
        admin->listener.fd = old;
        if (loop_arm_events(admin->loop, &admin->listener, EPOLLIN | EPOLLET))
            loop_close(admin->loop, &admin->listener);
    }
    if (admin->listener.fd < 0) {
        log_error("the admin listener %s is lost", admin->actual);
        stop_listening(admin);
    }
    return why;
}

static void print_actual(struct admin *admin, const struct config_endpoint *endpoint)
{
    struct slice text = endpoint->text;
    if (!endpoint->unix_path.ptr && endpoint->port == 0) {
        size_t colon = text.len;
        while (colon && text.ptr[colon - 1] != ':')
            colon--;
        snprintf(admin->actual, sizeof(admin->actual), "%.*s%u", (int)colon, text.ptr,
                 net_addr_port(&admin->addr));
    } else {
        snprintf(admin->actual, sizeof(admin->actual), "%.*s", SLICE_ARG(text));
    }
}

iso_err admin_listen(struct admin *admin, const struct config_endpoint *endpoint, struct iso_diag *diag)
{
    struct net_addr addr;
    if (!endpoint->text.ptr) {
        stop_listening(admin);
        return ISO_OK;
    }
    if (admin->configured && slice_eq(slice_str(admin->configured), endpoint->text))
        return ISO_OK;
    if (!endpoint->unix_path.ptr)
        net_addr_ip(&addr, &endpoint->ip, endpoint->port);
    else if (!net_addr_unix(&addr, endpoint->unix_path))
        return fail(diag, endpoint, ENAMETOOLONG);
    int fd = -1, why = listen_open(&addr, &options, &fd);
    if (why == EADDRINUSE && admin->listener.fd >= 0 && net_addr_port(&addr) == net_addr_port(&admin->addr))
        why = swap_overlapping(admin, &addr, &fd);
    if (why)
        return fail(diag, endpoint, why);
    stop_listening(admin);
    admin->listener.fd = fd;
    if (loop_arm_events(admin->loop, &admin->listener, EPOLLIN | EPOLLET)) {
        why = errno;
        stop_listening(admin);
        return fail(diag, endpoint, why);
    }
    if (!endpoint->unix_path.ptr && endpoint->port == 0)
        net_addr_ip(&addr, &endpoint->ip, listen_port(fd));
    admin->addr = addr;
    admin->configured = strndup(endpoint->text.ptr, endpoint->text.len);
    iso_assert(admin->configured != NULL);
    print_actual(admin, endpoint);
    return ISO_OK;
}

const char *admin_endpoint(const struct admin *admin)
{
    return admin->actual;
}
