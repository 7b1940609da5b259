/* SPDX-License-Identifier: Apache-2.0 */
/* After a 101 (WebSocket and other upgrades): bytes both ways, unchanged. Each side may end its direction
 * alone (half-close); the tunnel is over when both have, when either breaks, or after tunnel_ms without a
 * byte. */
#include "proxy/exchange.h"

#include "core/clock.h"

enum { READS_PER_TURN = 16 };

static void end_tunnel(struct exchange *x, enum exchange_end end)
{
    gauge_add(&x->client->listener->counters->active_tunnels, -1);
    exchange_abort(x, end);
}

static void set_deadline(struct exchange *x)
{
    loop_timer_set(&x->worker->loop, &x->client->conn.timer,
                   x->rate_checked_ns + x->listener->config->timeouts.tunnel_ms * NS_PER_MS);
}

/* Moves what can be moved one way. False: the tunnel has ended. */
static bool relay(struct exchange *x, struct conn *from, struct conn *to, counter *received, uint64_t *bytes)
{
    struct worker *worker = x->worker;
    for (int reads = 0; from->can_read && !to->out; reads++) {
        size_t n = 0;
        if (reads == READS_PER_TURN) {
            exchange_resume(x);
            return true;
        }
        enum conn_result result = conn_read(from, worker->rbuf, WORKER_READ_BYTES, &n);
        if (result == CONN_BLOCKED)
            return true;
        if (result == CONN_EOF) {
            conn_shut(to);
            return true;
        }
        if (result == CONN_OK)
            result = conn_write(to, &worker->bufs, &(struct iovec){worker->rbuf, n}, 1);
        if (result == CONN_FAILED) {
            end_tunnel(x, END_TUNNEL);
            return false;
        }
        counter_add(received, n);
        *bytes += n;
        x->rate_checked_ns = worker->loop.now_ns;
    }
    return true;
}

void tunnel_pump(struct exchange *x)
{
    struct conn *client = &x->client->conn, *upstream = &x->upstream->conn;
    struct listener_counters *counters = x->client->listener->counters;
    struct target_counters *target = &x->upstream->backend->workers[x->worker->index].counters;
    if (x->upstream_write_failed ||
        !relay(x, client, upstream, &counters->received_bytes, &x->received_bytes) ||
        !relay(x, upstream, client, &target->received_bytes, &x->sent_bytes)) {
        if (x->upstream_write_failed)
            end_tunnel(x, END_TUNNEL);
        return;
    }
    if (client->saw_eof && upstream->saw_eof && !client->out && !upstream->out)
        end_tunnel(x, END_TUNNEL);
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
    counter_add(&client->listener->counters->upgrades, 1);
    gauge_add(&client->listener->counters->active_tunnels, 1);
    if (!client_arm(client)) {
        end_tunnel(x, END_NO_MEMORY);
        return;
    }
    if (from_upstream.len &&
        client_write(client, &(struct iovec){(void *)from_upstream.ptr, from_upstream.len}, 1) ==
            CONN_FAILED) {
        end_tunnel(x, END_TUNNEL);
        return;
    }
    if (client->in) { /* what the client sent before it knew */
        struct buf *in = client->in;
        client->in = NULL;
        enum conn_result result = conn_write(&x->upstream->conn, &worker->bufs,
                                             &(struct iovec){in->data + in->start, buf_len(in)}, 1);
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
