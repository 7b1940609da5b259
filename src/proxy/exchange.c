/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/exchange.h"

#include "core/clock.h"
#include "proxy/access.h"
#include "proxy/account.h"
#include "proxy/affinity.h"
#include "proxy/affinity_share.h"
#include "proxy/answer.h"
#include "proxy/forward.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/select.h"
#include "proxy/splice.h"
#include "proxy/tunnel.h"
#include "transform/rewrite.h"

/* What forwarding adds to a head at most, before a rule's own fields. */
enum { HEAD_SLACK_BYTES = 1280 };

/* Remembers text for the log behind the head; empty when it does not fit. */
static struct slice keep_text(struct buf *buf, struct slice s)
{
    if (s.len == 0 || buf->cap - buf->end < s.len)
        return (struct slice){0};
    char *at = buf->data + buf->end;
    memcpy(at, s.ptr, s.len);
    buf->end += (uint32_t)s.len;
    return slice_of(at, s.len);
}

/* One pass over the fields for what is needed after the head is gone. */
static void note_fields(struct exchange *x, struct http_message *msg, bool log)
{
    for (uint32_t i = 0; i < msg->n_fields; i++) {
        struct http_field *field = &msg->fields[i];
        if (field->id == HTTP_FIELD_ACCEPT)
            x->wants_json = h1_prefers_json(http_field_value(field));
        else if (field->id == HTTP_FIELD_CONTENT_TYPE)
            x->is_grpc = grpc_is_content_type(http_field_value(field));
        else if (field->id == HTTP_FIELD_UPGRADE)
            x->is_websocket = slice_caseeq(http_field_value(field), SLICE("websocket"));
        else if (log && field->id == HTTP_FIELD_USER_AGENT)
            x->log_user_agent = keep_text(x->head, http_field_value(field));
        else if (log && field->id == HTTP_FIELD_REFERER)
            x->log_referer = keep_text(x->head, http_field_value(field));
    }
    if (log) {
        x->log_method = keep_text(x->head, msg->method_text);
        x->log_host = keep_text(x->head, msg->authority);
        x->log_path = keep_text(x->head, msg->path);
        x->log_query = keep_text(x->head, msg->query);
    }
}

static void on_deadline(struct loop *loop, struct loop_timer *timer)
{
    struct exchange *x = container_of(timer, struct exchange, deadline);
    if (!x->answer_done)
        exchange_fail(x, END_GRPC_DEADLINE);
}

/* The caller says how long it waits. */
static void note_deadline(struct exchange *x, struct http_message *msg)
{
    const struct http_field *field = http_message_find_name(msg, SLICE("grpc-timeout"));
    uint64_t ns;
    if (!field || !grpc_timeout_ns(http_field_value(field), &ns))
        return;
    x->has_deadline = true;
    loop_timer_init(&x->deadline, on_deadline);
    loop_timer_set(&x->worker->loop, &x->deadline, x->begun_ns + ns);
}

static void on_resume(struct loop *loop, struct loop_later *later)
{
    struct exchange *x = container_of(later, struct exchange, resume);
    struct client *client = x->client;
    if (x->is_tunnel) {
        tunnel_pump(x);
        return;
    }
    request_pump(x);
    if (client->exchange == x)
        response_pump(x);
}

void exchange_resume(struct exchange *x)
{
    loop_later(&x->worker->loop, &x->resume);
}

static struct exchange *make(struct client *client, const struct http_message *msg, size_t head_bytes)
{
    struct worker *worker = client->listener->worker;
    bool log = client->listener->current->snapshot->log != NULL;
    struct exchange *x = slab_try_take(&worker->exchanges);
    if (!x)
        return NULL;
    *x = (struct exchange){
        .worker = worker,
        .client = client,
        .listener = client->listener->current,
        .snapshot = client->listener->current->snapshot,
        .begun_ns = worker->loop.now_ns,
        .begun_wall_ns = worker->loop.wall_ns,
        .received_bytes = head_bytes,
        .method = msg->method,
        .client_minor = msg->version_minor,
        .keep_alive = msg->keep_alive,
        .wants_upgrade = msg->upgrade,
        .te_trailers = msg->te_trailers,
        .expects_continue = msg->expect_continue,
        .request_is_chunked = msg->framing == HTTP_BODY_CHUNKED,
        .client_ip = client->peer,
        .grpc_status = GRPC_STATUS_UNKNOWN,
    };
    x->head = buf_try_take(&worker->bufs, head_bytes * (log ? 2 : 1) + HEAD_SLACK_BYTES);
    if (!x->head) {
        slab_give(&worker->exchanges, x);
        return NULL;
    }
    list_init(&x->pending);
    list_init(&x->draining);
    loop_later_init(&x->resume, on_resume);
    transfer_init(&x->request, msg, false, true);
    if (client->downstream->has_frames && msg->framing == HTTP_BODY_CHUNKED)
        x->request.framing = HTTP_BODY_UNTIL_CLOSE; /* its frames tell where it ends */
    worker_pin(worker, x->snapshot);
    gauge_add(&client->listener->counters->active_requests, 1);
    client->exchange = x;
    return x;
}

