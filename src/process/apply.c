/* SPDX-License-Identifier: Apache-2.0 */
/* From a configuration to traffic that obeys it: compiled into a snapshot beside the one in force, its new
 * targets checked while the old one still serves, then handed to every worker. What was in force is kept
 * until no worker uses it. */
#include "process/process_internal.h"

#include "compile/build.h"
#include "compile/snapshot_tls.h"
#include "config/load.h"
#include "config/same.h"
#include "core/clock.h"
#include "core/log.h"
#include "process/watched.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    REAP_MS = 100,
    SETTLE_MS = 1000, /* new targets have this long for their first checks before traffic may meet them */
    SETTLE_POLL_MS = 2,
    ADOPT_MS = 2000,
    ADOPT_POLL_US = 100,
};

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

void apply_free_snapshot(struct process *process, struct snapshot *snapshot)
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
        apply_free_snapshot(process, snapshot);
    }
    process->view.retired = process->retired;
}

static void on_reap(struct loop *loop, struct loop_timer *timer)
{
    struct process *process = container_of(timer, struct process, reap_timer);
    reap(process);
    /* A snapshot that is not in force yet may have them again. */
    bool any_leaves = process->prepared ? true : departures_poll(&process->departures, process->registry);
    if (process->retired || any_leaves)
        loop_timer_set(loop, timer, loop->now_ns + REAP_MS * NS_PER_MS);
}

static void wait_until_in_force(struct process *process, uint64_t version)
{
    uint64_t until_ns = clock_mono_ns() + ADOPT_MS * NS_PER_MS;
    for (uint32_t w = 0; w < process->n_workers; w++)
        while (worker_version(process->workers[w]) < version && clock_mono_ns() < until_ns)
            usleep(ADOPT_POLL_US);
}

/* Who leaves with the old snapshot, who came back, and until when those that were disabled may go on. Workers
 * and health have the new one. */
static void note_leaving(struct process *process, const struct snapshot *now, const struct snapshot *old)
{
    for (uint32_t g = 0; g < now->n_groups; g++) {
        const struct snap_group *group = &now->groups[g];
        if (group->shape->born != now->stamp)
            continue;
        uint64_t until_ns = clock_wall_ns() + group->config->deregistration_delay_ms * NS_PER_MS;
        for (uint32_t t = 0; t < group->n_targets; t++) {
            struct backend *backend = group->targets[t];
            departures_cancel(&process->departures, process->registry, backend);
            if (group->settings[t].enabled)
                backend->drain_until_wall_ns = 0;
            else if (snapshot_serves_backend(old, backend))
                backend->drain_until_wall_ns = until_ns;
        }
    }
    for (uint32_t g = 0; g < old->n_groups; g++)
        for (uint32_t t = 0; !snapshot_has_shape(now, &old->groups[g]) && t < old->groups[g].n_targets; t++)
            if (!snapshot_has_backend(now, old->groups[g].targets[t]))
                departures_add(&process->departures, process->registry, old->groups[g].targets[t],
                               old->groups[g].config->deregistration_delay_ms);
}

static uint32_t count_built(const struct snapshot *now, const struct snapshot *old)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < now->n_groups; g++)
        n += !old || now->groups[g].same_as != old->stamp;
    return n;
}

/* Hands a snapshot whose targets are watched to the workers. */
static void adopt(struct process *process, struct snapshot *now)
{
    struct snapshot *old = process->current;
    share_apply(process, now);
    snapshot_ref(now);
    process->current = now;
    process->version = now->version;
    process->log = (struct snapshot_log *)now->log;
    snapshot_mark_leaving(now, old);
    for (uint32_t w = 0; w < process->n_workers; w++)
        worker_publish(process->workers[w], now);
    wait_until_in_force(process, now->version);
    if (old)
        watched_apply(process->health, now, old, false);
    snapshot_warn_expiring(now);
    process->view.snapshot = now;
    process->view.groups_built += count_built(now, old);
    process->view.accesslog = now->log ? now->log->log : NULL;
    if (!old || old->config != now->config)
        process->view.reload.succeeded_wall_ns = clock_wall_ns();
    names_keep(process->names, now->config);
    files_watch_set(&process->files, control_loop(process->control), now->config);
    decap_settle(process->decap, now->config);
    if (!old)
        return;
    note_leaving(process, now, old);
    snapshot_unref(old);
    old->next = process->retired;
    process->retired = old;
    process->view.retired = old;
    struct loop *loop = control_loop(process->control);
    if (!process->reap_timer.due_ns) /* changes in quick succession must not put it off */
        loop_timer_set(loop, &process->reap_timer, loop->now_ns + REAP_MS * NS_PER_MS);
}

