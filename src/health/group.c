/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets of a group mean for each other: whom real requests speak against is ejected as far as the
 * cap and the panic threshold allow (D2, D4), panic begins and ends (D5), and whoever comes back starts
 * slowly (B7). Workers only count and ring; every decision is made here, on the health thread, once for all
 * workers. A failed check needs nobody's leave: the cap is for ejections alone (case C-096). */
#include "health/watch.h"

#include "core/clock.h"
#include "core/log.h"

#include <stdlib.h>

enum {
    LOOK_MS = 500,      /* at a group in panic, or with somebody spared: the limits may allow more by now */
    FOUNDING_MS = 5000, /* targets that come up so soon after their whole group are no newcomers in it */
};

/* ---- counting ---- */

static struct outlier_sums sums_of(const struct watch *watch)
{
    struct outlier_sums sums = {0};
    for (uint32_t w = 0; w < watch->n_workers; w++) {
        const struct passive_worker *part =
            (const struct passive_worker *)((const char *)watch->passive + w * watch->passive_stride);
        /* Failures first: a worker counts the attempt first, so none is seen that no attempt belongs to. */
        sums.failures += counter_read(&part->failures);
        sums.attempts += counter_read(&part->attempts);
    }
    if (watch->runs) {
        sums.run_5xx = atomic_load_explicit(&watch->runs->errors_5xx, memory_order_relaxed);
        sums.run_gateway = atomic_load_explicit(&watch->runs->gateway_errors, memory_order_relaxed);
    }
    return sums;
}

/* New requests tell about the target, not those before. */
void group_forget_requests(struct watch *watch)
{
    if (watch->runs) {
        atomic_store_explicit(&watch->runs->errors_5xx, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->runs->gateway_errors, 0, memory_order_relaxed);
    }
    struct outlier_sums sums = sums_of(watch);
    outlier_forget(&watch->outlier, &sums);
}

static bool takes_share(const struct watch *watch)
{
    enum target_state state = watch_state(watch);
    return watch->is_enabled && !watch->is_weightless && state != TARGET_DRAINING && state != TARGET_REMOVED;
}

static bool is_ejected(const struct watch *watch)
{
    return watch->outlier.until_ns != 0;
}

static void count(struct panic_census *census, const struct watch *watch)
{
    enum target_state state = watch_state(watch);
    census->active += state == TARGET_ACTIVE;
    census->unhealthy += state == TARGET_UNHEALTHY;
    census->failed += state == TARGET_PENDING && watch->is_reported;
    census->ejected += is_ejected(watch) && watch->judge.failures == 0; /* and nothing else is wrong */
    census->doubtful += state == TARGET_ACTIVE && watch->spared == WATCH_SPARED_BY_PANIC;
}

/* Also how many there are, and how many are ejected, backups included: what the cap is about. */
static struct panic_census take_census(const struct watch_group *group, uint32_t *n, uint32_t *n_ejected)
{
    struct panic_census primaries = {0}, backups = {0};
    uint32_t n_primaries = 0;
    *n = *n_ejected = 0;
    for (uint32_t i = 0; i < group->n; i++) {
        const struct watch *watch = group->watches[i];
        if (!takes_share(watch))
            continue;
        ++*n;
        *n_ejected += is_ejected(watch);
        n_primaries += !watch->is_backup;
        count(watch->is_backup ? &backups : &primaries, watch);
    }
    primaries.has_backup = backups.active > 0;
    return n_primaries ? primaries : backups;
}

/* ---- panic ---- */

static void say_panic(const struct watch_group *group, const struct panic_census *census)
{
    uint32_t total = panic_total(census);
    if (!group->panic.is_on)
        log_notice("target group %.*s is out of panic: %u of %u targets usable", SLICE_ARG(group->name),
                   census->active, total);
    else if (group->panic.is_low)
        log_warning("target group %.*s is in panic: %u of %u targets usable, fewer than %u%%; health is "
                    "ignored",
                    SLICE_ARG(group->name), census->active, total, group->panic_threshold_pct);
    else
        log_warning("target group %.*s is in panic: its %u usable targets all fail their requests; health is "
                    "ignored",
                    SLICE_ARG(group->name), census->active);
}