void exchange_drop_upstream(struct exchange *x, bool reuse)
{
    struct worker *worker = x->worker;
    if (x->backend) {
        atomic_fetch_sub_explicit(&x->backend->in_flight, 1, memory_order_relaxed);
        x->backend = NULL;
    }
    if (!x->carrier)
        return;
    x->carrier->end(x, reuse);
    x->carrier = NULL;
    x->far_end = NULL;
    x->is_connecting = false;
    if (iso_unlikely(!list_is_empty(&worker->pending)))
        forward_wake_pending(worker);
}

void exchange_answered(struct exchange *x)
{
    x->answer_done = true;
    exchange_account(x);
    exchange_drop_upstream(x, x->upstream_reusable && x->request.is_done && !x->upstream_write_failed);
    /* A client that was ready to go on may have sent more already (pipelining). */
    if (x->client->close_after && x->keep_alive && !x->client->downstream->has_frames)
        x->client->unread_request |= conn_has_unread(&x->client->conn);
    if (x->request.is_done) {
        struct client *client = x->client;
        exchange_release(x);
        client->downstream->next(client);
        return;
    }
    x->client->unread_request = true;
    if (x->client->close_after || (x->expects_continue && x->request.bytes == 0)) {
        exchange_stop_discarding(x);
        return;
    }
    x->discard = true; /* the connection lives on if the rest of the body comes soon and is not much */
    loop_timer_set(&x->worker->loop, &x->client->conn.timer,
                   x->worker->loop.now_ns + x->listener->config->timeouts.body_ms * NS_PER_MS);
    if (!client_arm(x->client))
        exchange_abort(x, END_CLIENT_ABORT_BODY);
    else
        exchange_resume(x);
}

void exchange_abort(struct exchange *x, enum exchange_end end)
{
    struct client *client = x->client;
    if (!x->answer_done)
        x->end = (uint8_t)end;
    client->conn.is_cut = x->answer_begun && !x->answer_done;
    exchange_account(x);
    forward_leave_pending(x);
    exchange_drop_upstream(x, false);
    exchange_release(x);
    client->downstream->cut(client, end);
}

void exchange_stop_discarding(struct exchange *x)
{
    struct client *client = x->client;
    iso_assert(x->answer_done);
    client->close_after = client->unread_request = true;
    exchange_release(x);
    client->downstream->next(client);
}

void exchange_release(struct exchange *x)
{
    struct worker *worker = x->worker;
    iso_assert(!x->carrier && !x->backend && list_is_empty(&x->pending));
    transfer_fini(&x->request, &worker->bufs);
    transfer_fini(&x->response, &worker->bufs);
    splice_drop(x);
    share_end(x);
    access_leave(x);
    if (x->has_deadline)
        loop_timer_remove(&worker->loop, &x->deadline);
    list_remove(&x->draining);
    buf_give(&worker->bufs, &x->unsent);
    buf_give(&worker->bufs, &x->head);
    loop_cancel_later(&x->resume);
    x->client->exchange = NULL;
    worker_unpin(worker, x->snapshot);
    slab_give(&worker->exchanges, x);
}

/* The Host of a request that came without (HTTP/1.0): it is sent as HTTP/1.1, where servers refuse an empty
 * one. */
static struct slice host_of(const struct config_target_group *group)
{
    for (uint32_t i = 0; i < group->n_targets; i++)
        if (!group->targets[i].endpoint.unix_path.ptr)
            return group->targets[i].endpoint.text;
    return SLICE("localhost");
}

/* Tells the target which certificate the client showed; what a trusted proxy said in these fields is replaced
 * by what we know ourselves. */
static bool add_client_certificate(struct exchange *x, struct http_message *msg)
{
    struct slice subject, sha256;
    if (!tls_peer_subject(x->client->downstream->transport(x->client), &subject, &sha256))
        return true;
    http_message_drop(msg, HTTP_FIELD_X_CLIENT_CERT_SUBJECT);
    http_message_drop(msg, HTTP_FIELD_X_CLIENT_CERT_SHA256);
    return http_message_add(msg, SLICE("X-Client-Cert-Subject"), subject) &&
           http_message_add(msg, SLICE("X-Client-Cert-SHA256"), sha256);
}

/* Says who the client is, rewrites (the host that was asked for is known by then), and puts the head as the
 * target gets it into x->head. */
