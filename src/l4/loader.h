/* SPDX-License-Identifier: Apache-2.0 */
/* The packet tier's programs and maps in the kernel: load, pin, attach, replace, detach. The only user of
 * libbpf.
 *
 * What outlives the process is pinned in the node's folder on a bpffs: the maps, and one link per interface.
 * A new process takes over every map whose shape still fits and replaces the program of each link in one
 * step, so no packet is lost and flows stay (a changed table size or flow count makes new maps, hence an
 * empty flow table). A process that dies leaves all of it forwarding with the last tables. Threads: one. */
#ifndef ISOBAR_L4_LOADER_H
#define ISOBAR_L4_LOADER_H

#include "l4/tables.h"

struct l4_loader;

/* Loads the balancer for a node and maps its tables; nothing is attached yet. `spec` gives the sizes.
 * Errors: ISO_ERR_UNSUPPORTED (this build, kernel or user cannot load BPF programs at all), ISO_ERR_SYSTEM
 * (the kernel refused this one); `diag` says what to do. Owns: *loader, until l4_loader_close(). */
iso_err l4_loader_open(const struct l4_spec *spec, struct l4_loader **loader,
                       struct iso_diag *diag) ISO_MUST_USE;
/* Opens what another process pinned, for reading; ISO_ERR_NOT_FOUND when there is nothing. */
iso_err l4_loader_peek(const char *pin, struct l4_loader **loader, struct iso_diag *diag) ISO_MUST_USE;
/* Frees the process's side; pinned programs and maps go on. */
void l4_loader_close(struct l4_loader *loader);

/* Pins the maps and attaches to every interface of the node, replacing the program of a link that is pinned
 * already. `*replaced`: links whose program was replaced. */
iso_err l4_loader_attach(struct l4_loader *loader, uint32_t *replaced, struct iso_diag *diag) ISO_MUST_USE;
/* Detaches from the interfaces pinned in `pin` and removes everything there. */
iso_err l4_loader_detach(const char *pin, struct iso_diag *diag) ISO_MUST_USE;

const struct l4_view *l4_loader_view(const struct l4_loader *loader);
/* Maps taken over from a process before this one (none: everything is new). */
bool l4_loader_took_over(const struct l4_loader *loader);
/* Runs l4_clock: l4_control.tick is then current. */
uint32_t l4_loader_tick(struct l4_loader *loader);
/* For tests and benches: the file descriptor of the program. */
int l4_loader_program(const struct l4_loader *loader);
/* Runs the program once on a frame. `out` has room for `out_cap` bytes; `*verdict` is the XDP verdict. */
iso_err l4_loader_run(struct l4_loader *loader, const void *frame, uint32_t bytes, void *out,
                      uint32_t out_cap, uint32_t *out_bytes, uint32_t *verdict) ISO_MUST_USE;
/* Replaces the QUIC server ids by those of the spec's reals. */
iso_err l4_loader_server_ids(struct l4_loader *loader, const struct l4_spec *spec) ISO_MUST_USE;

/* One interface that a pinned link is on. */
struct l4_attachment {
    char interface[16];
    uint32_t ifindex; /* 0: the interface is gone */
    uint32_t program; /* id */
    bool native;
};
/* Up to `cap` of them; the number found. */
uint32_t l4_loader_attachments(const char *pin, struct l4_attachment *out, uint32_t cap);

/* Has the program copy each n-th packet of a CPU; 0: none. Works on a loader that only looks, too. */
iso_err l4_loader_set_sampling(struct l4_loader *loader, const char *pin, uint32_t every,
                               struct iso_diag *diag) ISO_MUST_USE;

/* Each sampled packet. `head` and `bytes` are borrowed for the call. */
typedef void l4_sample_fn(void *arg, const struct l4_sample *head, const void *bytes, uint32_t n);
/* Waits up to `timeout_ms` for samples; `*lost` counts those the kernel could not queue. */
iso_err l4_loader_samples(struct l4_loader *loader, int timeout_ms, l4_sample_fn *fn, void *arg,
                          uint64_t *lost) ISO_MUST_USE;

#endif
