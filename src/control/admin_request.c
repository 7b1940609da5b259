/* SPDX-License-Identifier: Apache-2.0 */
/* A request on its way in: its head, who asks and for what, then its body, then its handler. */
#include "control/admin_conn.h"

#include "control/router.h"
#include "http1/parse.h"

static const struct h1_limits limits = {
    .head_bytes = ADMIN_HEAD_BYTES, .uri_bytes = ADMIN_URI_BYTES, .fields = ADMIN_FIELDS};

static void finish(struct api_call *call)
{
    struct admin_conn *conn = call->conn;
    if (!conn) {
        api_call_free(&call);
        return;
    }
    conn->phase = CONN_BODY;
    admin_conn_queue_answer(conn);
    loop_later(conn->admin->loop, &conn->resume);
}

static struct api_call *call_of(struct admin_conn *conn)
{
    if (!conn->call) {
        conn->call = api_call_new();
        conn->call->finish = finish;
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
    admin_conn_queue_answer(conn);
}

void admin_conn_refuse(struct admin_conn *conn, unsigned status, const char *code, const char *message)
{
    api_fail(call_of(conn), status, code, "", "%s", message);
    end_with_answer(conn);
}

/* The bytes are not HTTP as it should be. */
static void reject(struct admin_conn *conn, enum http_reject why)
{
    admin_conn_refuse(conn, http_reject_status(why), http_reject_word(why), http_reject_text(why));
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
    admin_conn_set_phase(conn, CONN_HANDLING, 0);
    call->route->handler(call);
    /* A deferred call may have been finished meanwhile; then it is gone, and the phase another. */
    if (conn->phase == CONN_HANDLING && !conn->call->is_deferred) {
        conn->phase = CONN_BODY; /* nobody else has the call */
        admin_conn_queue_answer(conn);
    }
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
        admin_conn_refuse(conn, 413, "body_too_large", "this takes no body");
        return;
    }
    if (request->framing == HTTP_BODY_LENGTH && request->content_length > ADMIN_BODY_BYTES) {
        admin_conn_refuse(conn, 413, "body_too_large", "the body may have 16 MiB");
        return;
    }
    conn->body_left = request->framing == HTTP_BODY_LENGTH ? request->content_length : 0;
    conn->chunked = (struct h1_chunked){0};
    conn->in_trailers = false;
    admin_conn_set_phase(conn, CONN_BODY, ADMIN_BODY_S);
    if (request->expect_continue && conn->in_len == 0 && !say_continue(conn))
        admin_conn_close(conn);
}

static void use_input(struct admin_conn *conn, size_t used)
{
    conn->in_len -= used;
    memmove(conn->in, conn->in + used, conn->in_len);
}

/* Has the parser all it needs? If not, *is_refused: it refused what came, and the client is told; else it
 * wants more. */
static bool is_whole(struct admin_conn *conn, enum h1_result result, const enum http_reject *why,
                     bool *is_refused)
{
    *is_refused = result == H1_REJECTED;
    if (*is_refused)
        reject(conn, *why);
    return result == H1_COMPLETE;
}

bool admin_conn_take_head(struct admin_conn *conn)
{
    struct http_message request;
    size_t used;
    enum http_reject why;
    bool is_refused;
    enum h1_result result = h1_parse_request(conn->in, conn->in_len, &limits, &request, &used, &why);
    if (!is_whole(conn, result, &why, &is_refused))
        return is_refused;
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
    admin_conn_queue_answer(conn);
    return true;
}

/* Moves bytes from the input to the body. False after refusing. */
static bool add_body(struct admin_conn *conn, const char *data, size_t len)
{
    if (conn->body.len + len > ADMIN_BODY_BYTES) {
        admin_conn_refuse(conn, 413, "body_too_large", "the body may have 16 MiB");
        return false;
    }
    if (conn->admin->body_bytes + len > ADMIN_BODIES_BYTES) {
        admin_conn_refuse(conn, 503, "busy", "too many large requests at once");
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
    bool is_refused;
    enum h1_result result = h1_parse_trailers(conn->in, conn->in_len, &limits, &trailers, &used, &why);
    if (!is_whole(conn, result, &why, &is_refused))
        return is_refused;
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
        reject(conn, why);
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

bool admin_conn_take_body(struct admin_conn *conn)
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