static bool prepare_head(struct exchange *x, struct http_message *msg, bool peer_trusted)
{
    struct worker *worker = x->worker;
    struct scratch scratch = {worker->scratch, worker->scratch + WORKER_SCRATCH_BYTES};
    struct forwarded_facts facts = {.peer = &x->client->peer,
                                    .peer_trusted = peer_trusted,
                                    .tls = x->listener->tls != NULL,
                                    .local_port = x->listener->config->endpoint.port};
    if (!forwarded_apply(&facts, msg, worker->loop.wall_ns / NS_PER_MS, &worker->rng, &scratch))
        return false;
    if (x->listener->tls && !add_client_certificate(x, msg))
        return false;
    if (x->rule && !rewrite_request(x->rule, msg, &scratch))
        return false;
    if (msg->authority.len == 0)
        msg->authority = host_of(x->group->config);
    if (x->snapshot->config->via && !http_message_add(msg, SLICE("Via"),
                                                      x->client->downstream->has_frames ? SLICE("2 isobar")
                                                      : x->client_minor                 ? SLICE("1.1 isobar")
                                                                        : SLICE("1.0 isobar")))
        return false;
    x->log_request_id = keep_text(x->head, facts.request_id);
    size_t at = x->head->end, n = h1_write_request(x->head->data + at, x->head->cap - at, msg);
    if (n == 0) {
        /* A rule's fields were more than was reckoned with: the texts stay where they are, the head moves. */
        struct buf *larger = buf_try_take(&worker->bufs, x->head->cap * 4);
        if (!larger)
            return false;
        memcpy(larger->data, x->head->data, at);
        ptrdiff_t moved = larger->data - x->head->data;
        struct slice *texts[] = {&x->log_method,     &x->log_host,       &x->log_path,   &x->log_query,
                                 &x->log_request_id, &x->log_user_agent, &x->log_referer};
        for (size_t i = 0; i < iso_countof(texts); i++)
            if (texts[i]->len)
                texts[i]->ptr += moved;
        buf_give(&worker->bufs, &x->head);
        x->head = larger;
        n = h1_write_request(larger->data + at, larger->cap - at, msg);
    }
    x->head->start = (uint32_t)at;
    x->head->end = (uint32_t)(at + n);
    x->head_len = (uint32_t)n;
    return n > 0;
}

/* A host that is under another TLS policy than the connection (RFC 9110 15.5.20). */
static bool is_misdirected(const struct client *client, const struct http_message *msg)
{
    struct slice host;
    uint16_t port;
    return http_host_parse(msg->authority, &host, &port) &&
           tls_host_is_misdirected(client->downstream->transport(client), host);
}

size_t exchange_begin(struct client *client, struct http_message *msg, size_t head_bytes, char *data,
                      size_t len)
{
    struct exchange *x = make(client, msg, head_bytes);
    if (!x) {
        client->close_after = client->unread_request = true;
        exchange_answer_bare(client, exchange_end_status(END_NO_MEMORY), exchange_end_word(END_NO_MEMORY),
                             exchange_end_text(END_NO_MEMORY), false, false, 1);
        return len;
    }
    struct worker *worker = x->worker;
    const struct config_listener *config = x->listener->config;
    const struct forwarded_trust *trust = &x->snapshot->trust;
    bool peer_trusted = trust->n && forwarded_is_trusted(trust, &client->peer);
    if (peer_trusted)
        x->client_ip = forwarded_client(trust, &client->peer, msg);
    note_fields(x, msg, x->snapshot->log != NULL);
    if (x->is_grpc)
        note_deadline(x, msg);

    struct transfer_pieces pieces = {.n = 0};
    size_t used = 0;
    if (config->limits.body_bytes && x->request.left > config->limits.body_bytes) {
        client->close_after = client->unread_request = true;
        exchange_fail(x, END_BODY_TOO_LARGE);
        return len;
    }
    if (iso_unlikely(x->listener->tls != NULL) && is_misdirected(client, msg)) {
        exchange_fail(x, END_MISDIRECTED);
        return client->exchange == x ? request_feed(x, data, len) : 0;
    }
    x->rule = route_match(x->listener->routes, msg, &x->client_ip, worker->route_scratch);
    if (access_refuses(x, msg) || exchange_answer_by_rule(x, msg))
        return client->exchange == x ? request_feed(x, data, len) : 0;
    x->max_attempts = (uint8_t)x->group->config->retry.attempts;
    if (x->group->affinity)
        affinity_note_request(x, msg);
    if (x->group->method->needs_hash)
        x->hash = select_hash(x->group, msg, &x->client_ip);
    if (!prepare_head(x, msg, peer_trusted)) {
        exchange_fail(x, END_HEAD_GREW);
        return client->exchange == x ? request_feed(x, data, len) : 0;
    }
    if (len > 0 && !x->request.is_done && !request_take(x, data, len, &used, &pieces))
        return len;
    forward_start(x, &pieces);
    return used;
}
