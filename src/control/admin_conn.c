/* SPDX-License-Identifier: Apache-2.0 */
#include "control/admin_conn.h"

#include "core/clock.h"
#include "http1/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    IN_BYTES = ADMIN_HEAD_BYTES + 64, /* a head, and the empty lines that the parser skips before it */
    OUT_BYTES = 128 << 10,            /* of an answer handed to the socket at once */
    ROUNDS = 64,                      /* steps of one connection in a turn of the loop */
    LINGER_BYTES = 1 << 20,
};

static void release_conn(struct loop *loop, struct loop_deferred *deferred)
{
    free(container_of(deferred, struct admin_conn, release));
}

static void forget_body(struct admin_conn *conn)
{
    conn->admin->body_bytes -= conn->body.len;
    text_fini(&conn->body);
}

/* The call ends, or goes on without anybody waiting for it. */
static void leave_call(struct admin_conn *conn)
{
    if (!conn->call)
        return;
    if (conn->call->body.ptr)
        conn->admin->body_bytes -= conn->call->body.len;
    if (conn->phase == CONN_HANDLING) {
        conn->call->conn = NULL;
        conn->call = NULL;
    } else {
        api_call_free(&conn->call);
    }
}

void admin_conn_close(struct admin_conn *conn)
{
    struct admin *admin = conn->admin;
    if (conn->phase == CONN_CLOSED)
        return;
    leave_call(conn);
    forget_body(conn);
    conn_close(&conn->conn, admin->loop, &admin->bufs);
    loop_cancel_later(&conn->resume);
    list_remove(&conn->node);
    admin->n_conns--;
    free(conn->in);
    free(conn->out);
    conn->in = conn->out = NULL;
    conn->phase = CONN_CLOSED;
    conn->release.release = release_conn;
    loop_defer(admin->loop, &conn->release);
}

void admin_conn_set_phase(struct admin_conn *conn, enum conn_phase phase, uint32_t seconds)
{
    conn->phase = phase;
    if (seconds)
        loop_timer_set(conn->admin->loop, &conn->conn.timer, conn->admin->loop->now_ns + seconds * NS_PER_S);
    else
        loop_timer_clear(&conn->conn.timer);
}

static void go_idle(struct admin_conn *conn)
{
    free(conn->in);
    conn->in = NULL;
    admin_conn_set_phase(conn, CONN_IDLE, ADMIN_IDLE_S);
    list_remove(&conn->node);
    list_push_back(&conn->admin->conns, &conn->node);
}

static size_t add_fields(struct h1_pair *fields, const struct api_reply *reply, const char *challenge)
{
    size_t n = 0;
    fields[n++] = (struct h1_pair){SLICE("Cache-Control"), SLICE("no-store")};
    if (reply->allow.ptr)
        fields[n++] = (struct h1_pair){SLICE("Allow"), reply->allow};
    if (reply->etag.ptr)
        fields[n++] = (struct h1_pair){SLICE("ETag"), reply->etag};
    if (challenge)
        fields[n++] = (struct h1_pair){SLICE("WWW-Authenticate"), slice_str(challenge)};
    return n;
}

