/* SPDX-License-Identifier: Apache-2.0 */
/* Targets in the order of their names, so that tables depend on the set of targets and not on the order in
 * which a file or an API listed them. */
#ifndef ISOBAR_BALANCE_ORDER_H
#define ISOBAR_BALANCE_ORDER_H

#include "core/err.h"
#include "core/slice.h"

/* Writes 0..n-1 into order[n] so that the names ascend bytewise; ISO_ERR_INVALID when two are equal. */
iso_err order_by_name(const struct slice *names, uint32_t n, uint32_t *order) ISO_MUST_USE;

#endif
