/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the admin server. It works on one request at a time: head, then who asks and for what,
 * then the body, then the handler, then the answer; what is pipelined behind waits in the input buffer and in
 * the kernel. Nothing is taken from a client before it is known to be allowed: the body is read last. */
#include "control/admin_internal.h"
#include "control/router.h"
#include "core/clock.h"
#include "http1/parse.h"
#include "http1/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum conn_phase {
    CONN_HANDSHAKE, /* TLS */
    CONN_IDLE,      /* no byte of a request yet */
    CONN_HEAD,      /* a head has begun */
    CONN_BODY,      /* its body is on its way */
    CONN_HANDLING,  /* a handler has deferred its answer */
    CONN_WRITING,   /* the answer is not all sent */
    CONN_LINGER, /* all is sent, the peer's bytes are thrown away until it closes, so that it can read us */
    CONN_CLOSED,
};

enum {
    IN_BYTES = ADMIN_HEAD_BYTES + 64, /* a head, and the empty lines that the parser skips before it */
    OUT_BYTES = 128 << 10,            /* of an answer handed to the socket at once */
    ROUNDS = 64,                      /* steps of one connection in a turn of the loop */
    LINGER_BYTES = 1 << 20,
};

struct admin_conn {
    struct conn conn;
    struct list node; /* in admin->conns, longest idle first */
    struct admin *admin;
    struct loop_later resume;
    struct loop_deferred release;
    uint8_t phase; /* enum conn_phase */
    bool close_after;
    char *in; /* owns; [IN_BYTES]; NULL while idle */
    size_t in_len;
    struct api_call *call; /* owns: the request being read or answered */
    struct text body;      /* owns: of it, so far */
    uint64_t body_left;    /* of a body with a length */
    struct h1_chunked chunked;
    bool in_trailers;
    char *out; /* owns; the answer; NULL when there is none */
    size_t out_len, out_sent;
    size_t lingered; /* bytes thrown away */
};

static const struct h1_limits limits = {
    .head_bytes = ADMIN_HEAD_BYTES, .uri_bytes = ADMIN_URI_BYTES, .fields = ADMIN_FIELDS};

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

static void close_conn(struct admin_conn *conn)
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

/* Enters a phase and gives it its time; 0: as long as it takes. */
static void set_phase(struct admin_conn *conn, enum conn_phase phase, uint32_t seconds)
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
    set_phase(conn, CONN_IDLE, ADMIN_IDLE_S);
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

/* Puts the answer of conn->call together and ends the call. */
static void queue_answer(struct admin_conn *conn)
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
    set_phase(conn, CONN_WRITING, ADMIN_REQUEST_S);
    leave_call(conn);
    forget_body(conn);
}

static struct api_call *call_of(struct admin_conn *conn)
{
    if (!conn->call) {
        conn->call = api_call_new();
        conn->call->view = conn->admin->view;
        conn->call->document = conn->admin->document;
    }
    return conn->call;
}

static void end_with_answer(struct admin_conn *conn)
{
    conn->call->reply.allow = (struct slice){0}; /* what there is is nobody's business yet */
    conn->close_after = true;
    conn->in_len = 0;
    queue_answer(conn);
}

/* What was refused before its body was read, or before it was a request; the connection ends with the
 * answer. */
static void refuse(struct admin_conn *conn, unsigned status, const char *code, const char *message)
{
    api_fail(call_of(conn), status, code, "", "%s", message);
    end_with_answer(conn);
}

static bool has_body(const struct http_message *request)
{
    return request->framing == HTTP_BODY_CHUNKED ||
           (request->framing == HTTP_BODY_LENGTH && request->content_length > 0);
}

/* The request with bytes of its own, since it may outlive the input buffer. */
static void keep_request(struct api_call *call, const char *head, size_t len)
{
    size_t used;
    enum http_reject why;
    struct slice copy = arena_slice(&call->arena, slice_of(head, len));
    call->request = arena_new(&call->arena, struct http_message);
    enum h1_result result = h1_parse_request(copy.ptr, copy.len, &limits, call->request, &used, &why);
    iso_assert(result == H1_COMPLETE && used == len);
}