static bool needs_ticks(const struct watch_group *group)
{
    if (group->n == 0)
        return false;
    if (group->panic.is_on || (group->has_outlier && group->outlier.error_rate_pct))
        return true;
    for (uint32_t i = 0; i < group->n; i++)
        if (group->watches[i]->spared)
            return true;
    return false;
}

static void arrange_tick(struct watch_group *group)
{
    struct loop *loop = &group->health->loop;
    bool has_rate = group->has_outlier && group->outlier.error_rate_pct;
    uint32_t ms = has_rate ? group->outlier.window_ms / OUTLIER_SLOTS : LOOK_MS;
    if (!group->tick.due_ns && needs_ticks(group))
        loop_timer_set(loop, &group->tick, loop->now_ns + ms * NS_PER_MS);
}

void group_update(struct watch_group *group)
{
    uint32_t n, n_ejected;
    if (group->n == 0)
        return;
    struct panic_census census = take_census(group, &n, &n_ejected);
    if (panic_update(&group->panic, &census, group->panic_threshold_pct, group->health->loop.now_ns)) {
        say_panic(group, &census);
        if (group->shared) {
            atomic_store_explicit(&group->shared->is_panicking, group->panic.is_on, memory_order_relaxed);
            if (group->panic.is_on)
                atomic_fetch_add_explicit(&group->shared->panics, 1, memory_order_relaxed);
        }
        if (group->epoch)
            atomic_fetch_add_explicit(group->epoch, 1, memory_order_release);
    }
    arrange_tick(group);
}

/* ---- ejection ---- */

static void spare(struct watch *watch, enum health_reason cause, enum watch_spared why)
{
    const struct watch_group *group = watch->group;
    if (!watch->spared) {
        atomic_fetch_add_explicit(&watch->status->spared, 1, memory_order_relaxed);
        log_notice("target %.*s %.*s is not ejected (%s): %s", SLICE_ARG(group->name), SLICE_ARG(watch->name),
                   health_reason_word(cause),
                   why == WATCH_SPARED_BY_CAP ? "as many as max_ejection_pct allows are"
                                              : "too few usable targets would be left");
    }
    watch->spared = (uint8_t)why;
}

static void eject(struct watch *watch, enum health_reason cause)
{
    struct loop *loop = &watch->health->loop;
    watch->spared = WATCH_NOT_SPARED;
    outlier_eject(&watch->outlier, &watch->group->outlier, loop->now_ns);
    atomic_fetch_add_explicit(&watch->status->ejections, 1, memory_order_relaxed);
    atomic_store_explicit(&watch->status->is_ejected, 1, memory_order_relaxed);
    loop_timer_set(loop, &watch->ejection_end, watch->outlier.until_ns);
    watch_step(watch, TARGET_EVENT_EJECT, cause);
    watch->has_failed_since = false;
    watch_check_now(watch);
}

void group_judge(struct watch_group *group)
{
    uint32_t n, n_ejected;
    if (!group->has_outlier || group->n == 0)
        return;
    struct panic_census census = take_census(group, &n, &n_ejected);
    uint32_t cap = outlier_cap(&group->outlier, n);
    for (uint32_t i = 0; i < group->n; i++) {
        struct watch *watch = group->watches[i];
        struct outlier_sums sums = sums_of(watch);
        enum health_reason cause = watch_state(watch) == TARGET_ACTIVE && takes_share(watch)
                                       ? outlier_cause(&watch->outlier, &group->outlier, &sums)
                                       : HEALTH_REASON_NONE;
        struct panic_census after = census;
        if (!watch->is_backup && after.active > 0)
            after.active--, after.unhealthy++;
        if (cause == HEALTH_REASON_NONE) {
            watch->spared = WATCH_NOT_SPARED;
        } else if (n_ejected >= cap) {
            spare(watch, cause, WATCH_SPARED_BY_CAP);
        } else if (panic_is_low(&after, group->panic_threshold_pct)) {
            spare(watch, cause, WATCH_SPARED_BY_PANIC);
        } else {
            eject(watch, cause);
            census = after;
            n_ejected++;
        }
    }
    group_update(group);
}

