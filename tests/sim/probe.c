/* SPDX-License-Identifier: Apache-2.0 */
/* In place of health/probe.c: a check meets what the simulated target does, and takes as long. */
#include "health/probe.h"

#include "core/clock.h"
#include "world.h"

#include <stdlib.h>

struct probe_plan *probe_plan_new(const struct net_addr *addr, const struct config_health_check *check,
                                  struct tls_client *tls, enum config_proxy_version proxy_protocol)
{
    struct probe_plan *plan = calloc(1, sizeof(*plan));
    iso_assert(plan != NULL);
    plan->addr = *addr;
    plan->check = *check;
    return plan;
}

void probe_plan_free(struct probe_plan *plan)
{
    free(plan);
}

bool probe_plan_eq(const struct probe_plan *a, const struct probe_plan *b)
{
    return memcmp(&a->check, &b->check, sizeof(a->check)) == 0;
}

static enum health_reason reason_of(const struct probe *probe)
{
    switch ((enum sim_check)world_target_at(&probe->plan->addr)->check) {
    case SIM_CHECK_PASSES:
        return HEALTH_REASON_OK;
    case SIM_CHECK_FAILS:
        return HEALTH_REASON_STATUS;
    case SIM_CHECK_REFUSED:
        return HEALTH_REASON_REFUSED;
    case SIM_CHECK_HANGS:
        return HEALTH_REASON_RESPONSE_TIMEOUT;
    }
    iso_unreachable("not a check");
}

static void on_due(struct loop *loop, struct loop_timer *timer)
{
    struct probe *probe = container_of(timer, struct probe, conn.timer);
    struct probe_result result = {
        .reason = reason_of(probe), .started_ns = probe->started_ns, .ended_ns = clock_mono_ns()};
    probe->phase = PROBE_IDLE;
    probe->on_done(loop, probe, &result);
}

void probe_init(struct probe *probe, struct buf_pool *bufs, struct tls_thread *tls, probe_done_fn *on_done)
{
    *probe = (struct probe){.on_done = on_done};
    loop_timer_init(&probe->conn.timer, on_due);
}

bool probe_is_running(const struct probe *probe)
{
    return probe->phase != PROBE_IDLE;
}

void probe_start(struct loop *loop, struct probe *probe, const struct probe_plan *plan)
{
    const struct sim_target *target = world_target_at(&plan->addr);
    uint64_t takes_ns = target->check == SIM_CHECK_HANGS ? plan->check.timeout_ms * NS_PER_MS
                                                         : (target->latency_us + 200) * NS_PER_US;
    probe->plan = plan;
    probe->phase = PROBE_CONNECTING;
    probe->started_ns = clock_mono_ns();
    loop_timer_set(loop, &probe->conn.timer, probe->started_ns + takes_ns);
}

void probe_abort(struct loop *loop, struct probe *probe)
{
    loop_timer_remove(loop, &probe->conn.timer);
    probe->phase = PROBE_IDLE;
}
