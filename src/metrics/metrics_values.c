/* SPDX-License-Identifier: Apache-2.0 */
/* What the metrics of metrics.def that are no sums of counters show: a table of expressions, then the few
 * that have several series each. */
#include "metrics/metrics_row.h"

#include "core/clock.h"
#include "health/states.h"
#include "store/store.h"

static double worker_cpu_s(pthread_t thread)
{
    clockid_t id;
    return pthread_getcpuclockid(thread, &id) ? 0 : (double)clock_ns(id) / 1e9;
}

/* A connection belongs to a listener and a worker; this is the sum over the other index. */
static uint64_t worker_connections(const struct page *page, uint32_t worker)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < page->n_rows[SCOPE_LISTENER]; i++) {
        const struct listener_runtime *runtime = page->rows[SCOPE_LISTENER][i].listener->runtime;
        if (worker < runtime->n_workers)
            sum += counter_read(&runtime->workers[worker].active_connections);
    }
    return sum;
}

static uint32_t snapshots(const struct control_view *view)
{
    uint32_t n = view->snapshot != NULL;
    for (const struct snapshot *at = view->retired; at; at = at->next)
        n++;
    return n;
}

static uint32_t healthy_targets(const struct snap_group *group)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < group->n_targets; i++)
        n += health_is_usable(&group->targets[i]->health);
    return n;
}

static double ramp(const struct row *row)
{
    const struct config_target_group *config = row->group ? row->group->config : NULL;
    uint64_t from_ns = atomic_load_explicit(&row->target->health.ramp_from_ns, memory_order_relaxed);
    uint64_t now_ns = clock_mono_ns(), age_ms = from_ns < now_ns ? (now_ns - from_ns) / NS_PER_MS : 0;
    if (!from_ns || !config || !config->slow_start_ms)
        return 1;
    return (double)slow_start_ramp(config->slow_start_shape, age_ms, config->slow_start_ms) /
           BALANCE_RAMP_FULL;
}

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define VALUE_IS(scope, id, expression)                                                                      \
    double value_##scope##_##id(const struct page *page, const struct row *row)                              \
    {                                                                                                        \
        return (double)(expression);                                                                         \
    }

VALUE_IS(PROCESS, workers, page->view->n_workers)
VALUE_IS(PROCESS, shutting_down, page->view->is_shutting_down)
VALUE_IS(PROCESS, config_version, page->view->snapshot ? page->view->snapshot->version : 0)
VALUE_IS(PROCESS, snapshots, snapshots(page->view))
VALUE_IS(PROCESS, groups_built, page->view->groups_built)
VALUE_IS(PROCESS, reload_good, !page->view->reload.last_failed)
VALUE_IS(PROCESS, reload_time, (double)page->view->reload.succeeded_wall_ns / 1e9)
VALUE_IS(PROCESS, shared_up, page->shared.is_up)
VALUE_IS(PROCESS, shared_outages, page->shared.outages)
VALUE_IS(PROCESS, shared_stored, page->shared.stored)
VALUE_IS(PROCESS, shared_waiting, page->shared.waiting)
VALUE_IS(PROCESS, shared_lost, page->shared.lost)
VALUE_IS(PROCESS, shared_errors, page->shared.errors)
VALUE_IS(PROCESS, log_lost, page->view->accesslog ? accesslog_lost(page->view->accesslog) : 0)
VALUE_IS(PROCESS, cpu, page->process.cpu_s)
VALUE_IS(PROCESS, resident, page->process.resident_bytes)
VALUE_IS(PROCESS, virtual, page->process.virtual_bytes)
VALUE_IS(PROCESS, open_fds, page->process.open_fds)
VALUE_IS(PROCESS, max_fds, page->process.max_fds)
VALUE_IS(PROCESS, threads, page->process.threads)
VALUE_IS(PROCESS, start_time, page->process.start_time_s)
VALUE_IS(STORE, available, store_is_available(page->view->store))
VALUE_IS(STORE, in_force, store_figures(page->view->store)->in_force)
VALUE_IS(STORE, known, store_figures(page->view->store)->known)
VALUE_IS(STORE, commit_time, store_figures(page->view->store)->commit_ns_sum / 1e9)
VALUE_IS(STORE, commit_time_max, store_figures(page->view->store)->commit_ns_max / 1e9)
VALUE_IS(STORE, reconnects, store_figures(page->view->store)->reconnects)
VALUE_IS(STORE, last_good, store_figures(page->view->store)->last_good_failures)
VALUE_IS(STORE, commit_at, store_figures(page->view->store)->last_commit_wall_ns / 1e9)
VALUE_IS(STORE, error_at, store_figures(page->view->store)->last_error_wall_ns / 1e9)
VALUE_IS(WORKER, cpu, worker_cpu_s(page->view->workers[row->index].thread))
VALUE_IS(WORKER, connections, worker_connections(page, row->index))
VALUE_IS(GROUP, targets, row->group->n_targets)
VALUE_IS(GROUP, healthy, healthy_targets(row->group))
VALUE_IS(GROUP, panic, LOAD(row->group->runtime->health.is_panicking))
VALUE_IS(GROUP, panics, LOAD(row->group->runtime->health.panics))
VALUE_IS(NAME, addresses, row->view.n)
VALUE_IS(NAME, stale, row->view.has_failed)
VALUE_IS(NAME, lookups, row->view.lookups)
VALUE_IS(NAME, lookup_failures, row->view.failures)
VALUE_IS(TARGET, ramp, ramp(row))
VALUE_IS(TARGET, deep, LOAD(row->target->health.is_warned_of))
VALUE_IS(TARGET, accusers, LOAD(row->target->health.accusers))
VALUE_IS(TARGET, ejected, LOAD(row->target->health.is_ejected))
VALUE_IS(TARGET, ejections, LOAD(row->target->health.ejections))
VALUE_IS(TARGET, spared, LOAD(row->target->health.spared))
VALUE_IS(TARGET, up, health_is_usable(&row->target->health))
VALUE_IS(TARGET, weight, row->group ? row->group->settings[row->index].weight : 0)
VALUE_IS(TARGET, drain_until, (double)row->target->drain_until_wall_ns / 1e9)
VALUE_IS(LIMIT, forgotten, limiter_evicted(row->limit->runtime->limiter))
VALUE_IS(LIMIT, room, limiter_capacity(row->limit->runtime->limiter))
VALUE_IS(CERTIFICATE, expiry, tls_cert_not_after_s(row->cert))
VALUE_IS(TARGET, in_flight, LOAD(row->target->in_flight))
VALUE_IS(TARGET, checks, LOAD(row->target->health.checks))
VALUE_IS(TARGET, check_failures, LOAD(row->target->health.failures))
VALUE_IS(TARGET, transitions, LOAD(row->target->health.transitions))
VALUE_IS(TARGET, check_duration, LOAD(row->target->health.check_us) / 1e6)
VALUE_IS(TARGET, check_time, (double)LOAD(row->target->health.checked_wall_ns) / 1e9)

