/* SPDX-License-Identifier: Apache-2.0 */
/* What loader.c and attach.c share. */
#ifndef ISOBAR_L4_LOADER_INTERNAL_H
#define ISOBAR_L4_LOADER_INTERNAL_H

#include "l4/loader.h"

struct balancer_bpf;
struct perf_buffer;

struct l4_loader {
    struct balancer_bpf *skel; /* owns; NULL when only looking */
    struct l4_view view;
    struct l4_node node; /* its texts are owned by `arena` */
    struct arena arena;
    bool took_over;
    int clock_fd, samples_fd, ids_fd; /* -1: none */
    struct perf_buffer *samples;      /* owns */
    l4_sample_fn *sample_fn;
    void *sample_arg;
    uint64_t samples_lost;
};

/* A line of `diag` with errno's text and what the operator can do about it. */
iso_err l4_complain(struct iso_diag *diag, iso_err err, int error, const char *what, const char *name);
/* PIN/name; the buffer is the loader's arena. */
const char *l4_pin_path(struct arena *arena, struct slice pin, const char *name);

#endif
