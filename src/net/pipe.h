/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes that bytes pass through on their way from one socket to another (splice), without entering our
 * memory. A worker keeps some that were emptied: making one costs three system calls. Threads: the worker. */
#ifndef ISOBAR_NET_PIPE_H
#define ISOBAR_NET_PIPE_H

#include <stdbool.h>
#include <stdint.h>

enum { PIPES_KEPT = 64, PIPE_BYTES = 1024 * 1024 };

struct pipe_pair {
    int read_fd, write_fd;
};

struct pipes {
    struct pipe_pair kept[PIPES_KEPT]; /* owns; [n], all empty */
    uint32_t n;
};

/* An empty pipe; the caller gives it back. False: the system has none. */
bool pipes_take(struct pipes *pipes, struct pipe_pair *pipe);
/* One that still holds bytes is closed. */
void pipes_give(struct pipes *pipes, struct pipe_pair pipe, bool is_empty);
void pipes_fini(struct pipes *pipes);

#endif