static void handle(struct admin_conn *conn)
{
    struct api_call *call = conn->call;
    if (conn->body.len) {
        call->body = text_slice(&conn->body);
        conn->body = (struct text){0};
    }
    call->conn = conn;
    set_phase(conn, CONN_HANDLING, 0);
    call->route->handler(call);
    /* A deferred call may have been finished meanwhile; then it is gone, and the phase another. */
    if (conn->phase == CONN_HANDLING && !conn->call->is_deferred) {
        conn->phase = CONN_BODY; /* nobody else has the call */
        queue_answer(conn);
    }
}

void api_finish(struct api_call *call)
{
    struct admin_conn *conn = call->conn;
    iso_assert(call->is_deferred);
    if (!conn) {
        api_call_free(&call);
        return;
    }
    conn->phase = CONN_BODY;
    queue_answer(conn);
    loop_later(conn->admin->loop, &conn->resume);
}

static bool say_continue(struct admin_conn *conn)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct iovec piece = {(void *)go_on, sizeof(go_on) - 1};
    return conn_write(&conn->conn, &conn->admin->bufs, &piece, 1) != CONN_FAILED;
}

/* The head is known and allowed; its body, if there is one, comes next. */
static void begin_body(struct admin_conn *conn, const struct http_message *request)
{
    if (!has_body(request)) {
        handle(conn);
        return;
    }
    if (!router_takes_body((enum http_method)request->method)) {
        refuse(conn, 413, "body_too_large", "this takes no body");
        return;
    }
    if (request->framing == HTTP_BODY_LENGTH && request->content_length > ADMIN_BODY_BYTES) {
        refuse(conn, 413, "body_too_large", "the body may have 16 MiB");
        return;
    }
    conn->body_left = request->framing == HTTP_BODY_LENGTH ? request->content_length : 0;
    conn->chunked = (struct h1_chunked){0};
    conn->in_trailers = false;
    set_phase(conn, CONN_BODY, ADMIN_BODY_S);
    if (request->expect_continue && conn->in_len == 0 && !say_continue(conn))
        close_conn(conn);
}

static void use_input(struct admin_conn *conn, size_t used)
{
    conn->in_len -= used;
    memmove(conn->in, conn->in + used, conn->in_len);
}

/* Takes the head at the front of the input; false when there is not a whole one. */
static bool take_head(struct admin_conn *conn)
{
    struct http_message request;
    size_t used;
    enum http_reject why;
    switch (h1_parse_request(conn->in, conn->in_len, &limits, &request, &used, &why)) {
    case H1_INCOMPLETE:
        return false;
    case H1_REJECTED:
        refuse(conn, http_reject_status(why), http_reject_word(why), http_reject_text(why));
        return true;
    case H1_COMPLETE:
        break;
    }
    struct api_call *call = call_of(conn);
    keep_request(call, conn->in, used);
    use_input(conn, used);
    conn->close_after = !request.keep_alive || conn->admin->view->is_shutting_down;
    enum router_result found = router_find(call);
    if (!access_identify(conn->admin, call) || !access_allow(conn->admin, call, found)) {
        end_with_answer(conn);
        return true;
    }
    if (found == ROUTER_FOUND) {
        begin_body(conn, call->request);
        return true;
    }
    conn->close_after |= has_body(&request);
    if (found == ROUTER_NO_PATH)
        api_fail(call, 404, "not_found", "", "there is nothing at this path; GET / lists what there is");
    else
        api_fail(call, 405, "method_not_allowed", "", "the method does not fit this path; allowed: %.*s",
                 SLICE_ARG(call->reply.allow));
    queue_answer(conn);
    return true;
}

/* Moves bytes from the input to the body. False after refusing. */
static bool add_body(struct admin_conn *conn, const char *data, size_t len)
{
    if (conn->body.len + len > ADMIN_BODY_BYTES) {
        refuse(conn, 413, "body_too_large", "the body may have 16 MiB");
        return false;
    }
    if (conn->admin->body_bytes + len > ADMIN_BODIES_BYTES) {
        refuse(conn, 503, "busy", "too many large requests at once");
        return false;
    }
    text_add(&conn->body, slice_of(data, len));
    conn->admin->body_bytes += len;
    return true;
}