void group_end_ejection(struct watch *watch)
{
    if (!is_ejected(watch))
        return;
    loop_timer_clear(&watch->ejection_end);
    outlier_return(&watch->outlier, watch->health->loop.now_ns);
    atomic_store_explicit(&watch->status->is_ejected, 0, memory_order_relaxed);
    group_forget_requests(watch);
}

static void on_ejection_end(struct loop *loop, struct loop_timer *timer)
{
    struct watch *watch = container_of(timer, struct watch, ejection_end);
    group_end_ejection(watch);
    /* With a failed check behind it, it has to pass healthy_threshold of them like any other. */
    if (watch->judge.failures == 0 || !watch_is_decided_by_checks(watch))
        watch_step(watch, TARGET_EVENT_RETURN, HEALTH_REASON_EJECTION_OVER);
    group_judge(watch->group); /* its place may be somebody else's now */
}

void group_note_failure(struct watch *watch)
{
    watch->has_failed_since |= is_ejected(watch);
}

/* Checks that never failed do not see what requests see: then the time decides. */
bool group_may_pass(struct watch *watch)
{
    if (is_ejected(watch) && !watch->group->outlier.checks_end_ejection && !watch->has_failed_since)
        return false;
    group_end_ejection(watch);
    return true;
}

/* ---- slow start ---- */

uint64_t group_ramp_from(const struct watch *watch)
{
    uint64_t now_ns = watch->health->loop.now_ns;
    bool is_first = atomic_load_explicit(&watch->status->transitions, memory_order_relaxed) == 0;
    bool is_founder = now_ns - watch->group->founded_ns < FOUNDING_MS * NS_PER_MS;
    return is_first && is_founder ? 0 : now_ns;
}

/* ---- the set of targets ---- */

static void on_tick(struct loop *loop, struct loop_timer *timer)
{
    struct watch_group *group = container_of(timer, struct watch_group, tick);
    for (uint32_t i = 0; i < group->n && group->has_outlier; i++) {
        struct outlier_sums sums = sums_of(group->watches[i]);
        outlier_slide(&group->watches[i]->outlier, &sums);
    }
    group_judge(group);
    group_update(group);
}

struct watch_group *group_new(struct health *health, struct slice name)
{
    struct watch_group *group = calloc(1, sizeof(*group));
    iso_assert(group != NULL);
    char *copy = strndup(name.ptr ? name.ptr : "", name.len);
    iso_assert(copy != NULL);
    group->name = slice_of(copy, name.len);
    group->health = health;
    group->founded_ns = health->loop.now_ns;
    loop_timer_init(&group->tick, on_tick);
    return group;
}

void group_set(struct watch_group *group, const struct health_spec *spec)
{
    group->has_outlier = spec->outlier != NULL && spec->runs != NULL;
    if (spec->outlier)
        group->outlier = *spec->outlier;
    group->panic_threshold_pct = spec->panic_threshold_pct;
    group->shared = spec->shared;
    group->epoch = spec->status->epoch;
}

void group_fill(struct watch_group *group, struct watch **watches, uint32_t n)
{
    group->watches = watches;
    group->n = n;
    if (group->shared)
        atomic_store_explicit(&group->shared->is_panicking, group->panic.is_on, memory_order_relaxed);
    group_update(group);
}

static void release(struct loop *loop, struct loop_deferred *deferred)
{
    struct watch_group *group = container_of(deferred, struct watch_group, release);
    free((char *)group->name.ptr);
    free(group);
}

void group_free(struct watch_group *group)
{
    loop_timer_remove(&group->health->loop, &group->tick);
    group->release.release = release;
    loop_defer(&group->health->loop, &group->release);
}

void group_set_watch(struct watch *watch, const struct health_spec *spec)
{
    watch->is_backup = spec->is_backup;
    watch->is_weightless = spec->is_weightless;
    watch->runs = spec->runs;
    watch->passive = spec->passive;
    watch->passive_stride = spec->passive_stride;
    watch->n_workers = spec->runs ? spec->n_workers : 0;
}

void group_init_watch(struct watch *watch, const struct health_spec *spec)
{
    loop_timer_init(&watch->ejection_end, on_ejection_end);
    group_set_watch(watch, spec);
    group_forget_requests(watch);
}
