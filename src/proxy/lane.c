/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/lane.h"

#include "proxy/worker.h"

enum { READS_PER_TURN = 16 };

enum lane_result lane_move(struct worker *worker, const struct lane *lane, uint64_t *active_ns)
{
    for (int reads = 0; lane->from->can_read && !lane->to->out && !lane->to->is_connecting; reads++) {
        size_t n = 0;
        if (reads == READS_PER_TURN)
            return LANE_AGAIN;
        enum conn_result result = conn_read(lane->from, worker->rbuf, WORKER_READ_BYTES, &n);
        if (result == CONN_BLOCKED)
            return LANE_MOVED;
        if (result == CONN_EOF) {
            conn_shut(lane->to);
            return LANE_MOVED;
        }
        if (result == CONN_OK)
            result = lane->pass ? lane->pass(worker, lane, worker->rbuf, n)
                                : conn_write(lane->to, &worker->bufs, &(struct iovec){worker->rbuf, n}, 1);
        if (result == CONN_FAILED)
            return LANE_FAILED;
        counter_add(lane->received, n);
        counter_add(lane->sent, n);
        *lane->bytes += n;
        *active_ns = worker->loop.now_ns;
    }
    return LANE_MOVED;
}
