/* SPDX-License-Identifier: Apache-2.0 */
/* Between the two halves of explaining a request: explain.c finds the way to a group, explain_choice.c asks
 * the group. */
#ifndef ISOBAR_EXPLAIN_EXPLAIN_INTERNAL_H
#define ISOBAR_EXPLAIN_EXPLAIN_INTERNAL_H

#include "explain/explain.h"

/* Fills all of `group` but its group and share, for the request in `explain`. */
void explain_choice(struct explain *explain, struct explain_group *group, uint64_t now_ns, uint64_t wall_ns);

#endif
