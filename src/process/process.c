/* SPDX-License-Identifier: Apache-2.0 */
#include "process/process_internal.h"

#include "compile/snapshot_tls.h"
#include "config/diff.h"
#include "core/clock.h"
#include "core/log.h"
#include "net/listen.h"
#include "process/upgrade.h"
#include "tls/tickets.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    JOIN_POLL_MS = 10,
    EXPIRY_S = 86400,
    SUCCESSOR_POLL_MS = 100,
    HANDOVER_MS = 2000, /* that clients have to ask once more on their connection and hear that it ends */
};

void process_log_diag(const struct iso_diag *diag)
{
    for (const struct diag_entry *entry = diag->first; entry; entry = entry->next)
        log_line(entry->severity == DIAG_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARNING, "%s:%u:%u: %s: %s",
                 entry->file, entry->line, entry->column, entry->path, entry->message);
}

/* ---- what the control thread is told ---- */

static void log_changes(const struct config *old, const struct config *now)
{
    struct arena arena;
    arena_init(&arena);
    for (const struct config_change *change = config_diff(old, now, &arena); change; change = change->next)
        log_notice("reload: %s: %s", change->object, change->what);
    arena_fini(&arena);
}

/* A reload on its way: the file, read, as a change of the document. */
struct reload {
    struct change change;
    struct process *process;
    const struct config *before; /* its snapshot lives on within the turn that replaced it */
};

static void reload_failed(struct process *process, const struct iso_diag *diag)
{
    process_log_diag(diag);
    log_error("reload: %s was refused; version %lu stays in force", process->source->name,
              document_version(process->document));
    process->view.reload.failed++;
    process->view.reload.last_failed = true;
}

static bool read_file(struct change *change)
{
    struct reload *reload = container_of(change, struct reload, change);
    struct process *process = reload->process;
    struct config_source source;
    if (process->source->load(process->source->source, &source, &change->diag))
        return false;
    reload->before = process->current->config;
    return stored_take_file(process, change, &source);
}

static void reload_done(struct change *change, enum change_outcome outcome, const struct config *tried)
{
    struct reload *reload = container_of(change, struct reload, change);
    struct process *process = reload->process;
    if (outcome == CHANGE_MADE) {
        process_log_diag(&change->diag);
        log_changes(reload->before, change->config);
        if (change->config->workers != reload->before->workers)
            log_warning("reload: workers: a new number of workers needs a restart; %u go on",
                        process->n_workers);
        process->view.reload.succeeded++;
        process->view.reload.last_failed = false;
        log_notice("reload: version %lu of %s is in force", change->version, process->source->name);
    } else if (outcome != CHANGE_ABANDONED) {
        reload_failed(process, &change->diag);
    }
}

/* The change's last word was spoken: its memory ends in the next turn. */
static void reload_free(struct change *change)
{
    free(container_of(change, struct reload, change));
}

static void on_reload(void *owner)
{
    struct process *process = owner;
    if (process->view.is_shutting_down)
        return;
    if (!process->source->can_reload) {
        log_notice("SIGHUP: there is no file to read again");
        return;
    }
    struct reload *reload = calloc(1, sizeof(*reload));
    iso_assert(reload != NULL);
    *reload = (struct reload){.change = {.who = SLICE("file"),
                                         .is_patient = true,
                                         .reads_files = true,
                                         .make = read_file,
                                         .done = reload_done,
                                         .free = reload_free},
                              .process = process};
    document_submit(process->document, &reload->change);
}

