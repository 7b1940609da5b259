/* SPDX-License-Identifier: Apache-2.0 */
/* What loader.c, loader_run.c and attach.c share. */
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
    struct l4_mapping {
        void *at;
        size_t bytes;
    } mappings[16];
    uint32_t n_mappings;
    int program_fd, clock_fd, samples_fd, ids_fd; /* -1: none */
    struct perf_buffer *samples;                  /* owns */
    l4_sample_fn *sample_fn;
    void *sample_arg;
    uint64_t samples_lost;
};

/* libbpf's messages are kept for ours; memory limits of old kernels are lifted. */
void l4_prepare_libbpf(void);
/* The node's folder, made where it is missing; it must be on a bpffs. */
iso_err l4_make_pin_folder(struct arena *arena, struct slice pin, struct iso_diag *diag) ISO_MUST_USE;
/* Pins `fd` as PIN/name in place of what was there. */
iso_err l4_pin(struct arena *arena, struct slice pin, const char *name, int fd,
               struct iso_diag *diag) ISO_MUST_USE;
/* Attaches `program` to an interface by a pinned link, or puts it into the one that is there. */
iso_err l4_attach_program(struct arena *arena, struct slice pin, const char *interface, int program,
                          enum l4_mode mode, uint32_t *replaced, struct iso_diag *diag) ISO_MUST_USE;
/* Takes the program off one interface; nothing happens when there is none. */
void l4_detach_interface(const char *pin, const char *name);
/* A line of `diag` with errno's text and what the operator can do about it. */
iso_err l4_complain(struct iso_diag *diag, iso_err err, int error, const char *what, const char *name);
/* The memory of a map of that descriptor, unmapped with the loader; NULL: errno says why. `stride` (NULL: not
 * wanted) is how far its values are apart. */
void *l4_map_memory(struct l4_loader *loader, int fd, bool write, size_t *stride);
/* PIN/name; the buffer is the loader's arena. */
const char *l4_pin_path(struct arena *arena, struct slice pin, const char *name);

#endif
