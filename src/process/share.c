/* SPDX-License-Identifier: Apache-2.0 */
/* The shared state as a configuration asks for it: the thread is started with the first one that names a
 * server and stays; each snapshot's groups are told of it before workers see them. */
#include "process/process_internal.h"

#include "core/log.h"
#include "health/states.h"

#include <stdio.h>
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

enum { TAGS_MAX = 1024 };

/* As sources and operators call it. */
static const char *status_word(uint32_t state)
{
    return state == TARGET_ACTIVE ? "healthy" : target_state_word((enum target_state)state);
}

/* As ?tags= of the API takes them; what is beyond TAGS_MAX is left out. */
static struct slice tags_of(const struct config_target *target, struct arena *arena)
{
    char text[TAGS_MAX];
    size_t len = 0;
    for (uint32_t i = 0; i < target->n_tags; i++) {
        const struct config_pair *tag = &target->tags[i];
        int n = snprintf(text + len, sizeof(text) - len, "%s%.*s%s%.*s", len ? "," : "", SLICE_ARG(tag->name),
                         tag->value.len ? "=" : "", SLICE_ARG(tag->value));
        if (n < 0 || len + (size_t)n >= sizeof(text))
            break;
        len += (size_t)n;
    }
    return arena_slice(arena, slice_of(text, len));
}

/* How many there are; `targets` NULL: only that. */
static uint32_t list_targets(const struct snapshot *snapshot, struct roster_target *targets,
                             struct arena *arena)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        for (uint32_t t = 0; t < group->n_targets; t++, n++)
            if (targets)
                targets[n] =
                    (struct roster_target){.group = group->config->name,
                                           .name = slice_str(group->targets[t]->name),
                                           .tags = tags_of(&group->config->targets[t], arena),
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
    struct roster_target *targets = calloc(list_targets(snapshot, NULL, NULL) + 1, sizeof(*targets));
    iso_assert(tables && limiters && targets);
    struct arena arena;
    arena_init(&arena);
    const struct shared_objects objects = {.tables = tables,
                                           .n_tables = list_tables(snapshot, tables),
                                           .limiters = limiters,
                                           .n_limiters = list_limiters(snapshot, limiters),
                                           .targets = targets,
                                           .n_targets = list_targets(snapshot, targets, &arena),
                                           .words = {.of_state = status_word, .suspect = health_suspect}};
    shared_state_apply(process->shared, config->set ? &options : NULL, &objects);
    free(tables);
    free(limiters);
    free(targets);
    arena_fini(&arena);
    if (config->set)
        tell_snapshot(snapshot, process->shared);
    process->view.shared = process->shared;
}