/* Once a day, as long as it is true. */
static void on_expiry(struct loop *loop, struct loop_timer *timer)
{
    snapshot_warn_expiring(container_of(timer, struct process, expiry_timer)->current);
    loop_timer_set(loop, timer, loop->now_ns + EXPIRY_S * NS_PER_S);
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
    document_close(process->document);
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
    shared_state_stop(&process->shared); /* it answers into the loops of workers, which serve nobody now */
    for (uint32_t w = 0; w < process->n_workers && process->workers; w++)
        if (process->workers[w]) {
            worker_stop(process->workers[w], 0);
            worker_join(&process->workers[w]);
        }
    stored_close(process);
    document_free(&process->document);
    process->view = (struct control_view){.version = process->view.version, .is_shutting_down = true};
    recorder_stop(&process->recorder);
    names_free(&process->names);
    if (process->decap)
        decap_free(&process->decap, process->successor != 0);
    if (process->control)
        control_close(&process->control);
    if (process->health)
        health_stop(&process->health);
    apply_fini(process);
    if (process->registry)
        registry_free(process->registry);
    free(process->workers);
    free(process->listed);
}

static iso_err start(struct process *process, struct config_source *source, struct iso_diag *diag)
{
    struct snapshot *first;
    struct store_boot boot = {.version = 1};
    bool has_store = source->config->store.set;
    const struct control_callbacks callbacks = {.owner = process,
                                                .on_reload = on_reload,
                                                .on_shutdown = on_shutdown,
                                                .on_upgrade = on_upgrade,
                                                .on_reopen = on_reopen};
    iso_err err = control_open(&callbacks, &process->view, &process->control);
    process->view.loop = err ? NULL : control_loop(process->control);
    if (!err && has_store) /* signals that come meanwhile wait for the loop */
        err = store_boot(source, process->source->name, &boot, diag);
    if (err)
        return err;
    process->n_workers = source->config->workers ? source->config->workers : count_cpus();
    uint32_t inherited = listen_inherited_workers();
    if (inherited && inherited != process->n_workers) {
        log_warning("upgrade: the earlier process has %u workers, each with its sockets; so has this one",
                    inherited);
        process->n_workers = inherited;
    }
    process->registry = registry_new(process->n_workers);
    process->decap = decap_new();
    process->names = names_new(control_loop(process->control), apply_names, process);
    process->view.resolve = names_resolve(process->names);
    err = control_listen(process->control, &source->config->admin, diag);
    if (!err)
        err = apply_build(process, &source->config, &first, diag);
    if (err)
        return err;
    err = health_start(&process->health);
    if (!err)
        err = start_workers(process);
    if (err) {
        apply_free_snapshot(process, first);
        return err;
    }
    apply_first(process, first);
    struct document_hooks hooks = apply_hooks;
    hooks.owner = process;
    if (has_store)
        stored_add_hooks(&hooks);
    process->document = document_new(control_loop(process->control), &hooks, &source->doc, source->base_dir,
                                     boot.version, has_store ? SLICE("store") : SLICE("file"));
    control_set_document(process->control, process->document);
    if (has_store)
        err = stored_open(process, &boot, diag);
    if (err)
        return err;
    listen_close_unused();
    upgrade_finish();
    return ISO_OK;
}

int process_run(const struct process_source *source)
{
    struct process process = {.source = source, .view = {.version = ISOBAR_VERSION}};
    struct config_source loaded = {0};
    struct iso_diag diag;
    apply_init(&process);
    loop_timer_init(&process.join_timer, on_join);
    loop_timer_init(&process.expiry_timer, on_expiry);
    loop_timer_init(&process.successor_timer, on_successor);
    upgrade_executable(process.executable);
    listen_inherit();
    loop_timer_init(&process.lame_duck_timer, on_lame_duck_over);
    diag_init(&diag);
    raise_descriptor_limit();
    iso_err err = source->load(source->source, &loaded, &diag);
    if (!err)
        err = start(&process, &loaded, &diag);
    diag_print(&diag);
    config_source_fini(&loaded);
    diag_fini(&diag);
    if (err) {
        log_error("cannot start: %s", iso_err_text(err));
    } else {
        log_ready(&process);
        loop_timer_set(control_loop(process.control), &process.expiry_timer,
                       control_loop(process.control)->now_ns + EXPIRY_S * NS_PER_S);
        process.recorder = recorder_start(control_loop(process.control), &process.view);
        control_run(process.control);
    }
    wind_up(&process);
    if (!err)
        log_notice("ended");
    return err ? 1 : 0;
}
