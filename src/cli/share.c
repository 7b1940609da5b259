/* SPDX-License-Identifier: Apache-2.0 */
/* The shared state as a configuration asks for it: the thread is started with the first one that names a
 * server and stays; each snapshot's groups are told of it before workers see them. */
#include "cli/process_internal.h"

#include "core/log.h"
#include "health/states.h"

#include <stdlib.h>

static bool has_sessions(const struct snap_group *group)
{
    return group->runtime->sessions != NULL && group->affinity != NULL;
}

static uint32_t list_tables(const struct snapshot *snapshot, struct shared_table *tables)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        if (has_sessions(group))
            tables[n++] = (struct shared_table){group->config->name, group->runtime->sessions,
                                                group->runtime->session_salt};
    }
    return n;
}

static uint32_t list_limiters(const struct snapshot *snapshot, struct limiter **limiters)
{
    uint32_t n = 0;
    for (uint32_t l = 0; l < snapshot->n_listeners; l++)
        for (uint32_t i = 0; i < snapshot->listeners[l].n_limits; i++) {
            if (limiters && snapshot->listeners[l].limits[i].config->scope == CONFIG_LIMIT_FLEET)
                limiters[n] = snapshot->listeners[l].limits[i].runtime->limiter;
            n += snapshot->listeners[l].limits[i].config->scope == CONFIG_LIMIT_FLEET;
        }
    return n;
}

/* As sources and operators call it. */
static const char *status_word(uint32_t state)
{
    return state == TARGET_ACTIVE ? "healthy" : target_state_word((enum target_state)state);
}

static uint32_t list_targets(const struct snapshot *snapshot, struct roster_target *targets)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        for (uint32_t t = 0; t < group->n_targets; t++, n++)
            if (targets)
                targets[n] =
                    (struct roster_target){.group = group->config->name,
                                           .name = slice_str(group->targets[t]->name),
                                           .weight = group->config->targets[t].weight,
                                           .state = &group->targets[t]->health.state,
                                           .checked_wall_ns = &group->targets[t]->health.checked_wall_ns,
                                           .accusers = &group->targets[t]->health.accusers,
                                           .arg = &group->targets[t]->health};
    }
    return n;
}

static void tell_snapshot(struct snapshot *snapshot, struct shared_state *shared)
{
    for (uint32_t g = 0; g < snapshot->n_groups; g++)
        if (has_sessions(&snapshot->groups[g]))
            snapshot->groups[g].shared = shared;
    for (uint32_t l = 0; l < snapshot->n_listeners; l++)
        for (uint32_t i = 0; i < snapshot->listeners[l].n_limits; i++)
            if (snapshot->listeners[l].limits[i].config->scope == CONFIG_LIMIT_FLEET)
                snapshot->listeners[l].limits[i].shared = shared;
}

void share_apply(struct process *process, struct snapshot *snapshot)
{
    const struct config_shared_state *config = &snapshot->config->shared_state;
    const struct redis_url *server = &config->server;
    if (config->set && !process->shared && shared_state_start(&process->shared))
        log_error("shared state: the thread could not be started; sessions are kept in memory");
    if (!process->shared)
        return;
    struct shared_options options = {.host = server->host,
                                     .port = server->port,
                                     .user = server->user,
                                     .password = server->password,
                                     .db = server->db,
                                     .timeout_ms = config->timeout_ms,
                                     .tls = snapshot->shared_tls};
    struct shared_table *tables = calloc(snapshot->n_groups + 1, sizeof(*tables));
    struct limiter **limiters = calloc(list_limiters(snapshot, NULL) + 1, sizeof(struct limiter *));
    struct roster_target *targets = calloc(list_targets(snapshot, NULL) + 1, sizeof(*targets));
    iso_assert(tables && limiters && targets);
    const struct shared_objects objects = {.tables = tables,
                                           .n_tables = list_tables(snapshot, tables),
                                           .limiters = limiters,
                                           .n_limiters = list_limiters(snapshot, limiters),
                                           .targets = targets,
                                           .n_targets = list_targets(snapshot, targets),
                                           .words = {.of_state = status_word, .suspect = health_suspect}};
    shared_state_apply(process->shared, config->set ? &options : NULL, &objects);
    free(tables);
    free(limiters);
    free(targets);
    if (config->set)
        tell_snapshot(snapshot, process->shared);
    process->view.shared = process->shared;
}
