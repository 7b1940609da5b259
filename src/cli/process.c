/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process.h"

#include "cli/upgrade.h"
#include "config/diff.h"
#include "control/control.h"
#include "core/clock.h"
#include "core/log.h"
#include "health/health.h"
#include "net/listen.h"
#include "proxy/snapshot_tls.h"
#include "proxy/worker.h"
#include "tls/tickets.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    REAP_MS = 100,
    SETTLE_MS = 1000, /* new targets have this long for their first checks before traffic may meet them */
    ADOPT_MS = 2000,
    ADOPT_POLL_US = 100,
    JOIN_POLL_MS = 10,
    EXPIRY_S = 86400,
    SUCCESSOR_POLL_MS = 100,
    HANDOVER_MS = 2000, /* that clients have to ask once more on their connection and hear that it ends */
};

struct process {
    const struct process_source *source;
    uint32_t n_workers;
    struct worker **workers;       /* owns */
    struct control_worker *listed; /* owns: the same for the control pages */
    uint32_t n_joined;
    struct registry *registry; /* owns */
    struct snapshot *current;  /* holds one reference */
    struct snapshot *retired;  /* list of those that workers may still use */
    uint64_t version;
    struct snapshot_log *log; /* the current one; the snapshots own it */
    struct health *health;    /* owns */
    struct control *control;  /* owns */
    struct control_view view;
    struct loop_timer reap_timer, join_timer, lame_duck_timer, successor_timer, expiry_timer;
    char executable[PATH_MAX]; /* that a successor is started from */
    pid_t successor;           /* 0: none */
};

void process_print_diag(const struct iso_diag *diag)
{
    for (const struct diag_entry *entry = diag->first; entry; entry = entry->next) {
        if (entry->line)
            fprintf(stderr, "%s:%u:%u: ", entry->file, entry->line, entry->column);
        else if (entry->file[0])
            fprintf(stderr, "%s: ", entry->file);
        fprintf(stderr, "%s%s%s%s\n", entry->severity == DIAG_WARNING ? "warning: " : "", entry->path,
                entry->path[0] ? ": " : "", entry->message);
    }
}

static void log_diag(const struct iso_diag *diag)
{
    for (const struct diag_entry *entry = diag->first; entry; entry = entry->next)
        log_line(entry->severity == DIAG_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "%s:%u:%u: %s: %s",
                 entry->file, entry->line, entry->column, entry->path, entry->message);
}

/* ---- access logs and snapshots, control thread ---- */

static bool log_fits(const struct snapshot_log *log, const struct config_access_log *wanted)
{
    return slice_eq(log->file, wanted->file) && slice_eq(log->format_text, wanted->format);
}

static void log_unref(const struct snapshot_log *shared)
{
    struct snapshot_log *log = (struct snapshot_log *)shared;
    if (!log || --log->refs > 0)
        return;
    accesslog_close(&log->log);
    accesslog_format_free(log->format);
    free((char *)log->file.ptr);
    free((char *)log->format_text.ptr);
    free(log);
}

static struct slice slice_dup(struct slice s)
{
    char *copy = strndup(s.ptr, s.len);
    iso_assert(copy != NULL);
    return slice_of(copy, s.len);
}

/* The log that the configuration asks for: the current one when nothing changed. NULL with ISO_OK: off. */
static iso_err open_log(struct process *process, const struct config_access_log *wanted,
                        struct snapshot_log **out, struct iso_diag *diag)
{
    *out = NULL;
    if (slice_eq(wanted->file, SLICE("off")))
        return ISO_OK;
    if (process->log && log_fits(process->log, wanted)) {
        *out = process->log;
        return ISO_OK;
    }
    struct snapshot_log *log = calloc(1, sizeof(*log));
    iso_assert(log != NULL);
    struct slice what;
    iso_err err = accesslog_format_compile(wanted->format, &log->format, &what);
    if (err) {
        diag_add(diag, DIAG_ERROR, process->source->name, 0, 0, "/access_log/format", "no such field: %.*s",
                 SLICE_ARG(what));
        free(log);
        return err;
    }
    err = accesslog_open(wanted->file, process->n_workers, &log->log);
    if (err) {
        diag_add(diag, DIAG_ERROR, process->source->name, 0, 0, "/access_log/file", "cannot open %.*s: %s",
                 SLICE_ARG(wanted->file), strerror(errno));
        accesslog_format_free(log->format);
        free(log);
        return err;
    }
    log->file = slice_dup(wanted->file);
    log->format_text = slice_dup(wanted->format);
    *out = log;
    return ISO_OK;
}

