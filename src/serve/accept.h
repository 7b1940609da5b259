/* SPDX-License-Identifier: Apache-2.0 */
/* Listening sockets of one worker. Each listener of the snapshot has a socket of its own per worker
 * (SO_REUSEPORT), registered level-triggered, so that a burst larger than one turn takes is not forgotten. A
 * listener that left the configuration is emptied and closed; its open connections finish their request under
 * the snapshot that had it. */
#ifndef ISOBAR_SERVE_ACCEPT_H
#define ISOBAR_SERVE_ACCEPT_H

#include "worker/worker.h"

/* Brings the worker's listeners in line with its snapshot. Threads: the worker. */
void accept_adopt(struct worker *worker);
/* Takes what still waits in the accept queues, then closes every listening socket. Threads: the worker. */
void accept_stop(struct worker *worker);
/* The protocol of a connection begins: a client or a relay takes the descriptor over. Threads: the worker. */
void accept_hand_over(struct worker_listener *listener, int fd, struct arrival_facts *facts);

#endif
