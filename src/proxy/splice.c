/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/splice.h"

#include "core/clock.h"
#include "proxy/response.h"

#include <errno.h>
#include <fcntl.h>

enum {
    ROUNDS_PER_TURN = 16,
    SPLICE_FROM_BYTES = 32 * 1024, /* below, copying through the warm buffer is cheaper */
};

void splice_drop(struct exchange *x)
{
    if (!x->is_spliced)
        return;
    x->is_spliced = false;
    pipes_give(&x->worker->pipes, x->pipe, x->in_pipe == 0);
    x->in_pipe = 0;
}

void splice_begin(struct exchange *x)
{
    if (x->is_spliced || x->response.framing != HTTP_BODY_LENGTH || x->response.emit_chunked ||
        x->response.left < SPLICE_FROM_BYTES || x->client->conn.out || x->client->conn.layer ||
        x->upstream->conn.layer)
        return;
    x->is_spliced = pipes_take(&x->worker->pipes, &x->pipe);
}

/* One round through the pipe. False: no more can be done now, or x has ended. */
static bool splice_once(struct exchange *x)
{
    struct conn *upstream = &x->upstream->conn;
    struct client *client = x->client;
    ssize_t n;
    if (x->in_pipe == 0) {
        size_t want = x->response.left < PIPE_BYTES ? (size_t)x->response.left : PIPE_BYTES;
        n = splice(upstream->io.fd, NULL, x->pipe.write_fd, NULL, want, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (n < 0 && errno == EINTR)
            return true;
        if (n < 0 && errno == EAGAIN) {
            upstream->can_read = false;
            return false;
        }
        if (n <= 0) {
            upstream->saw_eof = true;
            response_end(x, n == 0, NULL);
            return false;
        }
        x->in_pipe = (uint32_t)n;
        x->response.left -= (uint64_t)n;
        x->response.bytes += (uint64_t)n;
        counter_add(&x->backend->workers[x->worker->index].counters.received_bytes, (uint64_t)n);
        loop_timer_set(&x->worker->loop, &upstream->timer,
                       x->worker->loop.now_ns + x->group->config->timeouts.response_ms * NS_PER_MS);
    }
    n = splice(x->pipe.read_fd, NULL, client->conn.io.fd, NULL, x->in_pipe,
               SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (n < 0 && errno == EINTR)
        return true;
    if (n < 0 && errno == EAGAIN) {
        if (!client_wait_writable(client))
            exchange_abort(x, END_CLIENT_ABORT);
        return false;
    }
    if (n <= 0) {
        exchange_abort(x, END_CLIENT_ABORT);
        return false;
    }
    x->in_pipe -= (uint32_t)n;
    if (x->in_pipe == 0)
        client_took_output(client);
    x->sent_bytes += (uint64_t)n;
    counter_add(&client->listener->counters->sent_bytes, (uint64_t)n);
    if (x->in_pipe == 0 && x->response.left == 0) {
        x->response.is_done = true;
        exchange_answered(x);
        return false;
    }
    return true;
}

void splice_pump(struct exchange *x)
{
    for (int rounds = 0; rounds < ROUNDS_PER_TURN; rounds++) {
        if (x->in_pipe == 0 && !x->upstream->conn.can_read)
            return;
        if (!splice_once(x))
            return;
    }
    exchange_resume(x);
}
