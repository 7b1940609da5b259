/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/metrics: the pool's rates of this moment and the last hour in steps of ten seconds, in all and by
 * server. Source: 001 "Monitoring"; G4. */
#include "onepool/handlers.h"

#include "onepool/onepool.h"

static void write_now(struct api_call *call, const struct snap_group *group, struct text *out)
{
    struct history_totals totals;
    struct history_point now = onepool_recent(call, group, NULL, &totals);
    text_printf(out,
                "\"total_requests\":%llu,\"total_requests_per_sec\":%.2f,\"active_connections\":%u,"
                "\"error_rate\":%.4f,\"average_latency_ms\":%.3f,\"requests_by_server\":{",
                (unsigned long long)totals.requests, onepool_rate(&now), totals.active,
                onepool_error_rate(&now), (double)now.latency_ms);
    for (uint32_t i = 0; i < group->n_targets; i++) {
        now = onepool_recent(call, group, group->targets[i], &totals);
        text_printf(out, "%s", i ? "," : "");
        text_json(out, group->settings[i].endpoint.text);
        text_printf(out,
                    ":{\"total_requests\":%llu,\"requests_per_sec\":%.2f,\"active_connections\":%u,"
                    "\"error_rate\":%.4f,\"average_latency_ms\":%.3f}",
                    (unsigned long long)totals.requests, onepool_rate(&now), totals.active,
                    onepool_error_rate(&now), (double)now.latency_ms);
    }
    text_printf(out, "}");
}

static void write_points(const struct history *history, const struct history_series *series, struct text *out)
{
    uint32_t n = series ? history_steps(series) : 0;
    text_printf(out, "\"points\":[");
    for (uint32_t i = 0; i < n; i++) {
        struct history_point point = history_step(history, series, i);
        text_printf(out, "%s{\"time\":", i ? "," : "");
        onepool_write_time(out, point.end_wall_ms);
        text_printf(out,
                    ",\"requests_per_sec\":%.2f,\"active_connections\":%u,\"error_rate\":%.4f,"
                    "\"average_latency_ms\":%.3f}",
                    onepool_rate(&point), point.active, onepool_error_rate(&point), (double)point.latency_ms);
    }
    text_printf(out, "]");
}

/* Requests a second of each server; the last number stands beside the last point, and one that came later has
 * fewer. */
static void write_by_server(const struct history *history, const struct snap_group *group, struct text *out)
{
    char name[RECORDER_NAME_MAX];
    text_printf(out, ",\"requests_by_server\":{");
    for (uint32_t i = 0; i < group->n_targets; i++) {
        const struct history_series *series =
            history_find(history, recorder_name(group, group->targets[i], name));
        text_printf(out, "%s", i ? "," : "");
        text_json(out, group->settings[i].endpoint.text);
        text_printf(out, ":[");
        for (uint32_t step = 0; series && step < history_steps(series); step++) {
            struct history_point point = history_step(history, series, step);
            text_printf(out, "%s%.2f", step ? "," : "", onepool_rate(&point));
        }
        text_printf(out, "]");
    }
    text_printf(out, "}");
}

void api_metrics(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    const struct history *history = call->view->history;
    struct text *out = &call->reply.body;
    char name[RECORDER_NAME_MAX];
    struct slice wish;
    if (!group)
        return;
    text_printf(out, "{\"target_group\":");
    text_json(out, group->config->name);
    text_printf(out, ",");
    write_now(call, group, out);
    if (api_query(call, "history", &wish) && slice_eq(wish, SLICE("false"))) {
        text_printf(out, "}\n");
        return;
    }
    text_printf(out, ",\"history\":{\"step_seconds\":%d,", HISTORY_STEP_S);
    if (history) {
        write_points(history, history_find(history, recorder_name(group, NULL, name)), out);
        write_by_server(history, group, out);
    } else {
        text_printf(out, "\"points\":[],\"requests_by_server\":{}");
    }
    text_printf(out, "}}\n");
}