static void free_snapshot(struct process *process, struct snapshot *snapshot)
{
    log_unref(snapshot->log);
    snapshot_free(snapshot, process->registry);
}

static void reap(struct process *process)
{
    for (struct snapshot **at = &process->retired; *at;) {
        struct snapshot *snapshot = *at;
        if (atomic_load_explicit(&snapshot->refs, memory_order_acquire) > 0) {
            at = &snapshot->next;
            continue;
        }
        *at = snapshot->next;
        free_snapshot(process, snapshot);
    }
}

static void on_reap(struct loop *loop, struct loop_timer *timer)
{
    struct process *process = container_of(timer, struct process, reap_timer);
    reap(process);
    if (process->retired)
        loop_timer_set(loop, timer, loop->now_ns + REAP_MS * NS_PER_MS);
}

static uint32_t add_specs(const struct snapshot *snapshot, const struct snapshot *unless_in,
                          struct health_spec *specs)
{
    uint32_t n = 0;
    for (uint32_t g = 0; snapshot && g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        for (uint32_t t = 0; t < group->n_targets; t++) {
            const struct config_target *target = &group->config->targets[t];
            struct backend *backend = group->targets[t];
            if (unless_in && snapshot_has_backend(unless_in, backend))
                continue;
            specs[n++] = (struct health_spec){.group = slice_str(backend->group_name),
                                              .name = slice_str(backend->name),
                                              .addr = backend->addr,
                                              .check = &group->config->health_check,
                                              .tls = group->tls,
                                              .proxy_protocol = group->config->proxy_protocol,
                                              .status = &backend->health,
                                              .enabled = target->enabled,
                                              .outlier = &group->config->outlier,
                                              .panic_threshold_pct = group->config->panic_threshold_pct,
                                              .shared = &group->runtime->health,
                                              .runs = &backend->runs,
                                              .passive = &backend->workers[0].passive,
                                              .passive_stride = sizeof(backend->workers[0]),
                                              .n_workers = backend->n_workers,
                                              .is_backup = target->backup,
                                              .is_weightless = target->weight == 0};
        }
    }
    return n;
}

static uint32_t count_targets(const struct snapshot *snapshot)
{
    uint32_t n = 0;
    for (uint32_t g = 0; snapshot && g < snapshot->n_groups; g++)
        n += snapshot->groups[g].n_targets;
    return n;
}

/* Watches the targets of `now`, and those of `old` that are not in it. */
static void watch(struct process *process, const struct snapshot *now, const struct snapshot *old)
{
    struct health_spec *specs = calloc(count_targets(now) + count_targets(old) + 1, sizeof(*specs));
    iso_assert(specs != NULL);
    uint32_t n = add_specs(now, NULL, specs);
    n += add_specs(old, now, specs + n);
    health_apply(process->health, specs, n);
    free(specs);
}

static void wait_until_in_force(struct process *process, uint64_t version)
{
    uint64_t until_ns = clock_mono_ns() + ADOPT_MS * NS_PER_MS;
    for (uint32_t w = 0; w < process->n_workers; w++)
        while (worker_version(process->workers[w]) < version && clock_mono_ns() < until_ns)
            usleep(ADOPT_POLL_US);
}

