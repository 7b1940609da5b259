/* SPDX-License-Identifier: Apache-2.0 */
#include "process/watched.h"

/* Checks of a target that has a name ask for that, unless the operator says what to ask for (C-092). */
static const struct config_health_check *check_of(const struct config_health_check *check,
                                                  const struct config_target *target, struct arena *arena)
{
    if (check->host.ptr || !target->host.ptr)
        return check;
    struct config_health_check *own = arena_new(arena, struct config_health_check);
    *own = *check;
    own->host = slice_str(arena_printf(arena, "%.*s:%u", SLICE_ARG(target->host), target->endpoint.port));
    return own;
}

/* Groups whose targets are watched anew, and their targets; the others stay as they are. */
struct watched {
    struct arena arena;
    struct slice *groups;
    uint32_t n_groups;
    struct health_spec *specs;
    uint32_t n;
};

static void add_group(struct watched *watched, const struct snap_group *group,
                      const struct snapshot *unless_in)
{
    struct arena *arena = &watched->arena;
    watched->groups[watched->n_groups++] = slice_str(group->runtime->name);
    for (uint32_t t = 0; t < group->n_targets; t++) {
        const struct config_target *target = &group->settings[t];
        struct backend *backend = group->targets[t];
        if (unless_in && snapshot_has_backend(unless_in, backend))
            continue;
        watched->specs[watched->n++] =
            (struct health_spec){.group = slice_str(backend->group_name),
                                 .name = slice_str(backend->name),
                                 .addr = backend->addr,
                                 .check = check_of(&group->config->health_check, target, arena),
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

static void begin_watched(struct watched *watched, const struct snapshot *now, const struct snapshot *old)
{
    uint32_t n = 0, n_groups = now->n_groups + (old ? old->n_groups : 0);
    *watched = (struct watched){0};
    arena_init(&watched->arena);
    for (uint32_t g = 0; g < now->n_groups; g++)
        n += old && now->groups[g].same_as == old->stamp ? 0 : now->groups[g].n_targets;
    for (uint32_t g = 0; old && g < old->n_groups; g++)
        n += snapshot_has_shape(now, &old->groups[g]) ? 0 : old->groups[g].n_targets;
    watched->groups = arena_array(&watched->arena, struct slice, n_groups + 1);
    watched->specs = arena_array(&watched->arena, struct health_spec, n + 1);
}

void watched_apply(struct health *health, const struct snapshot *now, const struct snapshot *old,
                   bool with_leaving)
{
    struct watched watched;
    begin_watched(&watched, now, old);
    for (uint32_t g = 0; g < now->n_groups; g++)
        if (!old || now->groups[g].same_as != old->stamp)
            add_group(&watched, &now->groups[g], NULL);
    for (uint32_t g = 0; old && g < old->n_groups; g++) {
        if (snapshot_has_shape(now, &old->groups[g]))
            continue;
        uint32_t before = watched.n;
        add_group(&watched, &old->groups[g], now);
        if (!with_leaving)
            watched.n = before;
    }
    if (old)
        health_apply_groups(health, watched.groups, watched.n_groups, watched.specs, watched.n);
    else
        health_apply(health, watched.specs, watched.n);
    arena_fini(&watched.arena);
}
