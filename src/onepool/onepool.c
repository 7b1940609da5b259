/* SPDX-License-Identifier: Apache-2.0 */
#include "onepool/onepool.h"

#include "api/page.h"
#include "core/clock.h"
#include "health/states.h"
#include "snapshot/targets.h"
#include "upstream/departure.h"

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

/* Where an earlier snapshot, under which requests still run, has the target. */
static bool find_retired(const struct snapshot *snapshot, const struct backend *backend,
                         struct onepool_server *server)
{
    for (; snapshot; snapshot = snapshot->next)
        for (uint32_t g = 0; g < snapshot->n_groups; g++) {
            const struct snap_group *group = &snapshot->groups[g];
            for (uint32_t i = 0;
                 slice_eq(group->config->name, slice_str(backend->group_name)) && i < group->n_targets; i++)
                if (group->targets[i] == backend) {
                    *server = (struct onepool_server){group, &group->settings[i], group->targets[i], true};
                    return true;
                }
        }
    return false;
}

static bool is_leaving(const struct departure *departure, const struct snap_group *group)
{
    return slice_eq(slice_str(departure->backend->group_name), group->config->name) &&
           LOAD(departure->backend->in_flight) > 0;
}

uint32_t onepool_servers(struct api_call *call, const struct snap_group *group, struct onepool_server **out)
{
    const struct control_view *view = call->view;
    const struct departure *first = view->departures ? view->departures->first : NULL;
    uint32_t n = group->n_targets, n_leaving = 0;
    for (const struct departure *one = first; one; one = one->next)
        n_leaving += is_leaving(one, group);
    struct onepool_server *servers = arena_array(&call->arena, struct onepool_server, n + n_leaving + 1);
    for (uint32_t i = 0; i < n; i++)
        servers[i] = (struct onepool_server){group, &group->settings[i], group->targets[i], false};
    for (const struct departure *one = first; one; one = one->next)
        if (n < group->n_targets + n_leaving && is_leaving(one, group) &&
            find_retired(view->retired, one->backend, &servers[n]))
            n++;
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
        api_write_time(out, wall_ms);
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
