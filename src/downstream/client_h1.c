/* SPDX-License-Identifier: Apache-2.0 */
#include "downstream/client_h1.h"

#include "core/clock.h"
#include "core/fetch.h"
#include "downstream/answers.h"
#include "downstream/client_h2.h"
#include "downstream/linger.h"
#include "proxy/answer.h"
#include "proxy/exchange.h"
#include "proxy/request.h"
#include "proxy/response.h"
#include "proxy/tunnel.h"

#include <sys/epoll.h>

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct client *client = container_of(deferred, struct client, deferred);
    slab_give(&client->listener->worker->clients, client);
}

void client_close(struct client *client)
{
    struct worker *worker = client->listener->worker;
    iso_assert(!client->exchange && client->state != CLIENT_CLOSED);
    client->state = CLIENT_CLOSED;
    if (client->h2)
        client_h2_close(client);
    conn_close(&client->conn, &worker->loop, &worker->bufs);
    buf_give(&worker->bufs, &client->in);
    buf_give(&worker->bufs, &client->proxied);
    if (client->own_upstream)
        pool_close(&worker->pool, &client->own_upstream);
    loop_cancel_later(&client->resume);
    list_remove(&client->node);
    client->deferred.release = release;
    loop_defer(&worker->loop, &client->deferred); /* before the listener's, which may follow */
    client->listener->connection_gone(client->listener);
}

void client_drop(struct client *client)
{
    conn_forget_unsent(&client->conn);
    client_close(client);
}

void client_wind_down(struct client *client)
{
    if (client->h2)
        client_h2_wind_down(client);
    else if (client->state <= CLIENT_HEAD && !client->in)
        client_close(client);
    else
        client->close_after = true;
}

void client_cut(struct client *client)
{
    if (client->exchange) {
        exchange_abort(client->exchange, END_SHUTDOWN);
        return;
    }
    if (client->h2)
        client_h2_cut(client, END_SHUTDOWN);
    client_close(client);
}

static void refuse(struct client *client, enum http_reject why)
{
    struct http_message *msg = client->listener->worker->msg;
    struct http_field *accept = http_message_find(msg, HTTP_FIELD_ACCEPT);
    counter_add(&client->listener->counters->rejected, 1);
    client->close_after = client->unread_request = true;
    exchange_answer_bare(client, http_reject_status(why), http_reject_word(why), http_reject_text(why),
                         accept && h1_prefers_json(http_field_value(accept)), msg->method == HTTP_HEAD, 1);
}

/* Waits for more of a head. */
static void await_head(struct client *client, const char *data, size_t len)
{
    if (client->state != CLIENT_HEAD) {
        client->state = CLIENT_HEAD;
        client_set_deadline(client, client_config(client)->timeouts.header_ms);
    }
    if (!client_keep(client, data, len) || !client_arm(client))
        client_close(client);
}

/* A client may know that HTTP/2 is spoken here (RFC 9113 3.3); over TLS it has to ask. */
static bool begins_http2(struct client *client, char *data, size_t len)
{
    bool whole = false;
    bool is_h2c = client_config(client)->protocol == CONFIG_H2C;
    if (!is_h2c && (len == 0 || data[0] != 'P' || client->conn.layer ||
                    !client_config(client)->http2.cleartext || !client_h2_is_preface(data, len, &whole)))
        return false;
    whole = whole || is_h2c;
    if (!whole) {
        await_head(client, data, len);
        return true;
    }
    buf_give(&client->listener->worker->bufs, &client->in); /* all of it is in data */
    client_h2_begin(client, data, len);
    return true;
}

/* Makes requests out of data[0..len) (which begins with what was kept) until one occupies the connection. */
static void process(struct client *client, char *data, size_t len)
{
    struct worker *worker = client->listener->worker;
    if (client->requests == 0 && begins_http2(client, data, len))
        return;
    while (len > 0 && client->state != CLIENT_CLOSED) {
        size_t used = 0;
        enum http_reject why = HTTP_REJECT_NONE;
        struct http_message *msg = worker->msg;
        switch (h1_parse_request(data, len, &client->listener->limits, msg, &used, &why)) {
        case H1_INCOMPLETE:
            await_head(client, data, len);
            return;
        case H1_REJECTED:
            refuse(client, why);
            return;
        case H1_COMPLETE:
            break;
        }
        buf_give(&worker->bufs, &client->in); /* all of it is in data */
        client->state = CLIENT_EXCHANGE;
        client->requests++;
        loop_timer_clear(&client->conn.timer);
        used += exchange_begin(client, msg, used, data + used, len - used);
        if (client->state == CLIENT_CLOSED || client->state == CLIENT_LINGER)
            return;
        if (client->exchange) {
            if (len > used && !client_keep(client, data + used, len - used))
                exchange_abort(client->exchange, END_NO_MEMORY);
            return;
        }
        data += used;
        len -= used;
    }
}

/* A head that came in pieces is parsed again only when a line has ended or a limit is near: its cost stays
 * linear in its lines, not in its bytes. */
