/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of this process from the kernel, as the standard process_* metrics want them. */
#ifndef ISOBAR_METRICS_PROCESS_H
#define ISOBAR_METRICS_PROCESS_H

#include <stdint.h>

struct process_figures {
    double cpu_s;
    double start_time_s; /* since the epoch */
    uint64_t resident_bytes, virtual_bytes;
    uint64_t open_fds, max_fds;
    uint64_t threads;
};

/* What cannot be read stays 0. Threads: any. */
void process_read(struct process_figures *out);

#endif