/* Puts a snapshot in force: its new targets are checked first, while the old ones still serve. */
static void publish(struct process *process, struct snapshot *now)
{
    struct snapshot *old = process->current;
    watch(process, now, old);
    if (!health_settle(process->health, SETTLE_MS))
        log_notice("some targets have not answered their first check within %d ms", SETTLE_MS);
    snapshot_ref(now);
    process->current = now;
    process->version = now->version;
    process->log = (struct snapshot_log *)now->log;
    for (uint32_t w = 0; w < process->n_workers; w++)
        worker_publish(process->workers[w], now);
    wait_until_in_force(process, now->version);
    watch(process, now, NULL);
    snapshot_warn_expiring(now);
    process->view.snapshot = now;
    process->view.accesslog = now->log ? now->log->log : NULL;
    process->view.reload.succeeded_wall_ns = clock_wall_ns();
    if (!old)
        return;
    snapshot_unref(old);
    old->next = process->retired;
    process->retired = old;
    struct loop *loop = control_loop(process->control);
    loop_timer_set(loop, &process->reap_timer, loop->now_ns + REAP_MS * NS_PER_MS);
}

/* Once a day, as long as it is true. */
static void on_expiry(struct loop *loop, struct loop_timer *timer)
{
    snapshot_warn_expiring(container_of(timer, struct process, expiry_timer)->current);
    loop_timer_set(loop, timer, loop->now_ns + EXPIRY_S * NS_PER_S);
}

static iso_err build(struct process *process, struct config **config, struct snapshot **out,
                     struct iso_diag *diag)
{
    struct snapshot_log *log;
    iso_err err = open_log(process, &(*config)->access_log, &log, diag);
    if (err)
        return err;
    err = snapshot_build(config, process->registry, process->n_workers, process->version + 1, out, diag);
    if (err) {
        if (log && log->refs == 0) {
            log->refs = 1;
            log_unref(log);
        }
        return err;
    }
    if (log)
        log->refs++;
    (*out)->log = log;
    return ISO_OK;
}

/* ---- what the control thread is told ---- */

static void reload_failed(struct process *process, const struct iso_diag *diag)
{
    log_diag(diag);
    log_error("reload: %s was refused; version %lu stays in force", process->source->name, process->version);
    process->view.reload.failed++;
    process->view.reload.last_failed = true;
}

static void log_changes(const struct config *old, const struct config *now)
{
    struct arena arena;
    arena_init(&arena);
    for (const struct config_change *change = config_diff(old, now, &arena); change; change = change->next)
        log_notice("reload: %s: %s", change->object, change->what);
    arena_fini(&arena);
}

static void on_reload(void *owner)
{
    struct process *process = owner;
    struct config *config = NULL;
    struct snapshot *snapshot = NULL;
    struct iso_diag diag;
    if (process->view.is_shutting_down)
        return;
    if (!process->source->can_reload) {
        log_notice("SIGHUP: there is no file to read again");
        return;
    }
    diag_init(&diag);
    iso_err err = process->source->load(process->source->source, &config, &diag);
    if (!err)
        err = control_listen(process->control, &config->admin, &diag);
    if (!err)
        err = build(process, &config, &snapshot, &diag);
    if (err) {
        if (config) {
            struct iso_diag ignored;
            diag_init(&ignored);
            if (control_listen(process->control, &process->current->config->admin, &ignored))
                log_error("the admin listener of the old configuration could not be opened again");
            diag_fini(&ignored);
            config_free(config);
        }
        reload_failed(process, &diag);
    } else {
        log_diag(&diag);
        log_changes(process->current->config, snapshot->config);
        if (snapshot->config->workers != process->current->config->workers)
            log_warning("reload: workers: a new number of workers needs a restart; %u go on",
                        process->n_workers);
        publish(process, snapshot);
        process->view.reload.succeeded++;
        process->view.reload.last_failed = false;
        log_notice("reload: version %lu of %s is in force", process->version, process->source->name);
    }
    diag_fini(&diag);
}

/* SIGUSR2 (E5). The sockets stay open in both processes until the new one serves, so no connection is refused
 * or lost; when the new one does not come up, nothing has changed. */
static void on_upgrade(void *owner)
{
    struct process *process = owner;
    struct loop *loop = control_loop(process->control);
    if (process->view.is_shutting_down || process->successor) {
        log_notice("SIGUSR2: an upgrade or a shutdown is under way already");
        return;
    }
    if (upgrade_start(process->executable, &process->successor))
        return;
    log_notice("upgrade: process %d is starting", (int)process->successor);
    loop_timer_set(loop, &process->successor_timer, loop->now_ns + SUCCESSOR_POLL_MS * NS_PER_MS);
}

