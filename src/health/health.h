/* SPDX-License-Identifier: Apache-2.0 */
/* Active health checks (D1, D3, D7): one thread with one loop probes every target and moves it through the
 * states of states.def. It knows nothing of backends or groups: it is given what to probe and a health_status
 * to write the outcome to. A probe that hangs costs a descriptor until its timeout and delays nobody.
 *
 * A new target is probed at once and again in quick succession, so that a good one is ACTIVE after some tens
 * of milliseconds; a bad one is tried at growing distances until the normal interval is reached. After that
 * the checks of a pool are spread over the interval by chance, so that they never align. */
#ifndef ISOBAR_HEALTH_HEALTH_H
#define ISOBAR_HEALTH_HEALTH_H

#include "config/model.h"
#include "core/err.h"
#include "health/passive.h"
#include "health/status.h"
#include "net/addr.h"
#include "tls/client.h"

struct health;

/* One target to watch. Everything but the status is copied during health_apply(). */
struct health_spec {
    struct slice group, name; /* together they identify a target */
    struct net_addr addr;
    const struct config_health_check *check;
    struct tls_client *tls;                   /* how checks speak TLS, counted by who keeps it; NULL: plain */
    enum config_proxy_version proxy_protocol; /* checks begin with a header that speaks for nobody */
    struct health_status *status; /* shared; the health thread writes it until it is applied away */
    bool enabled;                 /* false: DRAINING, and not probed */

    /* Of its group, the same for all of its targets. */
    const struct config_outlier *outlier; /* NULL: no passive checks */
    uint32_t panic_threshold_pct;         /* 0: no panic */
    struct health_group *shared;          /* NULL: nobody looks */
    /* What real requests say. */
    struct passive_runs *runs;            /* shared; NULL without passive checks */
    const struct passive_worker *passive; /* shared: of worker 0 */
    size_t passive_stride;                /* bytes to the next worker's */
    uint32_t n_workers;
    bool is_backup, is_weightless;
};

/* Threads: control, after signals are blocked (the thread takes none). */
iso_err health_start(struct health **out) ISO_MUST_USE;

/* Replaces what is watched by specs[0..n), each (group, name) once. A target that was there keeps its state,
 * and its schedule too when its check did not change. One that is gone is left DRAINING. A group without
 * checks (type none) is ACTIVE and a disabled target DRAINING when this returns. Also when this returns,
 * statuses that are not in the new set are no longer touched, so that they may be freed. Threads: control;
 * waits for the health thread, some tens of microseconds. */
void health_apply(struct health *health, const struct health_spec *specs, uint32_t n);

/* The same for the groups named, to which all specs belong: the targets of others stay as they are. A group
 * without a spec ends. Threads: as health_apply(). */
void health_apply_groups(struct health *health, const struct slice *groups, uint32_t n_groups,
                         const struct health_spec *specs, uint32_t n);

/* Waits until every target is past its first checks (ACTIVE, or failed once), at most `timeout_ms`; true when
 * it is so. For a start or a reload that should not meet targets still unknown. Threads: control. */
bool health_settle(struct health *health, uint32_t timeout_ms);

/* A target that was DRAINING when it was last watched is REMOVED now, and the log says so. Threads: control.
 */
void health_end_drain(struct health_status *status, struct slice group, struct slice name,
                      enum health_reason reason);

/* A target's run of failures has reached a limit: the health thread looks at once. Threads: any, until
 * health_stop(). */
void health_ring(struct health *health);

/* Another node says that a target (its struct health_status) is unhealthy: it is checked at once, in between
 * its regular checks. Threads: any, until health_stop(). */
void health_suspect(void *status);

/* Ends the thread and its probes. Threads: control. */
void health_stop(struct health **health);

#endif
