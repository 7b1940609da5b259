/* SPDX-License-Identifier: Apache-2.0 */
#include "control/onepool.h"

#include "control/v1.h"
#include "core/clock.h"
#include "health/states.h"
#include "proxy/targets.h"

#include <stdio.h>

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

const struct snap_group *onepool_group(struct api_call *call)
{
    const struct snapshot *snapshot = call->view->snapshot;
    struct slice name;
    bool is_named = api_query(call, "target_group", &name);
    if (!snapshot) {
        api_fail(call, 503, "starting", "", "no configuration is in force yet");
        return NULL;
    }
    for (uint32_t g = 0; g < snapshot->n_groups; g++)
        if (!is_named || slice_eq(snapshot->groups[g].config->name, name))
            return &snapshot->groups[g];
    if (is_named)
        api_fail(call, 404, "not_found", "target_group", "there is no target group \"%.*s\"",
                 SLICE_ARG(name));
    else
        api_fail(call, 404, "not_found", "", "there is no target group");
    return NULL;
}

static bool has_backend(const struct snap_group *group, const struct backend *backend)
{
    for (uint32_t i = 0; i < group->n_targets; i++)
        if (group->targets[i] == backend)
            return true;
    return false;
}

static bool is_listed(const struct onepool_server *servers, uint32_t n, const struct backend *backend)
{
    for (uint32_t i = 0; i < n; i++)
        if (servers[i].backend == backend)
            return true;
    return false;
}

/* Of an earlier snapshot, under which requests still run: the targets of the group of this name that the
 * current one lacks and that are at work. */
static uint32_t add_leaving(const struct snapshot *snapshot, const struct snap_group *now,
                            struct onepool_server *servers, uint32_t n_leaving)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < snapshot->n_groups; g++) {
        const struct snap_group *old = &snapshot->groups[g];
        if (old->runtime != now->runtime)
            continue;
        for (uint32_t i = 0; i < old->n_targets; i++) {
            struct backend *backend = old->targets[i];
            if (LOAD(backend->in_flight) == 0 || has_backend(now, backend) ||
                is_listed(servers, n_leaving + n, backend))
                continue;
            if (servers)
                servers[n_leaving + n] = (struct onepool_server){old, &old->settings[i], backend, true};
            n++;
        }
    }
    return n;
}

static uint32_t most_leaving(const struct control_view *view, const struct snap_group *now)
{
    uint32_t n = 0;
    for (const struct snapshot *old = view->retired; old; old = old->next)
        for (uint32_t g = 0; g < old->n_groups; g++)
            n += old->groups[g].runtime == now->runtime ? old->groups[g].n_targets : 0;
    return n;
}

uint32_t onepool_servers(struct api_call *call, const struct snap_group *group, struct onepool_server **out)
{
    const struct control_view *view = call->view;
    uint32_t most = view->retired ? most_leaving(view, group) : 0, n_leaving = 0;
    struct onepool_server *leaving = arena_array(&call->arena, struct onepool_server, most + 1);
    for (const struct snapshot *old = view->retired; old; old = old->next)
        n_leaving += add_leaving(old, group, leaving, n_leaving);
    uint32_t n = group->n_targets + n_leaving;
    struct onepool_server *servers = arena_array(&call->arena, struct onepool_server, n + 1);
    for (uint32_t i = 0; i < group->n_targets; i++)
        servers[i] = (struct onepool_server){group, &group->settings[i], group->targets[i], false};
    memcpy(servers + group->n_targets, leaving, n_leaving * sizeof(*leaving));
    *out = servers;
    return n;
}

/* One of the addresses that a name in the configuration stands for, asked for by that name. */
static bool is_of_name(const struct config_target *target, struct slice name)
{
    struct slice id = target->endpoint.text;
    char port[8];
    if (!target_is_name(target) || !slice_starts(name, slice_of(id.ptr, slice_find(id, '/'))))
        return false;
    struct slice behind = slice_of(name.ptr + slice_find(id, '/'), name.len - slice_find(id, '/'));
    snprintf(port, sizeof(port), ":%u", target->endpoint.port);
    return target->host.ptr ? slice_eq(behind, slice_str(port)) : behind.len == 0;
}