/* The successor asks us to end by SIGTERM once it serves; one that ends before has failed. */
static void on_successor(struct loop *loop, struct loop_timer *timer)
{
    struct process *process = container_of(timer, struct process, successor_timer);
    if (process->view.is_shutting_down)
        return;
    if (upgrade_has_ended(process->successor)) {
        log_error("upgrade: process %d ended before it served; this one goes on", (int)process->successor);
        process->successor = 0;
        return;
    }
    loop_timer_set(loop, timer, loop->now_ns + SUCCESSOR_POLL_MS * NS_PER_MS);
}

static void on_reopen(void *owner)
{
    struct process *process = owner;
    if (process->log && accesslog_reopen(process->log->log))
        log_error("access log: cannot open %.*s again", SLICE_ARG(process->log->file));
}

static void on_join(struct loop *loop, struct loop_timer *timer)
{
    struct process *process = container_of(timer, struct process, join_timer);
    while (process->n_joined < process->n_workers && worker_has_ended(process->workers[process->n_joined]))
        process->n_joined++;
    if (process->n_joined == process->n_workers)
        control_stop(process->control);
    else
        loop_timer_set(loop, timer, loop->now_ns + JOIN_POLL_MS * NS_PER_MS);
}

static void stop_workers(struct process *process, uint32_t within_ms)
{
    struct loop *loop = control_loop(process->control);
    for (uint32_t w = 0; w < process->n_workers; w++)
        worker_stop(process->workers[w], within_ms);
    loop_timer_set(loop, &process->join_timer, loop->now_ns);
}

static void on_lame_duck_over(struct loop *loop, struct loop_timer *timer)
{
    struct process *process = container_of(timer, struct process, lame_duck_timer);
    uint32_t within_ms = process->current->config->shutdown_ms;
    log_notice("no more connections; requests in flight have %u s", within_ms / 1000);
    stop_workers(process, within_ms);
}

/* Once: the health pages say so, answers end their connections, and after lame_duck_s nothing new is taken
 * (E3). Twice: at once. */
static void on_shutdown(void *owner)
{
    struct process *process = owner;
    struct loop *loop = control_loop(process->control);
    if (process->view.is_shutting_down) {
        log_notice("asked again: what is in flight is cut");
        loop_timer_clear(&process->lame_duck_timer);
        stop_workers(process, 0);
        return;
    }
    uint32_t lame_duck_ms = process->successor ? HANDOVER_MS : process->current->config->lame_duck_ms;
    if (process->successor) { /* its sockets, and nobody has to go elsewhere */
        listen_handed_over(true);
        struct iso_diag ignored;
        diag_init(&ignored);
        if (control_listen(process->control, &(struct config_admin){0}, &ignored))
            log_error("the admin listener cannot be closed");
        diag_fini(&ignored);
    }
    log_notice("shutting down%s", process->successor ? ": the new process serves"
                                  : lame_duck_ms     ? ": serving on for lame_duck_s"
                                                     : "");
    process->view.is_shutting_down = true;
    for (uint32_t w = 0; w < process->n_workers; w++)
        worker_wind_down(process->workers[w], process->successor != 0);
    if (lame_duck_ms)
        loop_timer_set(loop, &process->lame_duck_timer, loop->now_ns + lame_duck_ms * NS_PER_MS);
    else
        on_lame_duck_over(loop, &process->lame_duck_timer);
}

/* ---- start and end ---- */

static uint32_t count_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 1;
    int n = CPU_COUNT(&set);
    return n > 0 ? (uint32_t)n : 1;
}

static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
            log_warning("cannot raise the limit of open files: %m");
    }
}

