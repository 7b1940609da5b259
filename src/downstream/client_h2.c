/* SPDX-License-Identifier: Apache-2.0 */
#include "downstream/client_h2.h"

#include "core/clock.h"
#include "downstream/client_h1.h"
#include "downstream/linger.h"
#include "downstream/stream.h"
#include "proxy/exchange.h"

#include <stdlib.h>

enum {
    READS_PER_TURN = 4,
    WRITES_PER_TURN = 4,
    PIECES = 17,            /* of one write: eight DATA frames of bodies and what is between them */
    OUT_BYTES = 128 * 1024, /* gathered for one write */
    LEAVE_MS = 1000,        /* a client that does not answer the notice has this long to read it */
};
_Static_assert((int)OUT_BYTES <= (int)WORKER_SCRATCH_BYTES && (int)OUT_BYTES >= (int)HTTP2_OUT_BYTES,
               "output is gathered there");

static struct worker *worker_of(const struct client_h2 *h2)
{
    return h2->client->listener->worker;
}

static const struct config_listener *config_of(const struct client_h2 *h2)
{
    return h2->client->listener->current->config;
}

static void set_deadline(struct client_h2 *h2, uint32_t ms)
{
    struct loop *loop = &worker_of(h2)->loop;
    loop_timer_set(loop, &h2->client->conn.timer, loop->now_ns + ms * NS_PER_MS);
}

bool client_h2_is_preface(const char *data, size_t len, bool *whole)
{
    static const size_t preface = sizeof(HTTP2_PREFACE) - 1;
    *whole = len >= preface;
    return memcmp(data, HTTP2_PREFACE, len < preface ? len : preface) == 0;
}

/* What the connection waits for when it waits for nothing else: the rest of a header list, or a request. */
static void watch(struct client_h2 *h2)
{
    struct client *client = h2->client;
    bool is_in_head = http2_server_is_in_head(h2->server);
    if (client->is_stalled)
        return;
    if (is_in_head) {
        if (!h2->is_in_head)
            set_deadline(h2, config_of(h2)->timeouts.header_ms);
    } else if (h2->n_streams > 0) {
        loop_timer_clear(&client->conn.timer);
    } else if (h2->is_in_head || !client->conn.timer.due_ns) {
        set_deadline(h2,
                     client->requests ? config_of(h2)->timeouts.idle_ms : config_of(h2)->timeouts.header_ms);
    }
    h2->is_in_head = is_in_head;
}

void client_h2_note_streams(struct client_h2 *h2)
{
    if (h2->n_streams > 1)
        return;
    if (h2->n_streams == 0 && h2->leaving)
        client_h2_flush_soon(h2); /* which finds that it is over */
    if (!h2->client->is_stalled && !h2->is_in_head)
        loop_timer_clear(&h2->client->conn.timer);
}

void client_h2_flush_soon(struct client_h2 *h2)
{
    loop_later(&worker_of(h2)->loop, &h2->flush);
}

/* Nothing more is to be said or heard: the connection ends. A client that has not read our GOAWAY yet may
 * still send, and a reset for that would destroy it on its way. */
static bool end_if_over(struct client_h2 *h2)
{
    bool is_over = http2_server_is_over(h2->server) || (h2->leaving == H2_WENT_AWAY && h2->n_streams == 0);
    if (!is_over)
        return false;
    struct client *client = h2->client;
    client->unread_request = true;
    client_h2_cut(client, END_CLIENT_ABORT);
    client_end(client);
    return true;
}

/* Streams that still have output though the socket takes more wait for the client to open their windows. */
static void watch_windows(struct client_h2 *h2)
{
    list_for_each (node, &h2->waiting) {
        stream_watch(container_of(node, struct stream, waiting));
    }
}

static void give_spent(struct client_h2 *h2)
{
    while (h2->spent) {
        struct buf *buf = h2->spent;
        h2->spent = buf->next;
        buf_give(&worker_of(h2)->bufs, &buf);
    }
}

/* One write; frames are put together in room[0..cap). False: there is nothing to send, or h2->has_failed. */
static bool write_some(struct client_h2 *h2, char *room, size_t cap)
{
    struct iovec pieces[PIECES];
    struct http2_output output = {room, cap, pieces, 0, PIECES};
    h2->is_gathering = true;
    http2_server_gather(h2->server, &output);
    h2->is_gathering = false;
    if (output.n && client_write(h2->client, pieces, output.n) == CONN_FAILED)
        h2->has_failed = true;
    give_spent(h2);
    return output.n && !h2->has_failed;
}

size_t client_h2_room(const struct client_h2 *h2, int32_t id)
{
    return h2->has_failed || h2->client->conn.out ? 0 : http2_server_room(h2->server, id);
}

void client_h2_write_now(struct client_h2 *h2, const struct slice *left)
{
    char room[HTTP2_OUT_BYTES + HTTP2_HEADS_BYTES]; /* the worker's is in use by whoever brings the bytes */
    while (left->len && !h2->client->conn.out && write_some(h2, room, sizeof(room)))
        ;
}

static void flush(struct client_h2 *h2)
{
    struct client *client = h2->client;
    for (int writes = 0; !h2->has_failed && !client->conn.out; writes++) {
        if (writes == WRITES_PER_TURN) {
            client_h2_flush_soon(h2);
            return;
        }
        if (write_some(h2, worker_of(h2)->scratch, OUT_BYTES) || h2->has_failed)
            continue;
        watch_windows(h2);
        if (!end_if_over(h2))
            watch(h2);
        return;
    }
    if (h2->has_failed)
        client_close(client);
}