void admin_conn_queue_answer(struct admin_conn *conn)
{
    enum { HEAD_BYTES_MAX = 4096, FIELDS_MAX = 4 };
    struct api_call *call = conn->call;
    struct api_reply *reply = &call->reply;
    char date[40];
    time_t now = (time_t)(conn->admin->loop->wall_ns / NS_PER_S);
    struct tm tm;
    struct h1_pair fields[FIELDS_MAX];
    bool has_body = reply->body.len > 0;
    struct h1_answer answer = {.status = reply->status,
                               .body = text_slice(&reply->body),
                               .content_type = has_body ? reply->content_type : (struct slice){0},
                               .location = reply->location,
                               .retry_after_s = reply->retry_after_s,
                               .fields = fields,
                               .head = call->request && call->request->method == HTTP_HEAD,
                               .close = conn->close_after,
                               .client_minor = call->request ? call->request->version_minor : 1};
    answer.n_fields =
        (uint32_t)add_fields(fields, reply, reply->status == 401 ? "Bearer realm=\"isobar\"" : NULL);
    gmtime_r(&now, &tm);
    answer.date = slice_of(date, strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S GMT", &tm));
    size_t cap = answer.body.len + reply->location.len + reply->etag.len + HEAD_BYTES_MAX;
    conn->out = malloc(cap);
    iso_assert(conn->out != NULL);
    conn->out_len = h1_write_answer(conn->out, cap, &answer);
    iso_assert(conn->out_len > 0);
    conn->out_sent = 0;
    admin_conn_set_phase(conn, CONN_WRITING, ADMIN_REQUEST_S);
    leave_call(conn);
    forget_body(conn);
}

/* False when the socket takes no more or the connection is gone. */
static bool send_answer(struct admin_conn *conn)
{
    struct admin *admin = conn->admin;
    enum conn_result result = conn_flush(&conn->conn, &admin->bufs);
    while (result == CONN_OK && conn->out_sent < conn->out_len) {
        size_t left = conn->out_len - conn->out_sent, len = left < OUT_BYTES ? left : OUT_BYTES;
        struct iovec piece = {conn->out + conn->out_sent, len};
        result = conn_write(&conn->conn, &admin->bufs, &piece, 1);
        conn->out_sent += len;
        admin_conn_set_phase(conn, CONN_WRITING, ADMIN_REQUEST_S);
    }
    if (result == CONN_FAILED)
        admin_conn_close(conn);
    if (result != CONN_OK)
        return false;
    free(conn->out);
    conn->out = NULL;
    if (conn->close_after) {
        enum { LINGER_S = 2 };
        conn_shut(&conn->conn);
        admin_conn_set_phase(conn, CONN_LINGER, LINGER_S);
    } else if (conn->in_len) {
        admin_conn_set_phase(conn, CONN_HEAD, ADMIN_REQUEST_S);
    } else {
        go_idle(conn);
    }
    return true;
}

/* After a read: is the connection still there, with bytes to look at? A failed handshake ends it; a client
 * that speaks plain HTTP to a TLS port is told so. */
static bool is_read(struct admin_conn *conn, enum conn_result result)
{
    if (conn->phase == CONN_HANDSHAKE && conn->conn.is_misspoken) {
        admin_conn_refuse(conn, 400, "plain_http", "this port speaks TLS: https://");
        return false;
    }
    if (conn->phase == CONN_HANDSHAKE && !conn->conn.is_handshaking)
        admin_conn_set_phase(conn, CONN_IDLE, ADMIN_REQUEST_S);
    if (result == CONN_EOF || result == CONN_FAILED)
        admin_conn_close(conn);
    return result == CONN_OK;
}

/* False when there is nothing to read now or the connection is gone. */
static bool receive(struct admin_conn *conn)
{
    char thrown_away[4096];
    size_t n;
    if (!conn->conn.can_read)
        return false;
    if (conn->phase == CONN_LINGER) {
        if (!is_read(conn, conn_recv(&conn->conn, thrown_away, sizeof(thrown_away), &n)))
            return false;
        conn->lingered += n;
        if (conn->lingered <= LINGER_BYTES)
            return true;
        admin_conn_close(conn);
        return false;
    }
    if (!conn->in) {
        conn->in = malloc(IN_BYTES);
        iso_assert(conn->in != NULL);
        conn->in_len = 0;
    }
    if (!is_read(conn, conn_read(&conn->conn, conn->in + conn->in_len, IN_BYTES - conn->in_len, &n)))
        return conn->phase == CONN_WRITING;
    conn->in_len += n;
    if (conn->phase == CONN_IDLE)
        admin_conn_set_phase(conn, CONN_HEAD, ADMIN_REQUEST_S);
    return true;
}

/* Goes on until something would block, or others must have their turn. */
static void drive(struct admin_conn *conn)
{
    for (int round = 0; round < ROUNDS; round++) {
        bool goes_on = false;
        switch ((enum conn_phase)conn->phase) {
        case CONN_HANDLING:
        case CONN_CLOSED:
            return;
        case CONN_WRITING:
            if (!send_answer(conn))
                return;
            continue;
        case CONN_HEAD:
            goes_on = admin_conn_take_head(conn);
            break;
        case CONN_BODY:
            goes_on = admin_conn_take_body(conn);
            break;
        case CONN_HANDSHAKE:
        case CONN_IDLE:
        case CONN_LINGER:
            break;
        }
        if (!goes_on && conn->phase != CONN_CLOSED && !receive(conn))
            return;
    }
    if (conn->phase != CONN_CLOSED)
        loop_later(conn->admin->loop, &conn->resume);
}

static void on_resume(struct loop *loop, struct loop_later *later)
{
    drive(container_of(later, struct admin_conn, resume));
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct admin_conn *conn = container_of(io, struct admin_conn, conn.io);
    conn_note_events(&conn->conn, events);
    drive(conn);
}

static void on_deadline(struct loop *loop, struct loop_timer *timer)
{
    struct admin_conn *conn = container_of(timer, struct admin_conn, conn.timer);
    if (conn->phase != CONN_HEAD && conn->phase != CONN_BODY) {
        admin_conn_close(conn);
        return;
    }
    admin_conn_refuse(conn, 408, "request_timeout", "the request did not arrive in time");
    drive(conn);
}

void admin_conn_open(struct admin *admin, int fd)
{
    struct admin_conn *conn = calloc(1, sizeof(*conn));
    iso_assert(conn != NULL);
    conn->admin = admin;
    conn_init(&conn->conn, fd, on_ready, on_deadline);
    loop_later_init(&conn->resume, on_resume);
    list_push_back(&admin->conns, &conn->node);
    admin->n_conns++;
    admin_conn_set_phase(conn, CONN_IDLE,
                         ADMIN_REQUEST_S); /* the first request is due sooner than the next ones */
    if (admin->server) {
        conn->phase = CONN_HANDSHAKE;
        if (!tls_accept(admin->tls, &conn->conn, admin->server)) {
            admin_conn_close(conn);
            return;
        }
    }
    if (loop_arm(admin->loop, &conn->conn.io))
        admin_conn_close(conn);
}

bool admin_conn_close_idle(struct admin *admin)
{
    list_for_each (node, &admin->conns) {
        struct admin_conn *conn = container_of(node, struct admin_conn, node);
        if (conn->phase == CONN_IDLE || conn->phase == CONN_HANDSHAKE) {
            admin_conn_close(conn);
            return true;
        }
    }
    return false;
}

void admin_conn_close_all(struct admin *admin)
{
    list_for_each_safe (node, next, &admin->conns)
        admin_conn_close(container_of(node, struct admin_conn, node));
}