static iso_err start_workers(struct process *process)
{
    process->workers = calloc(process->n_workers, sizeof(*process->workers));
    process->listed = calloc(process->n_workers, sizeof(*process->listed));
    iso_assert(process->workers && process->listed);
    for (uint32_t w = 0; w < process->n_workers; w++) {
        iso_err err = worker_start(&process->workers[w], w);
        if (err)
            return err;
        process->listed[w] =
            (struct control_worker){&process->workers[w]->counters, process->workers[w]->thread};
    }
    ticket_seed_drop();
    process->view.workers = process->listed;
    process->view.n_workers = process->n_workers;
    return ISO_OK;
}

static void log_ready(const struct process *process)
{
    for (uint32_t i = 0; i < process->current->n_listeners; i++)
        log_notice("listening on %.*s", SLICE_ARG(process->current->listeners[i].config->endpoint.text));
    if (control_endpoint(process->control)[0])
        log_notice("admin on http%s://%s (/ lists what is there)",
                   control_is_tls(process->control) ? "s" : "", control_endpoint(process->control));
    log_notice("ready: %u worker%s", process->n_workers, process->n_workers == 1 ? "" : "s");
}

static void wind_up(struct process *process)
{
    for (uint32_t w = 0; w < process->n_workers && process->workers; w++)
        if (process->workers[w]) {
            worker_stop(process->workers[w], 0);
            worker_join(&process->workers[w]);
        }
    process->view = (struct control_view){.version = process->view.version, .is_shutting_down = true};
    if (process->control)
        control_close(&process->control);
    if (process->health)
        health_stop(&process->health);
    if (process->current) {
        snapshot_unref(process->current);
        process->current->next = process->retired;
        process->retired = process->current;
    }
    reap(process);
    iso_assert(process->retired == NULL);
    if (process->registry)
        registry_free(process->registry);
    free(process->workers);
    free(process->listed);
}

static iso_err start(struct process *process, struct config **config, struct iso_diag *diag)
{
    struct snapshot *first;
    const struct control_callbacks callbacks = {.owner = process,
                                                .on_reload = on_reload,
                                                .on_shutdown = on_shutdown,
                                                .on_upgrade = on_upgrade,
                                                .on_reopen = on_reopen};
    process->n_workers = (*config)->workers ? (*config)->workers : count_cpus();
    uint32_t inherited = listen_inherited_workers();
    if (inherited && inherited != process->n_workers) {
        log_warning("upgrade: the earlier process has %u workers, each with its sockets; so has this one",
                    inherited);
        process->n_workers = inherited;
    }
    iso_err err = control_open(&callbacks, &process->view, &process->control);
    if (err)
        return err;
    process->registry = registry_new(process->n_workers);
    err = control_listen(process->control, &(*config)->admin, diag);
    if (!err)
        err = build(process, config, &first, diag);
    if (err)
        return err;
    err = health_start(&process->health);
    if (!err)
        err = start_workers(process);
    if (err) {
        free_snapshot(process, first);
        return err;
    }
    publish(process, first);
    listen_close_unused();
    upgrade_finish();
    return ISO_OK;
}

int process_run(const struct process_source *source)
{
    struct process process = {.source = source, .view = {.version = ISOBAR_VERSION}};
    struct config *config = NULL;
    struct iso_diag diag;
    loop_timer_init(&process.reap_timer, on_reap);
    loop_timer_init(&process.join_timer, on_join);
    loop_timer_init(&process.expiry_timer, on_expiry);
    loop_timer_init(&process.successor_timer, on_successor);
    upgrade_executable(process.executable);
    listen_inherit();
    loop_timer_init(&process.lame_duck_timer, on_lame_duck_over);
    diag_init(&diag);
    raise_descriptor_limit();
    iso_err err = source->load(source->source, &config, &diag);
    if (!err)
        err = start(&process, &config, &diag);
    process_print_diag(&diag);
    diag_fini(&diag);
    if (err) {
        log_error("cannot start: %s", iso_err_text(err));
        if (config)
            config_free(config);
    } else {
        log_ready(&process);
        loop_timer_set(control_loop(process.control), &process.expiry_timer,
                       control_loop(process.control)->now_ns + EXPIRY_S * NS_PER_S);
        control_run(process.control);
    }
    wind_up(&process);
    if (!err)
        log_notice("ended");
    return err ? 1 : 0;
}
