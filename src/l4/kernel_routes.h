/* SPDX-License-Identifier: Apache-2.0 */
/* VIPs as routes of this machine's kernel, for routing daemons that redistribute those (FRR's `redistribute
 * kernel`, BIRD's `learn`). They are blackholes: what the program does not take is dropped, not sent on by
 * the default route. What the kernel has is the state, so a process that comes after a crash goes on with it
 * (I6). */
#ifndef ISOBAR_L4_KERNEL_ROUTES_H
#define ISOBAR_L4_KERNEL_ROUTES_H

#include "core/diag.h"
#include "core/err.h"
#include "core/ip.h"

/* What marks our routes (`ip route show proto 73`); nobody else's are touched. */
enum { L4_ROUTE_PROTOCOL = 73 };

/* Makes our routes in `table` exactly these. Errors: ISO_ERR_SYSTEM, what and why in `diag`; some may be in
 * place then. Waits for the kernel. */
iso_err l4_kernel_routes_set(uint32_t table, const struct ip_prefix *wanted, uint32_t n,
                             struct iso_diag *diag) ISO_MUST_USE;

#endif