const struct onepool_server *onepool_server_named(struct api_call *call, const struct snap_group *group,
                                                  struct slice id)
{
    struct onepool_server *servers;
    uint32_t n = onepool_servers(call, group, &servers);
    for (uint32_t i = 0; i < n; i++)
        if (slice_eq(servers[i].config->endpoint.text, id))
            return &servers[i];
    for (uint32_t i = 0; i < n; i++)
        if (is_of_name(servers[i].config, id))
            return &servers[i];
    api_fail(call, 404, "not_found", "server_id", "target group %.*s has no server \"%.*s\"",
             SLICE_ARG(group->config->name), SLICE_ARG(id));
    return NULL;
}

const char *onepool_status(const struct onepool_server *server)
{
    enum target_state state = server->is_leaving ? TARGET_DRAINING : LOAD(server->backend->health.state);
    return state == TARGET_ACTIVE      ? "healthy"
           : state == TARGET_UNHEALTHY ? "unhealthy"
                                       : target_state_word(state);
}

struct history_point onepool_recent(const struct api_call *call, const struct snap_group *group,
                                    const struct backend *target, struct history_totals *totals)
{
    char name[RECORDER_NAME_MAX];
    const struct history *history = call->view->history;
    if (target)
        recorder_target_totals(target, totals);
    else
        recorder_group_totals(group, totals);
    const struct history_series *series =
        history ? history_find(history, recorder_name(group, target, name)) : NULL;
    if (!series)
        return (struct history_point){.active = totals->active};
    return history_recent(history, series, totals, clock_mono_ns() / NS_PER_MS);
}

double onepool_rate(const struct history_point *point)
{
    return point->span_ms ? point->requests * 1000.0 / point->span_ms : 0;
}

double onepool_error_rate(const struct history_point *point)
{
    return point->requests ? (double)point->errors / point->requests : 0;
}

void onepool_write_time(struct text *out, uint64_t wall_ms)
{
    if (wall_ms)
        v1_write_time(out, wall_ms);
    else
        text_add(out, SLICE("null"));
}

/* A tag with a value is a key of its own; those without are the list "tags". */
static void write_metadata(const struct config_target *target, struct text *out)
{
    const char *joint = "";
    text_printf(out, "\"metadata\":{");
    for (uint32_t i = 0; i < target->n_tags; i++) {
        if (target->tags[i].value.len == 0)
            continue;
        text_printf(out, "%s", joint);
        text_json(out, target->tags[i].name);
        text_printf(out, ":");
        text_json(out, target->tags[i].value);
        joint = ",";
    }
    text_printf(out, "%s\"tags\":[", joint);
    joint = "";
    for (uint32_t i = 0; i < target->n_tags; i++) {
        if (target->tags[i].value.len)
            continue;
        text_printf(out, "%s", joint);
        text_json(out, target->tags[i].name);
        joint = ",";
    }
    text_printf(out, "]}");
}

void onepool_write_server(const struct api_call *call, const struct onepool_server *server, struct text *out)
{
    struct history_totals totals;
    const struct health_status *health = &server->backend->health;
    struct history_point recent = onepool_recent(call, server->group, server->backend, &totals);
    const char *status = onepool_status(server);
    text_printf(out, "{\"server_id\":");
    text_json(out, server->config->endpoint.text);
    text_printf(out, ",\"address\":");
    text_json(out, server->config->endpoint.text);
    text_printf(out,
                ",\"status\":\"%s\",\"health\":\"%s\",\"enabled\":%s,\"backup\":%s,\"weight\":%u,"
                "\"active_connections\":%u,\"total_requests\":%llu,\"requests_per_sec\":%.2f,"
                "\"error_rate\":%.4f,\"average_latency_ms\":%.3f,\"last_health_check\":",
                status, status, server->config->enabled && !server->is_leaving ? "true" : "false",
                server->config->backup ? "true" : "false", server->config->weight, totals.active,
                (unsigned long long)totals.requests, onepool_rate(&recent), onepool_error_rate(&recent),
                (double)recent.latency_ms);
    onepool_write_time(out, LOAD(((struct health_status *)health)->checked_wall_ns) / NS_PER_MS);
    text_printf(out, ",\"last_health_check_result\":\"%s\",",
                health_reason_word(LOAD(((struct health_status *)health)->last_reason)));
    write_metadata(server->config, out);
    text_printf(out, "}");
}
