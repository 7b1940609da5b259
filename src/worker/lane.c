/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/lane.h"

#include "worker/worker.h"

#include <errno.h>
#include <fcntl.h>

enum {
    READS_PER_TURN = 16,
    BULK_BYTES = 32 * 1024, /* smaller pieces are cheaper to copy */
};

static void count_sent(const struct lane *lane, size_t n)
{
    counter_add(lane->sent, n);
    *lane->bytes += n;
}

static void close_pipe(struct worker *worker, struct lane_pipe *pipe)
{
    pipes_give(&worker->pipes, pipe->pipe, pipe->held == 0);
    pipe->is_open = false;
    pipe->held = 0;
}

void lane_pipe_drop(struct worker *worker, struct lane_pipe *pipe)
{
    if (pipe->is_open)
        close_pipe(worker, pipe);
}

static ssize_t splice_some(int from, int to, size_t most)
{
    ssize_t n;
    do
        n = splice(from, NULL, to, NULL, most, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    while (n < 0 && errno == EINTR);
    return n;
}

/* From the socket into the empty pipe. CONN_BLOCKED: there is nothing now. */
static enum conn_result fill_pipe(const struct lane *lane)
{
    struct lane_pipe *pipe = lane->pipe;
    ssize_t n = splice_some(lane->from->io.fd, pipe->pipe.write_fd, PIPE_BYTES);
    if (n <= 0)
        lane->from->can_read = false;
    if (n < 0)
        return errno == EAGAIN ? CONN_BLOCKED : CONN_FAILED;
    if (n == 0) {
        lane->from->saw_eof = true;
        return CONN_EOF;
    }
    pipe->held = (uint32_t)n;
    pipe->is_bulk = n >= BULK_BYTES;
    counter_add(lane->received, (size_t)n);
    return CONN_OK;
}

/* CONN_BLOCKED: an event tells when the socket takes more. */
static enum conn_result empty_pipe(const struct lane *lane)
{
    struct lane_pipe *pipe = lane->pipe;
    ssize_t n = splice_some(pipe->pipe.read_fd, lane->to->io.fd, pipe->held);
    if (n <= 0)
        return n < 0 && errno == EAGAIN ? CONN_BLOCKED : CONN_FAILED;
    pipe->held -= (uint32_t)n;
    count_sent(lane, (size_t)n);
    return CONN_OK;
}

/* Until either socket has to be waited for, the end came, or the pieces are small. */
static enum conn_result move_by_pipe(struct worker *worker, const struct lane *lane, uint64_t *active_ns,
                                     int *rounds)
{
    struct lane_pipe *pipe = lane->pipe;
    while (*rounds < READS_PER_TURN) {
        enum conn_result result = CONN_OK;
        if (pipe->held == 0 && !pipe->is_bulk)
            return CONN_OK;
        if (pipe->held == 0)
            result = lane->from->can_read ? fill_pipe(lane) : CONN_BLOCKED;
        if (result != CONN_OK)
            return result;
        ++*rounds;
        result = empty_pipe(lane);
        if (result != CONN_OK)
            return result;
        *active_ns = worker->loop.now_ns;
    }
    return CONN_OK;
}

static bool may_pipe(struct worker *worker, const struct lane *lane)
{
    struct lane_pipe *pipe = lane->pipe;
    if (!pipe || (!pipe->is_bulk && pipe->held == 0))
        return false;
    if (!pipe->is_open)
        pipe->is_open = pipe->is_bulk =
            !lane->from->layer && !lane->to->layer && !lane->pass && pipes_take(&worker->pipes, &pipe->pipe);
    return pipe->is_open;
}

/* Through the worker's buffer, once. */
static enum conn_result move_by_copy(struct worker *worker, const struct lane *lane, uint64_t *active_ns)
{
    size_t n = 0;
    enum conn_result result = conn_read(lane->from, worker->rbuf, WORKER_READ_BYTES, &n);
    if (result != CONN_OK)
        return result;
    counter_add(lane->received, n);
    result = lane->pass ? lane->pass(worker, lane, worker->rbuf, n)
                        : conn_write(lane->to, &worker->bufs, &(struct iovec){worker->rbuf, n}, 1);
    if (result == CONN_FAILED)
        return CONN_FAILED;
    if (lane->pipe)
        lane->pipe->is_bulk = n == WORKER_READ_BYTES;
    count_sent(lane, n);
    *active_ns = worker->loop.now_ns;
    return CONN_OK;
}

enum lane_result lane_move(struct worker *worker, const struct lane *lane, uint64_t *active_ns)
{
    int rounds = 0;
    while ((lane->from->can_read || (lane->pipe && lane->pipe->held)) && !conn_is_full(lane->to) &&
           !lane->to->is_connecting) {
        enum conn_result result;
        if (rounds >= READS_PER_TURN)
            return LANE_AGAIN;
        if (may_pipe(worker, lane)) {
            result = move_by_pipe(worker, lane, active_ns, &rounds);
            if (lane->pipe->held == 0)
                close_pipe(worker, lane->pipe);
        } else {
            rounds++;
            result = move_by_copy(worker, lane, active_ns);
        }
        if (result == CONN_FAILED)
            return LANE_FAILED;
        if (result == CONN_EOF)
            conn_shut(lane->to);
        if (result != CONN_OK)
            return LANE_MOVED;
    }
    return LANE_MOVED;
}
