/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/tunnel.h"

#include "core/clock.h"
#include "worker/lane.h"

static void set_deadline(struct exchange *x)
{
    loop_timer_set(&x->worker->loop, &x->client->conn.timer,
                   x->rate_checked_ns + x->listener->config->timeouts.tunnel_ms * NS_PER_MS);
}

/* One direction of the tunnel: a lane that may have frames to mind. */
struct way {
    struct lane lane;
    struct exchange *x;
    struct websocket_track *track;
    bool *told; /* our close frame went this way */
    bool masked;
};

static enum conn_result send_close_frame(struct worker *worker, const struct way *way)
{
    uint8_t frame[WEBSOCKET_CLOSE_MAX];
    size_t len =
        websocket_close_frame(frame, WEBSOCKET_GOING_AWAY, way->masked, (uint32_t)rng_next(&worker->rng));
    *way->told = true;
    return conn_write(way->lane.to, &worker->bufs, &(struct iovec){frame, len}, 1);
}

/* Passes bytes of a WebSocket on. When the tunnel is being ended only the frame under way, then our close
 * frame; nothing may follow that, so later bytes are thrown away. */
static enum conn_result pass_frames(struct worker *worker, const struct lane *lane, char *data, size_t len)
{
    const struct way *way = container_of(lane, struct way, lane);
    enum conn_result result = CONN_OK;
    if (*way->told)
        return CONN_OK;
    if (way->x->is_going_away)
        len = websocket_finish_frame(way->track, (uint8_t *)data, len);
    else
        websocket_follow(way->track, (uint8_t *)data, len);
    if (len > 0)
        result = conn_write(lane->to, &worker->bufs, &(struct iovec){data, len}, 1);
    if (result != CONN_FAILED && way->x->is_going_away && websocket_is_between(way->track))
        result = send_close_frame(worker, way);
    return result;
}

static struct target_counters *target_counters(struct exchange *x)
{
    return &x->backend->workers[x->worker->index].counters;
}

/* The bytes of a stream are counted where those of its connection are. */
static counter *target_bytes(struct exchange *x, counter *of_target)
{
    return x->far_end->io.fd < 0 ? &x->worker->counted_elsewhere : of_target;
}

static struct way way_to_target(struct exchange *x)
{
    return (struct way){.lane = {.from = &x->client->conn,
                                 .to = x->far_end,
                                 .received = client_received(x->client),
                                 .sent = target_bytes(x, &target_counters(x)->sent_bytes),
                                 .bytes = &x->received_bytes,
                                 .pass = x->is_websocket ? pass_frames : NULL},
                        .x = x,
                        .track = &x->to_target,
                        .told = &x->target_told,
                        .masked = true};
}

static struct way way_to_client(struct exchange *x)
{
    return (struct way){.lane = {.from = x->far_end,
                                 .to = &x->client->conn,
                                 .received = target_bytes(x, &target_counters(x)->received_bytes),
                                 .sent = client_sent(x->client),
                                 .bytes = &x->sent_bytes,
                                 .pass = x->is_websocket ? pass_frames : NULL},
                        .x = x,
                        .track = &x->to_client,
                        .told = &x->client_told};
}

/* Bytes that were read already, before the tunnel began. */
static enum conn_result pass_early(struct exchange *x, const struct way *way, char *data, size_t len)
{
    counter_add(way->lane.sent, len);
    *way->lane.bytes += len;
    return way->lane.pass ? way->lane.pass(x->worker, &way->lane, data, len)
                          : conn_write(way->lane.to, &x->worker->bufs, &(struct iovec){data, len}, 1);
}

/* False: the tunnel has ended. */
static bool move(struct exchange *x, const struct way *way)
{
    switch (lane_move(x->worker, &way->lane, &x->rate_checked_ns)) {
    case LANE_MOVED:
        return true;
    case LANE_AGAIN:
        exchange_resume(x);
        return true;
    case LANE_FAILED:
        break;
    }
    exchange_abort(x, END_TUNNEL);
    return false;
}

void tunnel_pump(struct exchange *x)
{
    struct conn *client = &x->client->conn, *upstream = x->far_end;
    const struct way to_target = way_to_target(x), to_client = way_to_client(x);
    if (x->upstream_write_failed) {
        exchange_abort(x, END_TUNNEL);
        return;
    }
    if (!move(x, &to_target) || !move(x, &to_client))
        return;
    if (client->saw_eof && upstream->saw_eof && !client->out && !conn_is_full(upstream))
        exchange_abort(x, END_TUNNEL);
}

void tunnel_say_going_away(struct exchange *x)
{
    const struct way ways[] = {way_to_target(x), way_to_client(x)};
    if (!x->is_websocket || x->is_going_away)
        return;
    x->is_going_away = true;
    for (size_t i = 0; i < iso_countof(ways); i++) {
        if (!websocket_is_between(ways[i].track)) /* goes out behind the frame under way */
            continue;
        if (send_close_frame(x->worker, &ways[i]) == CONN_FAILED) {
            exchange_abort(x, END_TUNNEL);
            return;
        }
    }
}

void tunnel_due(struct exchange *x)
{
    uint64_t idle_ms = (x->worker->loop.now_ns - x->rate_checked_ns) / NS_PER_MS;
    if (idle_ms >= x->listener->config->timeouts.tunnel_ms)
        exchange_abort(x, END_TUNNEL_IDLE);
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
    x->far_end = x->carrier->tunnel(x);
    if (!x->far_end || !client_arm(client)) {
        exchange_abort(x, END_NO_MEMORY);
        return;
    }
    const struct way to_target = way_to_target(x), to_client = way_to_client(x);
    if (from_upstream.len &&
        pass_early(x, &to_client, (char *)from_upstream.ptr, from_upstream.len) == CONN_FAILED) {
        exchange_abort(x, END_TUNNEL);
        return;
    }
    client->is_stalled = false; /* tunnel_due() watches now */
    if (client->in) {           /* what the client sent before it knew */
        struct buf *in = client->in;
        client->in = NULL;
        enum conn_result result = pass_early(x, &to_target, in->data + in->start, buf_len(in));
        buf_give(&worker->bufs, &in);
        if (result == CONN_FAILED) {
            exchange_abort(x, END_TUNNEL);
            return;
        }
    }
    set_deadline(x);
    loop_timer_clear(x->carrier->timer(x));
    exchange_resume(x); /* both sides may hold bytes already */
}
