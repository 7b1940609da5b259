/* SPDX-License-Identifier: Apache-2.0 */
/* What everybody may know of a target's health: one small block of atomics per target, embedded in the
 * backend. The health thread writes it; workers, metrics and the API read it. A change also raises the
 * group's epoch, so that a worker notices by one relaxed load per request and only then looks at the targets
 * again. */
#ifndef ISOBAR_HEALTH_STATUS_H
#define ISOBAR_HEALTH_STATUS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Target states (D3): TARGET_PENDING, which a zeroed status is in, TARGET_ACTIVE, TARGET_UNHEALTHY,
 * TARGET_DRAINING, TARGET_REMOVED. Source: states.def also holds the transitions. */
enum target_state {
#define STATE(id, word, what) TARGET_##id,
#include "health/states.def"
    TARGET_STATE_COUNT
};

enum health_reason {
#define HEALTH_REASON(id, kind, word, text) HEALTH_REASON_##id,
#include "health/reasons.def"
#undef HEALTH_REASON
    HEALTH_REASON_COUNT
};

struct health;

struct health_status {
    /* any thread reads: relaxed, then acquire on the epoch; the health thread writes */
    _Atomic uint32_t state;       /* enum target_state */
    _Atomic uint32_t reason;      /* enum health_reason: of the last change */
    _Atomic uint32_t last_reason; /* enum health_reason: of the last check */
    _Atomic uint32_t http_status; /* of the last HTTP check; 0: no answer */
    _Atomic uint32_t check_us;    /* how long the last check took */
    _Atomic uint64_t changed_wall_ns, checked_wall_ns;
    _Atomic uint64_t checks, failures;               /* counted since the target exists */
    _Atomic uint32_t passes_in_row, failures_in_row; /* of checks, whatever followed from them */
    _Atomic uint64_t transitions;                    /* changes of state */
    _Atomic uint64_t ramp_from_ns;      /* monotonic: slow start began; 0: the full share at once */
    _Atomic uint64_t ejections, spared; /* by passive checks; left in by the cap or by the panic threshold */
    _Atomic uint32_t is_ejected;
    _Atomic uint32_t is_warned_of; /* unhealthy_threshold deep checks in a row failed, which only warn */
    /* any thread writes too */
    _Atomic uint32_t accusers;   /* other nodes that say it is unhealthy (shared/roster) */
    _Atomic uint32_t is_suspect; /* and it was not checked since: health_suspect() */
    /* set once before publishing */
    _Atomic uint32_t *epoch; /* of the group; shared */
    struct health *watcher;  /* shared: whom workers ring (health_ring); NULL: nobody watches */
};

/* What everybody may know of a group. Any thread reads: relaxed; the health thread writes, and raises the
 * group's epoch. */
struct health_group {
    _Atomic uint32_t is_panicking; /* health is ignored (D5) */
    _Atomic uint64_t panics;       /* how often that began */
};

/* May new work go there? Threads: any. */
static inline bool health_is_usable(const struct health_status *status)
{
    return atomic_load_explicit(&((struct health_status *)status)->state, memory_order_relaxed) ==
           TARGET_ACTIVE;
}

/* May work go there while health is ignored? Not when it is on its way out; `or_new`: also one that was never
 * known to be good. Threads: any. */
static inline bool health_is_usable_in_panic(const struct health_status *status, bool or_new)
{
    uint32_t state = atomic_load_explicit(&((struct health_status *)status)->state, memory_order_relaxed);
    return state == TARGET_ACTIVE || state == TARGET_UNHEALTHY || (or_new && state == TARGET_PENDING);
}

/* "connect-refused"; for logs, metrics and the API. Threads: any. */
const char *health_reason_word(enum health_reason reason);

#endif
