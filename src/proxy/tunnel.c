/* SPDX-License-Identifier: Apache-2.0 */
/* After a 101 (WebSocket and other upgrades): bytes both ways, unchanged. Each side may end its direction
 * alone (half-close); the tunnel is over when both have, when either breaks, or after tunnel_ms without a
 * byte. */
#include "proxy/exchange.h"

#include "core/clock.h"

enum { READS_PER_TURN = 16 };

static void end_tunnel(struct exchange *x, enum exchange_end end)
{
    exchange_abort(x, end);
}

static void set_deadline(struct exchange *x)
{
    loop_timer_set(&x->worker->loop, &x->client->conn.timer,
                   x->rate_checked_ns + x->listener->config->timeouts.tunnel_ms * NS_PER_MS);
}

/* One direction of the tunnel. */
struct lane {
    struct conn *from, *to;
    struct websocket_track *track;
    bool *told; /* our close frame went this way */
    bool masked;
    counter *received;
    uint64_t *bytes;
};

static struct lane lane_to_target(struct exchange *x)
{
    return (struct lane){.from = &x->client->conn,
                         .to = &x->upstream->conn,
                         .track = &x->to_target,
                         .told = &x->target_told,
                         .masked = true,
                         .received = &x->client->listener->counters->received_bytes,
                         .bytes = &x->received_bytes};
}

static struct lane lane_to_client(struct exchange *x)
{
    return (struct lane){.from = &x->upstream->conn,
                         .to = &x->client->conn,
                         .track = &x->to_client,
                         .told = &x->client_told,
                         .received = &x->upstream->backend->workers[x->worker->index].counters.received_bytes,
                         .bytes = &x->sent_bytes};
}

static enum conn_result send_close_frame(struct exchange *x, struct lane *lane)
{
    uint8_t frame[WEBSOCKET_CLOSE_MAX];
    size_t len =
        websocket_close_frame(frame, WEBSOCKET_GOING_AWAY, lane->masked, (uint32_t)rng_next(&x->worker->rng));
    *lane->told = true;
    return conn_write(lane->to, &x->worker->bufs, &(struct iovec){frame, len}, 1);
}

/* Passes bytes on. Of a tunnel that is being ended only the frame under way, then our close frame; nothing
 * may follow that, so later bytes are thrown away. */
static enum conn_result pass(struct exchange *x, struct lane *lane, char *data, size_t len)
{
    enum conn_result result = CONN_OK;
    if (*lane->told)
        return CONN_OK;
    if (x->is_websocket && x->is_going_away)
        len = websocket_finish_frame(lane->track, (uint8_t *)data, len);
    else if (x->is_websocket)
        websocket_follow(lane->track, (uint8_t *)data, len);
    if (len > 0)
        result = conn_write(lane->to, &x->worker->bufs, &(struct iovec){data, len}, 1);
    if (result != CONN_FAILED && x->is_going_away && x->is_websocket && websocket_is_between(lane->track))
        result = send_close_frame(x, lane);
    return result;
}

/* Moves what can be moved one way. False: the tunnel has ended. */
static bool relay(struct exchange *x, struct lane *lane)
{
    struct worker *worker = x->worker;
    for (int reads = 0; lane->from->can_read && !lane->to->out; reads++) {
        size_t n = 0;
        if (reads == READS_PER_TURN) {
            exchange_resume(x);
            return true;
        }
        enum conn_result result = conn_read(lane->from, worker->rbuf, WORKER_READ_BYTES, &n);
        if (result == CONN_BLOCKED)
            return true;
        if (result == CONN_EOF) {
            conn_shut(lane->to);
            return true;
        }
        if (result == CONN_OK)
            result = pass(x, lane, worker->rbuf, n);
        if (result == CONN_FAILED) {
            end_tunnel(x, END_TUNNEL);
            return false;
        }
        counter_add(lane->received, n);
        *lane->bytes += n;
        x->rate_checked_ns = worker->loop.now_ns;
    }
    return true;
}

void tunnel_pump(struct exchange *x)
{
    struct conn *client = &x->client->conn, *upstream = &x->upstream->conn;
    struct lane to_target = lane_to_target(x), to_client = lane_to_client(x);
    if (x->upstream_write_failed) {
        end_tunnel(x, END_TUNNEL);
        return;
    }
    if (!relay(x, &to_target) || !relay(x, &to_client))
        return;
    if (client->saw_eof && upstream->saw_eof && !client->out && !upstream->out)
        end_tunnel(x, END_TUNNEL);
}

void tunnel_say_going_away(struct exchange *x)
{
    struct lane lanes[] = {lane_to_target(x), lane_to_client(x)};
    if (!x->is_websocket || x->is_going_away)
        return;
    x->is_going_away = true;
    for (size_t i = 0; i < iso_countof(lanes); i++) {
        if (!websocket_is_between(lanes[i].track)) /* goes out behind the frame under way */
            continue;
        if (send_close_frame(x, &lanes[i]) == CONN_FAILED) {
            end_tunnel(x, END_TUNNEL);
            return;
        }
    }
}

void tunnel_due(struct exchange *x)
{
    uint64_t idle_ms = (x->worker->loop.now_ns - x->rate_checked_ns) / NS_PER_MS;
    if (idle_ms >= x->listener->config->timeouts.tunnel_ms)
        end_tunnel(x, END_TUNNEL_IDLE);
    else
        set_deadline(x);
}

void tunnel_start(struct exchange *x, struct slice from_upstream)
{
    struct worker *worker = x->worker;
    struct client *client = x->client;
    x->is_tunnel = true;
    x->rate_checked_ns = worker->loop.now_ns;
    x->end = END_TUNNEL;
    if (!x->snapshot->log) /* an idle tunnel needs no buffer */
        buf_give(&worker->bufs, &x->head);
    counter_add(&client->listener->counters->upgrades, 1);
    gauge_add(&client->listener->counters->active_tunnels, 1);
    if (!client_arm(client)) {
        end_tunnel(x, END_NO_MEMORY);
        return;
    }
    struct lane to_target = lane_to_target(x), to_client = lane_to_client(x);
    if (from_upstream.len &&
        pass(x, &to_client, (char *)from_upstream.ptr, from_upstream.len) == CONN_FAILED) {
        end_tunnel(x, END_TUNNEL);
        return;
    }
    client->is_stalled = false; /* tunnel_due() watches now */
    if (client->in) {           /* what the client sent before it knew */
        struct buf *in = client->in;
        client->in = NULL;
        enum conn_result result = pass(x, &to_target, in->data + in->start, buf_len(in));
        buf_give(&worker->bufs, &in);
        if (result == CONN_FAILED) {
            end_tunnel(x, END_TUNNEL);
            return;
        }
    }
    set_deadline(x);
    loop_timer_clear(&x->upstream->conn.timer);
    exchange_resume(x); /* both sides may hold bytes already */
}
