/* SPDX-License-Identifier: Apache-2.0 */
/* Answers over an HTTP/1 connection: the head goes out with the first bytes of the body, in one write. */
#include "downstream/answers.h"

#include "downstream/client_h1.h"
#include "proxy/exchange.h"

static bool h1_head(struct exchange *x, struct http_message *msg, struct scratch *values, struct iovec *head)
{
    struct worker *worker = x->worker;
    bool is_interim = msg->status < 200 && msg->status != 101;
    *head = (struct iovec){0};
    if (is_interim && x->client_minor == 0) /* it would not know what that is */
        return true;
    size_t n = h1_write_response(worker->scratch, WORKER_HEAD_BYTES * 2, msg, x->client_minor,
                                 !is_interim && x->client->close_after);
    *head = (struct iovec){worker->scratch, n};
    return n > 0;
}

static enum conn_result h1_answer(struct client *client, const struct h1_answer *how, size_t *n)
{
    char *out = client->listener->worker->scratch;
    *n = h1_write_answer(out, WORKER_SCRATCH_BYTES, how);
    iso_assert(*n > 0); /* the configuration bounds what an answer can hold */
    client->conn.is_last_write = client->close_after;
    return client_write(client, &(struct iovec){out, *n}, 1);
}

static void h1_cut(struct client *client, unsigned end)
{
    if (end == END_CLIENT_READS_SLOWLY)
        client_drop(client);
    else
        client_close(client);
}

static const struct conn *h1_transport(const struct client *client)
{
    return &client->conn;
}

const struct downstream downstream_h1 = {
    .head = h1_head,
    .answer = h1_answer,
    .next = client_next,
    .cut = h1_cut,
    .transport = h1_transport,
};