static bool worth_parsing(const struct client *client, const char *fresh, size_t n, size_t total)
{
    const struct h1_limits *limits = &client->listener->limits;
    bool passes_uri_limit = total - n <= limits->uri_bytes && total > limits->uri_bytes;
    return memchr(fresh, '\n', n) || passes_uri_limit || total >= limits->head_bytes;
}

/* What was read is no TLS at all: the layer has gone, and a person can be told in words. */
static void refuse_plain_text(struct client *client)
{
    counter_add(&client->listener->counters->tls_plain, 1);
    client->close_after = client->unread_request = true;
    exchange_answer_bare(client, exchange_end_status(END_PLAIN_ON_TLS), exchange_end_word(END_PLAIN_ON_TLS),
                         exchange_end_text(END_PLAIN_ON_TLS), false, false, 1);
}

/* After a read on a connection whose handshake was not done. False: it has ended, or waits on. */
static bool go_on_with_handshake(struct client *client, enum conn_result result)
{
    struct listener_counters *counters = client->listener->counters;
    if (client->conn.is_misspoken) {
        refuse_plain_text(client);
        return false;
    }
    if (client->conn.is_handshaking) {
        if (result == CONN_BLOCKED)
            return false;
        counter_add(&counters->tls_failed, 1);
        client_close(client);
        return false;
    }
    counter_add(tls_is_resumed(&client->conn) ? &counters->tls_resumed : &counters->tls_full, 1);
    client->state = slice_eq(tls_alpn(&client->conn), SLICE("h2")) ? CLIENT_H2 : CLIENT_HEAD;
    client_set_deadline(client, client_config(client)->timeouts.header_ms);
    if (client_arm(client))
        return true;
    client_close(client);
    return false;
}

/* What every request takes: the next exchange and buffer, and where its head is parsed to. */
static void fetch_for_request(const struct client *client)
{
    enum { MSG_BYTES = 5 * FETCH_LINE, HEAD_BYTES = 3 * FETCH_LINE };
    const struct worker *worker = client->listener->worker;
    slab_fetch(&worker->exchanges);
    buf_fetch(&worker->bufs, HEAD_BYTES);
    fetch(worker->msg, MSG_BYTES);
}

static void read_heads(struct client *client)
{
    struct worker *worker = client->listener->worker;
    while (client->conn.can_read && !client->exchange && client->state <= CLIENT_HEAD) {
        size_t kept = client->in ? buf_len(client->in) : 0, n;
        char *data = worker->rbuf;
        iso_assert(kept <=
                   WORKER_HEAD_BYTES); /* the parser refuses longer heads, resume() takes what is pipelined */
        fetch_for_request(client);
        enum conn_result result = conn_read(&client->conn, data + kept, WORKER_READ_BYTES, &n);
        if (client->state == CLIENT_HANDSHAKE && !go_on_with_handshake(client, result))
            return;
        switch (result) {
        case CONN_OK:
            break;
        case CONN_BLOCKED:
            if (client->state == CLIENT_H2)
                client_h2_begin(client, data, 0);
            return;
        case CONN_EOF:
        case CONN_FAILED:
            client_close(client);
            return;
        }
        counter_add(&client->listener->counters->received_bytes, n);
        if (client->state == CLIENT_H2) {
            client_h2_begin(client, data, n);
            return;
        }
        if (kept)
            memcpy(data, client->in->data + client->in->start, kept);
        if (kept && !worth_parsing(client, data + kept, n, kept + n)) {
            if (!client_keep(client, data, kept + n)) {
                client_close(client);
                return;
            }
            continue;
        }
        process(client, data, kept + n);
        if (client->state == CLIENT_CLOSED)
            return;
    }
}

/* The next request: what was read behind the last one comes first. Not while output is queued: a client that
 * sends requests and reads no answers stops itself. */
static void go_on(struct client *client)
{
    if (client->conn.out)
        return;
    if (client->in && client->state == CLIENT_IDLE) {
        struct buf *in = client->in;
        client->in = NULL;
        process(client, in->data + in->start, buf_len(in));
        buf_give(&client->listener->worker->bufs, &in);
    }
    if (client->state <= CLIENT_HEAD)
        read_heads(client);
}

static void resume(struct loop *loop, struct loop_later *later)
{
    struct client *client = container_of(later, struct client, resume);
    if (client->state == CLIENT_LINGER)
        linger_read(client);
    else
        go_on(client);
}

void client_next(struct client *client)
{
    struct worker *worker = client->listener->worker;
    if (client->close_after || worker->is_stopping || client->listener->holds) {
        client->unread_request |= client->in != NULL;
        client_end(client);
        return;
    }
    if (client->conn.saw_eof && !client->in) {
        client_end(client);
        return;
    }
    client->state = CLIENT_IDLE;
    client_set_deadline(client, client->conn.out ? client_check_ms(client_config(client))
                                                 : client_config(client)->timeouts.idle_ms);
    if (!client_arm(client)) {
        client_close(client);
        return;
    }
    if (client->in || client->conn.can_read)
        loop_later(&worker->loop, &client->resume);
}