/* False when more is needed. */
static bool take_trailers(struct admin_conn *conn)
{
    struct http_message trailers;
    size_t used;
    enum http_reject why;
    switch (h1_parse_trailers(conn->in, conn->in_len, &limits, &trailers, &used, &why)) {
    case H1_INCOMPLETE:
        return false;
    case H1_REJECTED:
        refuse(conn, http_reject_status(why), http_reject_word(why), http_reject_text(why));
        return true;
    case H1_COMPLETE:
        break;
    }
    use_input(conn, used);
    handle(conn);
    return true;
}

static bool take_chunks(struct admin_conn *conn)
{
    size_t used = 0, body = 0;
    enum http_reject why;
    if (conn->in_trailers)
        return take_trailers(conn);
    enum h1_chunked_result result =
        h1_chunked_decode(&conn->chunked, conn->in, conn->in_len, &used, &body, &why);
    if (result == H1_CHUNKED_REJECTED) {
        refuse(conn, http_reject_status(why), http_reject_word(why), http_reject_text(why));
        return true;
    }
    if (!add_body(conn, conn->in, body))
        return true;
    use_input(conn, used);
    if (result == H1_CHUNKED_MORE)
        return false;
    conn->in_trailers = true;
    return take_trailers(conn);
}

/* Takes what the input has of the body; false when more is needed. */
static bool take_body(struct admin_conn *conn)
{
    if (conn->call->request->framing == HTTP_BODY_CHUNKED)
        return take_chunks(conn);
    size_t len = conn->in_len < conn->body_left ? conn->in_len : (size_t)conn->body_left;
    if (!add_body(conn, conn->in, len))
        return true;
    use_input(conn, len);
    conn->body_left -= len;
    if (conn->body_left)
        return false;
    handle(conn);
    return true;
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
        set_phase(conn, CONN_WRITING, ADMIN_REQUEST_S);
    }
    if (result == CONN_FAILED)
        close_conn(conn);
    if (result != CONN_OK)
        return false;
    free(conn->out);
    conn->out = NULL;
    if (conn->close_after) {
        enum { LINGER_S = 2 };
        conn_shut(&conn->conn);
        set_phase(conn, CONN_LINGER, LINGER_S);
    } else if (conn->in_len) {
        set_phase(conn, CONN_HEAD, ADMIN_REQUEST_S);
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
        refuse(conn, 400, "plain_http", "this port speaks TLS: https://");
        return false;
    }
    if (conn->phase == CONN_HANDSHAKE && !conn->conn.is_handshaking)
        set_phase(conn, CONN_IDLE, ADMIN_REQUEST_S);
    if (result == CONN_EOF || result == CONN_FAILED)
        close_conn(conn);
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
        close_conn(conn);
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
        set_phase(conn, CONN_HEAD, ADMIN_REQUEST_S);
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
            goes_on = take_head(conn);
            break;
        case CONN_BODY:
            goes_on = take_body(conn);
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
        close_conn(conn);
        return;
    }
    refuse(conn, 408, "request_timeout", "the request did not arrive in time");
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
    set_phase(conn, CONN_IDLE, ADMIN_REQUEST_S); /* the first request is due sooner than the next ones */
    if (admin->server) {
        conn->phase = CONN_HANDSHAKE;
        if (!tls_accept(admin->tls, &conn->conn, admin->server)) {
            close_conn(conn);
            return;
        }
    }
    if (loop_arm(admin->loop, &conn->conn.io))
        close_conn(conn);
}

bool admin_conn_close_idle(struct admin *admin)
{
    list_for_each (node, &admin->conns) {
        struct admin_conn *conn = container_of(node, struct admin_conn, node);
        if (conn->phase == CONN_IDLE || conn->phase == CONN_HANDSHAKE) {
            close_conn(conn);
            return true;
        }
    }
    return false;
}

void admin_conn_close_all(struct admin *admin)
{
    list_for_each_safe (node, next, &admin->conns)
        close_conn(container_of(node, struct admin_conn, node));
}