static void on_flush(struct loop *loop, struct loop_later *later)
{
    flush(container_of(later, struct client_h2, flush));
}

static void receive(struct client_h2 *h2, char *data, size_t len)
{
    struct client *client = h2->client;
    if (!http2_server_receive(h2->server, data, len, worker_of(h2)->loop.now_ns) ||
        http2_server_is_over(h2->server))
        h2->is_ending = true;
    if (client->listener->holds || worker_of(h2)->says_close)
        client_h2_wind_down(client);
}

static void read_on(struct client_h2 *h2)
{
    struct client *client = h2->client;
    struct worker *worker = worker_of(h2);
    for (int reads = 0; client->conn.can_read && !h2->is_ending; reads++) {
        size_t n;
        if (reads == READS_PER_TURN) {
            loop_later(&worker->loop, &h2->read_on);
            break;
        }
        enum conn_result result = conn_read(&client->conn, worker->rbuf, WORKER_READ_BYTES, &n);
        if (result == CONN_BLOCKED)
            break;
        if (result != CONN_OK) {
            client_close(client);
            return;
        }
        counter_add(&client->listener->counters->received_bytes, n);
        receive(h2, worker->rbuf, n);
    }
    watch(h2);
    client_h2_flush_soon(h2);
}

static void on_read_on(struct loop *loop, struct loop_later *later)
{
    read_on(container_of(later, struct client_h2, read_on));
}

static void on_leave_due(struct loop *loop, struct loop_timer *timer)
{
    struct client_h2 *h2 = container_of(timer, struct client_h2, leave_timer);
    stream_handler.pong(h2);
}

static bool open(struct client *client)
{
    struct worker_listener *listener = client->listener;
    struct worker *worker = listener->worker;
    struct client_h2 *h2 = malloc(sizeof(*h2));
    if (!h2)
        return false;
    *h2 = (struct client_h2){.client = client};
    list_init(&h2->streams);
    list_init(&h2->waiting);
    loop_later_init(&h2->flush, on_flush);
    loop_later_init(&h2->read_on, on_read_on);
    loop_timer_init(&h2->leave_timer, on_leave_due);
    h2->server = http2_server_new(
        &(struct http2_server_options){.handler = &stream_handler,
                                       .owner = h2,
                                       .limits = &listener->limits,
                                       .bufs = &worker->bufs,
                                       .msg = worker->msg,
                                       .trailers = worker->trailers,
                                       .memory = http2_client_thread_memory(worker->muxes.http2),
                                       .growth = http2_client_thread_growth(worker->muxes.http2),
                                       .max_streams = listener->current->config->http2.max_streams,
                                       .now_ns = worker->loop.now_ns});
    if (!h2->server) {
        free(h2);
        return false;
    }
    client->h2 = h2;
    client->state = CLIENT_H2;
    return true;
}

void client_h2_begin(struct client *client, char *data, size_t len)
{
    if (!open(client) || !client_arm(client)) {
        client_close(client);
        return;
    }
    counter_add(&client->listener->counters->h2_connections, 1);
    if (len > 0)
        receive(client->h2, data, len);
    read_on(client->h2);
}

void client_h2_ready(struct client *client, bool was_blocked)
{
    if (was_blocked && !client->conn.out) {
        client_took_output(client);
        client_h2_flush_soon(client->h2);
    }
    if (client->conn.can_read)
        read_on(client->h2);
}

void client_h2_due(struct client *client)
{
    struct client_h2 *h2 = client->h2;
    if (client->is_stalled) {
        if (client_made_progress(client))
            return;
        client_h2_cut(client, END_CLIENT_READS_SLOWLY);
        client_drop(client);
    } else if (h2->is_in_head) {
        h2->is_ending = true;
        http2_server_terminate(h2->server, HTTP2_ENHANCE_YOUR_CALM);
        client_h2_flush_soon(h2);
    } else {
        client_h2_wind_down(client);
        stream_handler.pong(h2); /* nobody waits for anything */
    }
}

void client_h2_wind_down(struct client *client)
{
    struct client_h2 *h2 = client->h2;
    struct loop *loop = &worker_of(h2)->loop;
    if (h2->leaving)
        return;
    h2->leaving = H2_GAVE_NOTICE;
    http2_server_give_notice(h2->server);
    loop_timer_set(loop, &h2->leave_timer, loop->now_ns + LEAVE_MS * NS_PER_MS);
    client_h2_flush_soon(h2);
}

void client_h2_cut(struct client *client, enum exchange_end end)
{
    list_for_each_safe (node, after, &client->h2->streams) {
        stream_end(container_of(node, struct stream, node), end);
    }
}

void client_h2_close(struct client *client)
{
    struct client_h2 *h2 = client->h2;
    list_for_each_safe (node, after, &h2->streams) {
        struct stream *stream = container_of(node, struct stream, node);
        struct exchange *x = stream->client.exchange;
        stream_end(stream, x && !x->request.is_done ? END_CLIENT_ABORT_BODY : END_CLIENT_ABORT);
    }
    client->h2 = NULL;
    http2_server_free(&h2->server);
    loop_cancel_later(&h2->flush);
    loop_cancel_later(&h2->read_on);
    loop_timer_remove(&worker_of(h2)->loop, &h2->leave_timer);
    free(h2);
}
