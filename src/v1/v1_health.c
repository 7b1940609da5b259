/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a group's targets. Source: 000 "API"; G5. */
#include "v1/handlers.h"

#include "core/clock.h"
#include "v1/v1.h"

static const struct snap_group *find_group(const struct snapshot *snapshot, struct slice name)
{
    for (uint32_t g = 0; snapshot && g < snapshot->n_groups; g++)
        if (slice_eq(snapshot->groups[g].config->name, name))
            return &snapshot->groups[g];
    return NULL;
}

static const char *state_word(enum target_state state)
{
    switch (state) {
    case TARGET_ACTIVE:
        return "healthy";
    case TARGET_UNHEALTHY:
        return "unhealthy";
    case TARGET_DRAINING:
        return "draining";
    case TARGET_PENDING:
        return "pending";
    case TARGET_REMOVED:
    case TARGET_STATE_COUNT:
        return "removed";
    }
    iso_unreachable("state of a target");
}

static void write_when(struct text *out, const char *name, uint64_t wall_ns)
{
    text_printf(out, ",\"%s\":", name);
    if (wall_ns)
        api_write_time(out, wall_ns / NS_PER_MS);
    else
        text_add(out, SLICE("null"));
}

/* A target that is well has no reason. */
static void write_target(struct text *out, const struct backend *backend, enum target_state state)
{
    struct health_status *health = (struct health_status *)&backend->health;
    enum health_reason reason =
        (enum health_reason)atomic_load_explicit(&health->reason, memory_order_relaxed);
    text_add(out, out->len > 1 ? SLICE(",{\"target\":") : SLICE("{\"target\":"));
    text_json(out, slice_str(backend->name));
    text_printf(out, ",\"state\":\"%s\",\"reason\":", state_word(state));
    if (state == TARGET_ACTIVE || reason == HEALTH_REASON_NONE)
        text_add(out, SLICE("null"));
    else
        text_json(out, slice_str(health_reason_word(reason)));
    text_printf(out, ",\"in_flight\":%u",
                atomic_load_explicit(&((struct backend *)backend)->in_flight, memory_order_relaxed));
    write_when(out, "since", atomic_load_explicit(&health->changed_wall_ns, memory_order_relaxed));
    write_when(out, "last_check", atomic_load_explicit(&health->checked_wall_ns, memory_order_relaxed));
    text_add(out, SLICE("}"));
}

static bool has_target(const struct snap_group *group, const struct backend *backend)
{
    for (uint32_t t = 0; t < group->n_targets; t++)
        if (group->targets[t] == backend)
            return true;
    return false;
}

/* Those that left and still do something are in a snapshot that somebody still uses. */
static void write_leaving(struct text *out, const struct snapshot *retired, const struct snap_group *now)
{
    for (; retired; retired = retired->next) {
        const struct snap_group *old = find_group(retired, now->config->name);
        for (uint32_t t = 0; old && t < old->n_targets; t++) {
            struct backend *backend = old->targets[t];
            bool is_shown = has_target(now, backend);
            for (const struct snapshot *newer = retired->next; newer && !is_shown; newer = newer->next) {
                const struct snap_group *group = find_group(newer, now->config->name);
                is_shown = group && has_target(group, backend);
            }
            if (!is_shown && atomic_load_explicit(&backend->in_flight, memory_order_relaxed) > 0)
                write_target(out, backend, TARGET_DRAINING);
        }
    }
}

void v1_health(struct api_call *call)
{
    struct text *out = &call->reply.body;
    struct slice wanted = {0};
    const struct snap_group *group = find_group(call->view->snapshot, call->params[0]);
    if (!group) {
        api_fail(call, 404, "not_found", "", "there is no target_group \"%.*s\"", SLICE_ARG(call->params[0]));
        return;
    }
    bool has_filter = api_query(call, "state", &wanted);
    text_add(out, SLICE("["));
    for (uint32_t t = 0; t < group->n_targets; t++) {
        enum target_state state =
            (enum target_state)atomic_load_explicit(&group->targets[t]->health.state, memory_order_relaxed);
        if (!has_filter || slice_eq(wanted, slice_str(state_word(state))))
            write_target(out, group->targets[t], state);
    }
    if (!has_filter || slice_eq(wanted, SLICE("draining")))
        write_leaving(out, call->view->retired, group);
    text_add(out, SLICE("]\n"));
}
