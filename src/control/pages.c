/* SPDX-License-Identifier: Apache-2.0 */
/* The pages that are no part of /v1: what is served here, health, metrics. They see the control_view and run
 * on the control thread, so they may walk the snapshot. */
#include "control/handlers.h"

#include "control/router.h"
#include "core/clock.h"
#include "health/states.h"
#include "metrics/metrics.h"
#include "observe/prometheus.h"
#include "onepool/onepool.h"
#include "snapshot/targets.h"
#include "upstream/departure.h"

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

static const char *method_word(enum http_method method)
{
    return method == HTTP_GET      ? "GET"
           : method == HTTP_POST   ? "POST"
           : method == HTTP_PUT    ? "PUT"
           : method == HTTP_PATCH  ? "PATCH"
           : method == HTTP_DELETE ? "DELETE"
                                   : "";
}

void page_index(struct api_call *call)
{
    struct text *out = &call->reply.body;
    api_reply_plain(call);
    text_printf(out, "isobar %s\n\n", call->view->version ? call->view->version : "");
    for (size_t i = 0; i < api_routes_n; i++)
        text_printf(out, "%-6s %s\n           %s\n", method_word(api_routes[i].method), api_routes[i].pattern,
                    api_routes[i].summary);
}

void page_healthz(struct api_call *call)
{
    const struct control_view *view = call->view;
    bool is_serving = view->snapshot && !view->is_shutting_down;
    call->reply.status = is_serving ? 200 : 503;
    api_reply_plain(call);
    text_add(&call->reply.body, is_serving               ? SLICE("ok\n")
                                : view->is_shutting_down ? SLICE("shutting down\n")
                                                         : SLICE("starting\n"));
}

void page_metrics(struct api_call *call)
{
    bool is_openmetrics = prom_wants_openmetrics(api_field(call, "accept"));
    call->reply.content_type = prom_content_type(is_openmetrics);
    metrics_write(&call->reply.body, call->view, is_openmetrics);
}

struct tally {
    uint32_t groups, healthy, total;
};

/* Of all groups, or of the one called `name` when that is set. */
static struct tally count_targets(const struct snapshot *snapshot, struct slice name)
{
    struct tally tally = {0};
    for (uint32_t g = 0; snapshot && g < snapshot->n_groups; g++) {
        const struct snap_group *group = &snapshot->groups[g];
        if (name.ptr && !slice_eq(group->config->name, name))
            continue;
        tally.groups++;
        tally.total += group->n_targets;
        for (uint32_t i = 0; i < group->n_targets; i++)
            tally.healthy += health_is_usable(&group->targets[i]->health);
    }
    return tally;
}

/* Targets that are names without an address: they are down, and no probe can say so. */
static void add_unresolved(const struct control_view *view, struct text *out)
{
    const char *joint = "";
    text_printf(out, "\"unresolved\": [");
    for (uint32_t g = 0; view->resolve && view->snapshot && g < view->snapshot->n_groups; g++) {
        const struct config_target_group *group = view->snapshot->groups[g].config;
        for (uint32_t i = 0; i < group->n_targets; i++) {
            const struct config_target *target = &group->targets[i];
            struct resolve_view found;
            if (!target_is_name(target))
                continue;
            struct resolve_name name = target_name(target);
            if (!resolve_find(view->resolve, name.kind, name.name, &found) || found.n)
                continue;
            text_printf(out, "%s{\"target_group\": ", joint);
            text_json(out, group->name);
            text_printf(out, ", \"target\": ");
            text_json(out, target->endpoint.text);
            text_printf(out, ", \"reason\": \"dns\", \"why\": ");
            text_json(out, slice_str(found.why ? found.why : ""));
            text_printf(out, "}");
            joint = ", ";
        }
    }
    text_printf(out, "]");
}

static void add_draining_one(struct text *out, const struct backend *backend, struct slice group)
{
    const struct health_status *health = &backend->health;
    text_printf(out, "{\"target_group\": ");
    text_json(out, group);
    text_printf(out, ", \"target\": ");
    text_json(out, slice_str(backend->name));
    text_printf(out, ", \"state\": \"%s\", \"reason\": \"%s\", \"active_connections\": %u, \"until\": ",
                target_state_word(LOAD(health->state)), health_reason_word(LOAD(health->reason)),
                LOAD(backend->in_flight));
    onepool_write_time(out, backend->drain_until_wall_ns / NS_PER_MS);
    text_printf(out, "}");
}

/* Targets that were removed, or disabled, and still have work. */
static void add_draining(const struct control_view *view, struct text *out)
{
    const char *joint = "";
    text_printf(out, "\"draining\": [");
    for (const struct departure *one = view->departures ? view->departures->first : NULL; one;
         one = one->next) {
        text_printf(out, "%s", joint);
        add_draining_one(out, one->backend, slice_str(one->backend->group_name));
        joint = ", ";
    }
    for (uint32_t g = 0; view->snapshot && g < view->snapshot->n_groups; g++)
        for (uint32_t t = 0; t < view->snapshot->groups[g].n_targets; t++) {
            const struct backend *backend = view->snapshot->groups[g].targets[t];
            if (!backend->drain_until_wall_ns || LOAD(backend->in_flight) == 0)
                continue;
            text_printf(out, "%s", joint);
            add_draining_one(out, backend, view->snapshot->groups[g].config->name);
            joint = ", ";
        }
    text_printf(out, "], ");
}

/* Source: G4; 001 "GET /api/health". A node alone is the primary. */
void page_api_health(struct api_call *call)
{
    struct slice name = {0};
    const struct control_view *view = call->view;
    bool has_name = api_query(call, "target_group", &name);
    struct tally tally = count_targets(view->snapshot, has_name ? name : (struct slice){0});
    if (has_name && tally.groups == 0) {
        api_fail(call, 404, "not_found", "target_group", "there is no target group of this name");
        return;
    }
    bool is_healthy = view->snapshot && !view->is_shutting_down;
    call->reply.status = is_healthy ? 200 : 503;
    text_printf(&call->reply.body,
                "{\"healthy\": %s, \"role\": \"primary\", \"healthy_backends\": %u, \"total_backends\": %u, "
                "\"version\": %llu, ",
                is_healthy ? "true" : "false", tally.healthy, tally.total,
                (unsigned long long)(view->snapshot ? view->snapshot->version : 0));
    add_draining(view, &call->reply.body);
    add_unresolved(view, &call->reply.body);
    text_printf(&call->reply.body, "}\n");
}
