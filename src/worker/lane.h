/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of bytes between two connections of a worker, as TCP relays and tunnels are made of two: read
 * as long as the other side takes it, pass the end on, give way to others after some reads. What comes in
 * bulk between two plain connections goes through a pipe and never enters our memory. */
#ifndef ISOBAR_WORKER_LANE_H
#define ISOBAR_WORKER_LANE_H

#include "net/conn.h"
#include "net/pipe.h"
#include "observe/counters.h"

struct lane;
struct worker;

/* What to do with bytes that were read, in place of writing them to lane->to as they are. */
typedef enum conn_result lane_pass_fn(struct worker *worker, const struct lane *lane, char *data, size_t len);

/* What a lane has in a pipe, kept by its owner; zeroed: nothing. */
struct lane_pipe {
    struct pipe_pair pipe;
    uint32_t held; /* bytes in it */
    bool is_open;
    bool is_bulk; /* a read was full: what follows goes through a pipe, as long as it comes in large pieces */
};

struct lane {
    struct conn *from, *to;
    counter *received, *sent; /* of the owners of both ends */
    uint64_t *bytes;          /* of this lane alone */
    lane_pass_fn *pass;       /* NULL: nothing is changed */
    struct lane_pipe *pipe;   /* NULL: bytes are always copied */
};

enum lane_result {
    LANE_MOVED,  /* all that could be moved; an event tells when there is more */
    LANE_AGAIN,  /* there is more: the caller comes back in the next turn */
    LANE_FAILED, /* either side is broken */
};

/* `*active_ns` becomes the turn's time when a byte has passed. Threads: the worker. */
enum lane_result lane_move(struct worker *worker, const struct lane *lane, uint64_t *active_ns);
/* The owner ends, whatever the pipe holds. */
void lane_pipe_drop(struct worker *worker, struct lane_pipe *pipe);

#endif
