/* SPDX-License-Identifier: Apache-2.0 */
/* Targets that are no longer in the configuration, or at an address their name no longer has, while they
 * still do what they had: from the snapshot that lacks them until their last work ends or is cut at the
 * deadline. Then their state is REMOVED and a target of the same name begins anew. Threads: control. Source:
 * D3, E1, C-104, C-142. */
#ifndef ISOBAR_UPSTREAM_DEPARTURE_H
#define ISOBAR_UPSTREAM_DEPARTURE_H

#include "upstream/backend.h"

struct departure {
    struct backend *backend; /* shared (counted); its group_name, name and drain_until_wall_ns say the rest */
    uint64_t until_ns;       /* monotonic: its deadline */
    struct departure *next;
};

/* A zeroed one is empty. */
struct departures {
    struct departure *first; /* owns */
};

/* The backend drains from now on, its work is cut after `delay_ms`; it has none already: it is removed at
 * once. Once for each. Health must not watch it any more. */
void departures_add(struct departures *departures, struct registry *registry, struct backend *backend,
                    uint32_t delay_ms);
/* It is in the configuration again. */
void departures_cancel(struct departures *departures, struct registry *registry,
                       const struct backend *backend);
/* Removes those that have nothing to do any more; true while some are left. */
bool departures_poll(struct departures *departures, struct registry *registry);
void departures_fini(struct departures *departures, struct registry *registry);

#endif