bool choices_PROCESS_version(const struct page *page, const struct row *row, uint32_t i, struct slice *label,
                             uint64_t *value)
{
    *label = page->view->version ? slice_str(page->view->version) : SLICE("unknown");
    *value = 1;
    return i == 0;
}

bool choices_PROCESS_reloads(const struct page *page, const struct row *row, uint32_t i, struct slice *label,
                             uint64_t *value)
{
    *label = i ? SLICE("failure") : SLICE("success");
    *value = i ? page->view->reload.failed : page->view->reload.succeeded;
    return i < 2;
}

bool choices_PROCESS_shared_lookups(const struct page *page, const struct row *row, uint32_t i,
                                    struct slice *label, uint64_t *value)
{
    const struct slice labels[] = {SLICE("found"), SLICE("none"), SLICE("unanswered")};
    const uint64_t values[] = {page->shared.found, page->shared.none, page->shared.unanswered};
    if (i == iso_countof(labels))
        return false;
    *label = labels[i];
    *value = values[i];
    return true;
}

bool choices_TARGET_state(const struct page *page, const struct row *row, uint32_t i, struct slice *label,
                          uint64_t *value)
{
    if (i == TARGET_STATE_COUNT)
        return false;
    *label = slice_str(target_state_word(i));
    *value = LOAD(row->target->health.state) == i;
    return true;
}

bool choices_TARGET_reason(const struct page *page, const struct row *row, uint32_t i, struct slice *label,
                           uint64_t *value)
{
    *label = slice_str(health_reason_word(LOAD(row->target->health.reason)));
    *value = 1;
    return i == 0;
}

bool choices_TARGET_last_check(const struct page *page, const struct row *row, uint32_t i,
                               struct slice *label, uint64_t *value)
{
    *label = slice_str(health_reason_word(LOAD(row->target->health.last_reason)));
    *value = 1;
    return i == 0;
}

bool choices_STORE_commits(const struct page *page, const struct row *row, uint32_t i, struct slice *label,
                           uint64_t *value)
{
    static const char *const words[] = {"made", "conflict", "failed"};
    const struct store_figures *figures = store_figures(page->view->store);
    if (i == iso_countof(words))
        return false;
    *label = slice_str(words[i]);
    *value = i == 0 ? figures->commits : i == 1 ? figures->conflicts : figures->failures;
    return true;
}
