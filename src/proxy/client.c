/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/client.h"

#include "core/clock.h"
#include "proxy/exchange.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

void client_set_deadline(struct client *client, uint32_t ms)
{
    loop_timer_set(client_loop(client), &client->conn.timer, client_loop(client)->now_ns + ms * NS_PER_MS);
}

bool client_arm(struct client *client)
{
    return loop_arm(client_loop(client), &client->conn.io) == ISO_OK;
}

bool client_keep(struct client *client, const char *data, size_t len)
{
    struct worker *worker = client->listener->worker;
    struct buf *old = client->in;
    client->in = NULL;
    bool ok = len == 0 || buf_append(&worker->bufs, &client->in, slice_of(data, len));
    buf_give(&worker->bufs, &old); /* data may be part of it, hence last */
    return ok;
}

bool client_keep_rest(struct client *client, const char *data, size_t len)
{
    if (len == 0 || client->state == CLIENT_CLOSED || client->state == CLIENT_LINGER)
        return true;
    if (!client->exchange)
        loop_later(client_loop(client), &client->resume);
    return client_keep(client, data, len);
}

static uint64_t bytes_left_to_send(const struct client *client)
{
    int unsent = 0;
    if (ioctl(client->conn.io.fd, SIOCOUTQ, &unsent) < 0)
        unsent = 0;
    if (client->exchange)
        unsent += (int)client->exchange->in_pipe;
    return (uint64_t)unsent + (client->conn.out ? buf_len(client->conn.out) : 0);
}

bool client_wait_writable(struct client *client)
{
    if (client->is_stalled)
        return true;
    if (!client_arm(client))
        return false;
    client->is_stalled = true;
    client->stalled_at_ns = client_loop(client)->now_ns;
    client->stalled_left = bytes_left_to_send(client);
    client_set_deadline(client, client_check_ms(client_config(client)));
    return true;
}

void client_took_output(struct client *client)
{
    if (!client->is_stalled)
        return;
    client->is_stalled = false;
    if (client->state == CLIENT_IDLE)
        client_set_deadline(client, client_config(client)->timeouts.idle_ms);
    else
        loop_timer_clear(&client->conn.timer);
}

enum conn_result client_write(struct client *client, const struct iovec *pieces, int n)
{
    struct worker *worker = client->listener->worker;
    size_t total = 0;
    for (int i = 0; i < n; i++)
        total += pieces[i].iov_len;
    counter_add(client_sent(client), total);
    if (client->exchange)
        client->exchange->sent_bytes += total;
    enum conn_result result = conn_write(&client->conn, &worker->bufs, pieces, n);
    if (result == CONN_BLOCKED && !client_wait_writable(client))
        return CONN_FAILED;
    return result;
}

bool client_made_progress(struct client *client)
{
    const struct config_listener *config = client_config(client);
    uint64_t now_ns = client_loop(client)->now_ns, elapsed_ms = (now_ns - client->stalled_at_ns) / NS_PER_MS;
    uint64_t left = bytes_left_to_send(client),
             went = client->stalled_left > left ? client->stalled_left - left : 0;
    bool is_stalled = went == 0 && elapsed_ms >= config->timeouts.body_ms;
    bool is_slow =
        went * 1000 < config->limits.min_rate_bytes_per_s * elapsed_ms && elapsed_ms >= CLIENT_SLOW_AFTER_MS;
    if (is_stalled || (is_slow && config->limits.min_rate_bytes_per_s))
        return false;
    if (went * 1000 >= config->limits.min_rate_bytes_per_s * elapsed_ms && went > 0) {
        client->stalled_at_ns = now_ns;
        client->stalled_left = left;
    }
    client_set_deadline(client, client_check_ms(client_config(client)));
    return true;
}
