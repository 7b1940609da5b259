/* SPDX-License-Identifier: Apache-2.0 */
/* Announcing VIPs: a file of static routes that BIRD includes, and its control socket to read it anew; or
 * routes of the kernel, which other routing daemons redistribute (kernel_routes.h). The daemon keeps the
 * sessions; when this process dies its routes stay, as does the pinned program that serves them (I6, E4). */
#ifndef ISOBAR_L4_ROUTES_H
#define ISOBAR_L4_ROUTES_H

#include "core/diag.h"
#include "core/err.h"
#include "core/text.h"

#include "config/model_l4.h"

#include "l4/spec.h"

/* The file's text: protocols isobar4 and isobar6 with one route for each VIP address that has a usable real,
 * or for none when `leaving`. */
void l4_routes_write(const struct l4_spec *spec, bool without_reals, bool leaving, struct text *out);

/* What is configured: brings the kernel's routes in line; writes the file and has BIRD read it, if the text
 * changed since `*last` (owned by the caller, empty at first). Errors: ISO_ERR_SYSTEM, ISO_ERR_PROTOCOL (BIRD
 * refused; why in `diag`). */
iso_err l4_routes_announce(const struct config_l4_announce *announce, const struct l4_spec *spec,
                           bool leaving, struct text *last, struct iso_diag *diag) ISO_MUST_USE;

#endif
