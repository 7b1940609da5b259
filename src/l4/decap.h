/* SPDX-License-Identifier: Apache-2.0 */
/* Decapsulation on a machine behind the packet tier: attach, detach, counters. One call does all; program,
 * VIPs and link stay pinned when the process ends (I3). */
#ifndef ISOBAR_L4_DECAP_H
#define ISOBAR_L4_DECAP_H

#include "core/diag.h"
#include "core/err.h"

#include "l4/abi.h"
#include "l4/spec.h"

struct l4_decap {
    struct slice *interfaces; /* NUL-terminated */
    uint32_t n_interfaces;
    struct ip_addr *vips;
    uint32_t n_vips;
    struct slice pin;
    enum l4_mode mode;
    uint16_t gue_port;               /* 0: no GUE */
    const struct l4_spec_real *hops; /* nodes that packets may be handed on to, by server_ids[0]; borrowed */
    uint32_t n_hops;
};

/* Attaches, or replaces program and VIPs of what is attached. Remove with l4_loader_detach(pin). */
iso_err l4_decap_attach(const struct l4_decap *decap, struct iso_diag *diag) ISO_MUST_USE;
/* Detaches from every interface of `pin` but these. */
void l4_decap_leave_others(const char *pin, const struct slice *interfaces, uint32_t n);
/* Whether `pin` holds a decapsulation rather than a balancer. */
bool l4_decap_is_pinned(const char *pin);
/* The counters of a pinned decapsulation, summed over CPUs. */
iso_err l4_decap_events(const char *pin, uint64_t events[L4_EVENTS], struct iso_diag *diag) ISO_MUST_USE;
/* For tests: runs the program once on a frame. */
iso_err l4_decap_run(const struct l4_decap *decap, const void *frame, uint32_t bytes, void *out,
                     uint32_t out_cap, uint32_t *out_bytes, uint32_t *verdict,
                     struct iso_diag *diag) ISO_MUST_USE;

#endif
