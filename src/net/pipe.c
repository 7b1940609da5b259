/* SPDX-License-Identifier: Apache-2.0 */
#include "net/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void close_both(struct pipe_pair pipe)
{
    close(pipe.read_fd);
    close(pipe.write_fd);
}

bool pipes_take(struct pipes *pipes, struct pipe_pair *pipe)
{
    int fds[2];
    if (pipes->n > 0) {
        *pipe = pipes->kept[--pipes->n];
        return true;
    }
    if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0)
        return false;
    /* A small pipe works too: the kernel refuses beyond pipe-user-pages-soft without CAP_SYS_RESOURCE. */
    if (fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES) < 0)
        errno = 0;
    *pipe = (struct pipe_pair){fds[0], fds[1]};
    return true;
}

void pipes_give(struct pipes *pipes, struct pipe_pair pipe, bool is_empty)
{
    if (is_empty && pipes->n < PIPES_KEPT)
        pipes->kept[pipes->n++] = pipe;
    else
        close_both(pipe);
}

void pipes_fini(struct pipes *pipes)
{
    while (pipes->n > 0)
        close_both(pipes->kept[--pipes->n]);
}
