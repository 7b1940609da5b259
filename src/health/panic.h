/* SPDX-License-Identifier: Apache-2.0 */
/* Panic (D5): when too few of a group's targets are usable, sending everything to the rest would only bring
 * these down too, and it is more likely that the checks are wrong; so health is ignored and requests spread
 * over all. Pure: no clock, no atomics. */
#ifndef ISOBAR_HEALTH_PANIC_H
#define ISOBAR_HEALTH_PANIC_H

#include <stdbool.h>
#include <stdint.h>

enum {
    PANIC_MARGIN_PCT = 10, /* above the threshold: panic ends at once */
    PANIC_CALM_MS = 5000,  /* at the threshold for so long: it ends too. A margin alone would keep a pool of
                              two  in panic, with half of its requests on a dead target */
};

/* The targets that share the group's work: enabled, with weight, no backups unless there is nothing else. */
struct panic_census {
    uint32_t active;
    uint32_t unhealthy; /* ejected ones included */
    uint32_t ejected;
    uint32_t failed;   /* pending, and their first checks failed: they count when there is nobody else */
    uint32_t doubtful; /* active, and ejected were it not for the panic that would follow */
    bool has_backup;   /* a usable one: it takes over, the group never panics */
};

struct panic {
    bool is_on;
    bool is_low;            /* it began because too few were usable */
    uint64_t calm_since_ns; /* on, but nothing calls for it any more; 0: it does */
};

/* Those whose share of usable ones counts. */
uint32_t panic_total(const struct panic_census *census);
/* Are fewer than `pct` percent usable? 0: never. */
bool panic_is_low(const struct panic_census *census, uint32_t pct);
/* Brings the state up to date; true when it changed. While it is on, call again within PANIC_CALM_MS. */
bool panic_update(struct panic *panic, const struct panic_census *census, uint32_t pct, uint64_t now_ns);

#endif