/* `earlier`: a snapshot of the same configuration; NULL: there is none. */
static iso_err compile(struct process *process, struct config **config, const struct snapshot *earlier,
                       struct snapshot **out, struct iso_diag *diag)
{
    struct snapshot_log *log;
    iso_err err = open_log(process, &(*config)->access_log, &log, diag);
    if (err)
        return err;
    const struct snapshot_parts parts = {.registry = process->registry,
                                         .resolve = names_resolve(process->names),
                                         .earlier = earlier,
                                         .before = process->current,
                                         .keeps_files = !process->reads_files,
                                         .n_workers = process->n_workers,
                                         .version = process->version + 1};
    err = snapshot_build(config, &parts, out, diag);
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

iso_err apply_build(struct process *process, struct config **config, struct snapshot **out,
                    struct iso_diag *diag)
{
    iso_err err = decap_apply(process->decap, *config, diag);
    if (!err)
        err = names_take(process->names, *config);
    return err ? err : compile(process, config, NULL, out, diag);
}

void apply_first(struct process *process, struct snapshot *first)
{
    watched_apply(process->health, first, NULL, false);
    if (!health_settle(process->health, SETTLE_MS))
        log_notice("some targets have not answered their first check within %d ms", SETTLE_MS);
    adopt(process, first);
}

/* A change that was prepared in part is not made. */
static void be_as_before(struct process *process)
{
    struct iso_diag ignored;
    diag_init(&ignored);
    if (process->listens_anew && control_listen(process->control, &process->current->config->admin, &ignored))
        log_error("the admin listener of the old configuration could not be opened again");
    if (decap_apply(process->decap, process->current->config, &ignored))
        log_error("the decapsulation of the old configuration could not be attached again");
    decap_settle(process->decap, process->current->config);
    diag_fini(&ignored);
}

static void finish_names(struct process *process);

static iso_err prepare(void *owner, struct config **config, bool reads_files, struct iso_diag *diag)
{
    struct process *process = owner;
    process->reads_files = reads_files;
    finish_names(process);
    iso_assert(!process->prepared);
    process->listens_anew =
        reads_files || !config_same_admin(&(*config)->admin, &process->current->config->admin);
    iso_err err = process->listens_anew ? control_listen(process->control, &(*config)->admin, diag) : ISO_OK;
    if (err)
        return err;
    err = apply_build(process, config, &process->prepared, diag);
    if (err) {
        names_keep(process->names, process->current->config);
        be_as_before(process);
    }
    return err;
}

static void discard(void *owner)
{
    struct process *process = owner;
    apply_free_snapshot(process, process->prepared);
    process->prepared = NULL;
    names_keep(process->names, process->current->config);
    be_as_before(process);
}

static const struct config *current(void *owner)
{
    return ((struct process *)owner)->current->config;
}

/* Is there, in every group that has targets, one that work may go to, as far as there was one before? */
static bool can_serve(const struct snapshot *snapshot)
{
    for (uint32_t g = 0; g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        bool is_pending = false, is_usable = false;
        for (uint32_t t = 0; t < group->n_targets && !is_usable; t++) {
            is_usable = health_is_usable(&group->targets[t]->health);
            is_pending |= atomic_load_explicit(&group->targets[t]->health.state, memory_order_relaxed) ==
                          TARGET_PENDING;
        }
        if (is_pending && !is_usable)
            return false;
    }
    return true;
}

static void go_on(struct process *process)
{
    struct loop *loop = control_loop(process->control);
    bool is_settled = health_settle(process->health, 0);
    bool may_serve = is_settled || (!process->is_patient && can_serve(process->prepared));
    if (!may_serve && clock_mono_ns() < process->settle_until_ns) {
        loop_timer_set(loop, &process->settle_timer, clock_mono_ns() + SETTLE_POLL_MS * NS_PER_MS);
        return;
    }
    if (!may_serve)
        log_notice("some targets have not answered their first check within %d ms", SETTLE_MS);
    struct snapshot *now = process->prepared;
    void (*published)(void *arg) = process->published;
    process->prepared = NULL;
    process->published = NULL;
    adopt(process, now);
    published(process->published_arg);
}

static void on_settle(struct loop *loop, struct loop_timer *timer)
{
    go_on(container_of(timer, struct process, settle_timer));
}

static void publish(void *owner, bool is_patient, void (*done)(void *arg), void *arg)
{
    struct process *process = owner;
    iso_assert(process->prepared && !process->published);
    process->published = done;
    process->published_arg = arg;
    process->is_patient = is_patient;
    process->settle_until_ns = clock_mono_ns() + SETTLE_MS * NS_PER_MS;
    watched_apply(process->health, process->prepared, process->current, true);
    go_on(process);
}

static void names_published(void *arg)
{
    struct process *process = arg;
    log_notice("dns: names have other addresses; snapshot %lu has them", process->version);
}

/* Addresses come and go like targets of a file: new ones are checked first, those that are gone drain. The
 * configuration and everything read for it stay the same. A change of the configuration that is under way has
 * looked at the names itself, and looks again when it is in force. */
void apply_names(void *owner)
{
    struct process *process = owner;
    const struct snapshot *old = process->current;
    if (process->view.is_shutting_down || process->prepared ||
        snapshot_is_current(old, names_resolve(process->names)))
        return;
    struct iso_diag diag;
    struct config *config = config_share(old->config);
    diag_init(&diag);
    if (compile(process, &config, old, &process->prepared, &diag)) {
        for (const struct diag_entry *entry = diag.first; entry; entry = entry->next)
            log_error("dns: %s: %s", entry->path, entry->message);
        log_error("dns: new addresses cannot be used; those before stay");
        config_free(config);
    } else {
        publish(process, false, names_published, process);
    }
    diag_fini(&diag);
}

static void files_published(void *arg)
{
    log_notice("files that the configuration names have changed and are in force");
}

/* The same configuration with files that are read again. A change of the configuration that is under way
 * reads some of them itself, so this waits for the next look. */
static void apply_files(struct files_watch *watch)
{
    struct process *process = container_of(watch, struct process, files);
    if (process->view.is_shutting_down || process->prepared) {
        watch->seen = 0;
        return;
    }
    struct iso_diag diag;
    struct config *config = config_share(process->current->config);
    diag_init(&diag);
    process->reads_files = true;
    if (compile(process, &config, NULL, &process->prepared, &diag)) {
        for (const struct diag_entry *entry = diag.first; entry; entry = entry->next)
            log_error("files: %s: %s", entry->path, entry->message);
        log_error("files that have changed are of no use; what was read before stays");
        config_free(config);
    } else {
        publish(process, false, files_published, process);
    }
    diag_fini(&diag);
}

/* A configuration comes: new addresses that still wait for their first checks do so no longer. */
static void finish_names(struct process *process)
{
    bool is_ours = process->published == names_published || process->published == files_published;
    if (!process->prepared || !is_ours)
        return;
    loop_timer_clear(&process->settle_timer);
    process->settle_until_ns = 0;
    go_on(process);
}

const struct document_hooks apply_hooks = {
    .prepare = prepare, .publish = publish, .discard = discard, .current = current};

void apply_init(struct process *process)
{
    process->view.departures = &process->departures;
    loop_timer_init(&process->reap_timer, on_reap);
    loop_timer_init(&process->settle_timer, on_settle);
    files_watch_init(&process->files, apply_files);
}

/* Workers and health have ended. */
void apply_fini(struct process *process)
{
    if (process->prepared)
        apply_free_snapshot(process, process->prepared);
    process->prepared = NULL;
    if (process->current) {
        snapshot_unref(process->current);
        process->current->next = process->retired;
        process->retired = process->current;
    }
    departures_fini(&process->departures, process->registry);
    reap(process);
    iso_assert(process->retired == NULL);
}
