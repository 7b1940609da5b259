/* SPDX-License-Identifier: Apache-2.0 */
#include "downstream/linger.h"

#include "core/clock.h"
#include "downstream/client_h1.h"
#include "downstream/client_h2.h"

enum {
    LINGER_MS = 15000, /* at most, for a peer that goes on sending: it may read nothing before it is done */
    LINGER_SILENT_MS = 2000, /* without a byte */
    LINGER_READS_PER_TURN = 16,
};

void linger_begin(struct client *client)
{
    client->lingers_from_ns = client_loop(client)->now_ns;
    client_set_deadline(client, LINGER_SILENT_MS);
}

void client_end(struct client *client)
{
    client->unread_request |= client->conn.can_read && !client->conn.saw_eof;
    if (client->h2)
        client_h2_close(client);
    if (!client->conn.out && !client->unread_request) {
        client_close(client);
        return;
    }
    client->state = CLIENT_LINGER;
    buf_give(&client->listener->worker->bufs, &client->in);
    if (!client->conn.io.is_armed && !client_arm(client)) {
        client_close(client);
        return;
    }
    conn_shut(&client->conn);
    if (client->conn.out)
        client_set_deadline(client, client_check_ms(client_config(client)));
    else
        linger_begin(client);
    if (client->conn.can_read)
        loop_later(client_loop(client), &client->resume);
}

void linger_read(struct client *client)
{
    struct worker *worker = client->listener->worker;
    uint64_t end_ns = client->lingers_from_ns + LINGER_MS * NS_PER_MS,
             silent_ns = client_loop(client)->now_ns + LINGER_SILENT_MS * NS_PER_MS;
    for (int reads = 0; client->conn.can_read; reads++) {
        size_t n = 0;
        if (reads == LINGER_READS_PER_TURN) {
            loop_later(client_loop(client), &client->resume);
            return;
        }
        enum conn_result result = conn_read(&client->conn, worker->rbuf, WORKER_READ_BYTES, &n);
        if (result == CONN_BLOCKED)
            return;
        if (result == CONN_FAILED || (result == CONN_EOF && !client->conn.out)) {
            client_close(client);
            return;
        }
        if (!client->conn.out)
            loop_timer_set(client_loop(client), &client->conn.timer, silent_ns < end_ns ? silent_ns : end_ns);
    }
}
