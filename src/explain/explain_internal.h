/* SPDX-License-Identifier: Apache-2.0 */
/* Between the parts of explaining a request: explain.c finds the way to a group, explain_access.c says who
 * may come in, explain_choice.c asks the group. */
#ifndef ISOBAR_EXPLAIN_EXPLAIN_INTERNAL_H
#define ISOBAR_EXPLAIN_EXPLAIN_INTERNAL_H

#include "explain/explain.h"

/* The stages of a connection; `server_name`: that it would ask for over TLS, empty for an address. False: it
 * is closed. */
bool explain_connection(struct explain *explain, struct slice server_name, uint64_t now_ns);
/* Those of a request's head in front of its rule, and those of its rule. False: it is answered. */
bool explain_head(struct explain *explain, struct slice server_name);
bool explain_access(struct explain *explain, uint64_t now_ns, uint64_t wall_ns);
/* We answer; status 0: that of the end. */
void explain_answer(struct explain *explain, enum exchange_end end, unsigned status);

/* Fills all of `group` but its group and share, for the request in `explain`. */
void explain_choice(struct explain *explain, struct explain_group *group, uint64_t now_ns, uint64_t wall_ns);

#endif
