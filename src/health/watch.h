/* SPDX-License-Identifier: Apache-2.0 */
/* What the health thread keeps, and its parts: watch.c watches one target (checks, state), group.c what
 * targets of a group mean for each other (ejection, panic, slow start), set.c which targets there are,
 * health.c the thread. Everything here is the health thread's but for what says otherwise. */
#ifndef ISOBAR_HEALTH_WATCH_H
#define ISOBAR_HEALTH_WATCH_H

#include "health/health.h"
#include "health/judge.h"
#include "health/outlier.h"
#include "health/panic.h"
#include "health/probe.h"

#include <pthread.h>

/* Why a target that ought to be ejected is not. */
enum watch_spared { WATCH_NOT_SPARED, WATCH_SPARED_BY_CAP, WATCH_SPARED_BY_PANIC };

/* One watched target. */
struct watch {
    struct watch_group *group; /* borrows from health */
    struct slice name;         /* owns */
    struct probe_plan *plan;   /* owns */
    struct health_status *status;
    struct probe probe;
    struct loop_timer next; /* the next check */
    struct judge judge;
    bool is_enabled;
    bool is_reported; /* the log knows that this new target does not come up */
    bool is_settled;  /* past its first check */
    bool is_backup, is_weightless;
    uint8_t spared; /* enum watch_spared */
    struct passive_runs *runs;
    const struct passive_worker *passive;
    size_t passive_stride;
    uint32_t n_workers;
    struct outlier outlier;
    struct loop_timer ejection_end;
    bool has_failed_since; /* a check, since it was ejected */
    struct health *health;
    struct loop_deferred release;
};

/* The targets of one group: a run of health->watches. */
struct watch_group {
    struct slice name;      /* owns */
    struct watch **watches; /* borrows from health */
    uint32_t n;             /* 0: while the set of targets changes */
    bool has_outlier;
    struct config_outlier outlier;
    uint32_t panic_threshold_pct;
    struct health_group *shared; /* may be NULL */
    _Atomic uint32_t *epoch;     /* shared; may be NULL */
    struct panic panic;
    uint64_t founded_ns; /* when the first targets came */
    struct loop_timer tick;
    struct health *health;
    struct loop_deferred release;
};

struct health {
    struct loop loop;
    struct buf_pool bufs;
    struct tls_thread *tls;            /* owns */
    struct http2_client_thread *http2; /* owns */
    pthread_t thread;
    struct watch **watches; /* owns; sorted by (group, name) */
    uint32_t n_watches;
    struct watch_group **groups; /* owns; sorted by name */
    uint32_t n_groups;
    struct rng rng;
    uint64_t local_said_ns; /* when the log was last told of an error of our own */
    struct loop_call ring_call;
    /* any thread: atomic */
    _Atomic uint32_t n_unsettled; /* relaxed */
    _Atomic bool is_rung; /* acq_rel by both: whoever rings next writes what the health thread has read */
};

static inline enum target_state watch_state(const struct watch *watch)
{
    return atomic_load_explicit(&watch->status->state, memory_order_relaxed);
}

/* Do checks decide whether it is used? Deep ones only warn, unless told otherwise (D1, D8). */
static inline bool watch_is_decided_by_checks(const struct watch *watch)
{
    const struct config_health_check *check = &watch->plan->check;
    return check->type != CONFIG_HEALTH_NONE && (check->type != CONFIG_HEALTH_DEEP || check->deep_ejects);
}

static inline bool watch_is_checked(const struct watch *watch)
{
    return watch->plan->check.type != CONFIG_HEALTH_NONE;
}

/* The only place where a state changes: one step, its line in the log, its action. */
void watch_step(struct watch *watch, enum target_event event, enum health_reason reason);

struct watch *watch_new(struct health *health, struct watch_group *group, const struct health_spec *spec);
/* Memory goes at the end of the turn: an event for the probe's socket may be in this one. */
void watch_free(struct watch *watch);
/* Brings a target that is new in the set, whatever its status went through before, to where it belongs. */
void watch_enter(struct watch *watch, const struct health_spec *spec);
/* The same target with new settings, or none. */
void watch_update(struct watch *watch, const struct health_spec *spec);
/* It is in the set no longer; freed. */
void watch_leave(struct watch *watch);

/* Checks once more without waiting for the next time, unless a check is running. */
void watch_check_now(struct watch *watch);

/* Brings the set in line with `specs`; groups that are not among `groups` stay as they are (NULL: all are).
 */
void set_apply(struct health *health, const struct health_spec *specs, uint32_t n, const struct slice *groups,
               uint32_t n_groups);
void set_free(struct health *health);

/* For a group of a new set; its targets come with group_fill(). */
struct watch_group *group_new(struct health *health, struct slice name);
/* Takes the group's settings from one of its targets. */
void group_set(struct watch_group *group, const struct health_spec *spec);
/* The set of targets has changed and is complete. */
void group_fill(struct watch_group *group, struct watch **watches, uint32_t n);
/* Memory goes at the end of the turn. */
void group_free(struct watch_group *group);

void group_init_watch(struct watch *watch, const struct health_spec *spec);
/* The same target in a new set. */
void group_set_watch(struct watch *watch, const struct health_spec *spec);
/* What requests said of the target so far counts no more. */
void group_forget_requests(struct watch *watch);
/* No longer ejected, whatever the state. */
void group_end_ejection(struct watch *watch);
/* A check of an ejected target has failed: checks know the fault, so they may tell when it is over. */
void group_note_failure(struct watch *watch);
/* Checks have passed often enough: may the target come back? Ends its ejection when it may. */
bool group_may_pass(struct watch *watch);
/* A target of the group changed its state. */
void group_update(struct watch_group *group);
/* Requests have told something: ejects whom they speak against, within the limits. */
void group_judge(struct watch_group *group);
/* From when a target that becomes active now has its share grow; 0: it has all of it. */
uint64_t group_ramp_from(const struct watch *watch);

#endif