/* Empty lines before a request line are no request yet (RFC 9112 2.2): silence gets no answer. */
static bool has_begun_request(const struct client *client)
{
    for (uint32_t i = client->in ? client->in->start : 0; client->in && i < client->in->end; i++)
        if (client->in->data[i] != '\r' && client->in->data[i] != '\n')
            return true;
    return false;
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct client *client = container_of(timer, struct client, conn.timer);
    struct exchange *x = client->exchange;
    switch ((enum client_state)client->state) {
    case CLIENT_HANDSHAKE:
        counter_add(&client->listener->counters->tls_timeouts, 1);
        client_close(client);
        return;
    case CLIENT_IDLE:
        if (!client->is_stalled)
            client_close(client);
        else if (!client_made_progress(client))
            client_drop(client);
        return;
    case CLIENT_LINGER:
        if (!client->is_stalled)
            client_close(client);
        else if (!client_made_progress(client))
            client_drop(client);
        return;
    case CLIENT_HEAD:
        if (!has_begun_request(client)) {
            client_close(client);
            return;
        }
        client->close_after = client->unread_request = true;
        exchange_answer_bare(client, exchange_end_status(END_CLIENT_HEAD_TIMEOUT),
                             exchange_end_word(END_CLIENT_HEAD_TIMEOUT),
                             exchange_end_text(END_CLIENT_HEAD_TIMEOUT), false, false, 1);
        return;
    case CLIENT_H2:
        client_h2_due(client);
        return;
    case CLIENT_EXCHANGE:
        break;
    case CLIENT_CLOSED:
        return;
    }
    if (x->is_tunnel)
        tunnel_due(x);
    else if (!client->is_stalled)
        request_due(x);
    else if (!client_made_progress(client))
        exchange_abort(x, END_CLIENT_READS_SLOWLY);
}

static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct client *client = container_of(io, struct client, conn.io);
    struct worker *worker = client->listener->worker;
    bool was_blocked = client->conn.out != NULL;
    conn_note_events(&client->conn, events);
    enum conn_result flushed = conn_flush(&client->conn, &worker->bufs);
    struct exchange *x = client->exchange;
    if (flushed == CONN_FAILED || events & EPOLLERR) {
        if (x)
            exchange_abort(x, x->request.is_done ? END_CLIENT_ABORT : END_CLIENT_ABORT_BODY);
        else
            client_close(client);
        return;
    }
    if (iso_unlikely(client->h2 != NULL)) {
        client_h2_ready(client, was_blocked);
        return;
    }
    if (client->state == CLIENT_LINGER) {
        if (was_blocked && flushed == CONN_OK) {
            if (!client->unread_request || client->conn.saw_eof) {
                client_close(client);
                return;
            }
            client->is_stalled = false;
            linger_begin(client);
        }
        linger_read(client);
        return;
    }
    if (was_blocked && flushed == CONN_OK)
        client_took_output(client);
    if (!x) {
        if (list_is_empty(&client->resume.node))
            go_on(client);
        return;
    }
    if (x->is_tunnel) {
        tunnel_pump(x);
        return;
    }
    if ((was_blocked && flushed == CONN_OK) || x->in_pipe) {
        response_pump(x);
        if (client->exchange != x) /* it has ended, and perhaps the connection with it */
            return;
    }
    request_pump(x);
}

static bool open_tls(struct client *client)
{
    struct worker_listener *listener = client->listener;
    client->state = CLIENT_HANDSHAKE;
    if (!tls_accept(listener->worker->tls, &client->conn, listener->current->tls)) {
        client_close(client);
        return false;
    }
    client_set_deadline(client, client_config(client)->timeouts.handshake_ms);
    return true;
}

void client_open(struct worker_listener *listener, int fd, struct arrival_facts *facts)
{
    struct worker *worker = listener->worker;
    struct client *client = slab_try_take(&worker->clients);
    if (!client) {
        loop_close(&worker->loop, &(struct loop_io){.fd = fd});
        buf_give(&worker->bufs, &facts->proxied);
        listener->connection_gone(listener);
        return;
    }
    *client = (struct client){.downstream = &downstream_h1,
                              .listener = listener,
                              .proxied = facts->proxied,
                              .peer = net_addr_to_ip(facts->peer),
                              .peer_port = net_addr_port(facts->peer)};
    conn_init(&client->conn, fd, on_ready, on_due);
    loop_later_init(&client->resume, resume);
    list_push_back(&listener->clients, &client->node);
    client->state = CLIENT_IDLE;
    if (listener->current->tls && !open_tls(client))
        return;
    read_heads(client);
    if ((client->state != CLIENT_IDLE && client->state != CLIENT_HANDSHAKE) || client->requests > 0)
        return;
    if (client->state == CLIENT_HANDSHAKE) {
        if (!client_arm(client))
            client_close(client);
        return;
    }
    /* Nothing came with the connection: its head has the whole time from here on. */
    client->state = CLIENT_HEAD;
    client_set_deadline(client, client_config(client)->timeouts.header_ms);
    if (!client_arm(client))
        client_close(client);
}
