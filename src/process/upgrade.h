/* SPDX-License-Identifier: Apache-2.0 */
/* Replacing the running binary: a new process is started from the same path with the same arguments and the
 * open listening sockets (net/listen.h). Threads: control, all of it. */
#ifndef ISOBAR_PROCESS_UPGRADE_H
#define ISOBAR_PROCESS_UPGRADE_H

#include "core/err.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* The path that this process was started from; to be asked early, before the file is replaced. */
void upgrade_executable(char path[PATH_MAX]);
/* Starts the successor. Logs why when it cannot. */
iso_err upgrade_start(const char *executable, pid_t *successor) ISO_MUST_USE;
/* Has it ended? */
bool upgrade_has_ended(pid_t successor);
/* In the successor, once it serves: tells the predecessor to end. Nothing when there is none. */
void upgrade_finish(void);

#endif
