/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to the packet tier's spec: VIPs of load balancers that have a vip, and of l4.vips;
 * sets of nodes that several VIPs share; settings of this machine. */
#ifndef ISOBAR_L4_VIPS_H
#define ISOBAR_L4_VIPS_H

#include "core/diag.h"
#include "core/err.h"

#include "config/model.h"

#include "l4/spec.h"

/* Texts are borrowed from `config`, arrays belong to `arena`. node.max_packet stays 0 when the configuration
 * leaves it to the interface. Errors: ISO_ERR_INVALID when there is no l4 section or no VIP. */
iso_err l4_spec_from_config(const struct config *config, struct arena *arena, struct l4_spec *spec,
                            struct iso_diag *diag) ISO_MUST_USE;

#endif
