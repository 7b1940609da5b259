/* SPDX-License-Identifier: Apache-2.0 */
/* /api/config: what the pool is set to; another algorithm, in force on the next decision (B2), and other
 * health checks, in force on the next cycle. Source: 001 "Configuration"; G3, G4. */
#include "onepool/handlers.h"

#include "onepool/onepool_change.h"

#include <math.h>

static void write_health(const struct config_health_check *check, struct text *out)
{
    static const char *const types[] = {[CONFIG_HEALTH_NONE] = "none",
                                        [CONFIG_HEALTH_TCP] = "tcp",
                                        [CONFIG_HEALTH_HTTP] = "http",
                                        [CONFIG_HEALTH_DEEP] = "deep",
                                        [CONFIG_HEALTH_GRPC] = "grpc"};
    text_printf(out, "\"health\":{\"type\":\"%s\",\"path\":", types[check->type]);
    if (check->path.ptr)
        text_json(out, check->path);
    else
        text_printf(out, "null");
    text_printf(out,
                ",\"interval_seconds\":%g,\"timeout_seconds\":%g,\"unhealthy_threshold\":%u,"
                "\"healthy_threshold\":%u}",
                check->interval_ms / 1000.0, check->timeout_ms / 1000.0, check->unhealthy_threshold,
                check->healthy_threshold);
}

static void write_persistence(const struct config_affinity *affinity, struct text *out)
{
    static const char *const types[] = {[CONFIG_AFFINITY_NONE] = "none",
                                        [CONFIG_AFFINITY_COOKIE] = "cookie",
                                        [CONFIG_AFFINITY_SESSION] = "session",
                                        [CONFIG_AFFINITY_CLIENT_IP] = "client_ip"};
    bool has_cookie = affinity->type == CONFIG_AFFINITY_COOKIE || affinity->type == CONFIG_AFFINITY_SESSION;
    text_printf(out, "\"session_persistence\":{\"type\":\"%s\",\"cookie\":", types[affinity->type]);
    if (has_cookie)
        text_json(out, affinity->cookie);
    else
        text_printf(out, "null");
    text_printf(out, ",\"ttl_seconds\":%g}", affinity->ttl_ms / 1000.0);
}

void api_config_get(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    struct text *out = &call->reply.body;
    if (!group)
        return;
    text_printf(out, "{\"target_group\":");
    text_json(out, group->config->name);
    text_printf(out, ",\"algorithm\":\"%s\",", group->method->name);
    write_health(&group->config->health_check, out);
    text_printf(out, ",\"drain_timeout_seconds\":%g,", group->config->deregistration_delay_ms / 1000.0);
    write_persistence(&group->config->affinity, out);
    text_printf(out, "}\n");
}

/* ---- PUT /api/config/algorithm ---- */

static bool make_algorithm(struct onepool_change *change)
{
    const struct doc_node *algorithm = onepool_body(change, "algorithm");
    if (!algorithm) {
        api_fail(change->change.call, 422, "invalid", "/algorithm", "is missing");
        return false;
    }
    return onepool_take(change, "algorithm", change->group, "algorithm");
}

static void answer_algorithm(struct onepool_change *change, const struct snap_group *group)
{
    struct text *out = &change->change.call->reply.body;
    text_printf(out, "{\"algorithm\":\"%s\",\"target_group\":", group->method->name);
    text_json(out, group->config->name);
    text_printf(out, ",\"version\":%llu}\n", (unsigned long long)change->change.version);
}

/* ---- PUT /api/config/health ---- */

/* Seconds of the body as whole milliseconds. */
static bool set_timeout(struct onepool_change *change, struct doc_node *check)
{
    const struct doc_node *field = onepool_body(change, "timeout_seconds");
    if (!field)
        return true;
    double ms = field->kind == DOC_INTEGER ? (double)field->value.integer * 1000
                : field->kind == DOC_REAL  ? field->value.real * 1000
                                           : NAN;
    if (!(ms >= 1 && ms <= 3600000))
        return onepool_refuse(change, field, "a number of seconds from 0.001 to 3600");
    const char *text = arena_printf(&change->change.call->arena, "%.0f", ms);
    return onepool_set(change, check, "timeout_ms", slice_str(text), true);
}

static bool make_health(struct onepool_change *change)
{
    struct doc_node *check = onepool_section(change, change->group, "health_check");
    return check && onepool_take(change, "type", check, "type") &&
           onepool_take(change, "path", check, "path") &&
           onepool_take(change, "interval_seconds", check, "interval_s") && set_timeout(change, check) &&
           onepool_take(change, "unhealthy_threshold", check, "unhealthy_threshold") &&
           onepool_take(change, "healthy_threshold", check, "healthy_threshold");
}

static void answer_health(struct onepool_change *change, const struct snap_group *group)
{
    struct text *out = &change->change.call->reply.body;
    text_printf(out, "{");
    write_health(&group->config->health_check, out);
    text_printf(out, ",\"target_group\":");
    text_json(out, group->config->name);
    text_printf(out, ",\"version\":%llu}\n", (unsigned long long)change->change.version);
}

static const struct onepool_field algorithm_fields[] = {{"algorithm", NULL}, {0}};
static const struct onepool_change_kind algorithm_change = {
    .fields = algorithm_fields, .make = make_algorithm, .answer = answer_algorithm};

static const struct onepool_field health_fields[] = {
    {"type", "/health_check/type"},
    {"path", "/health_check/path"},
    {"interval_seconds", "/health_check/interval_s"},
    {"timeout_seconds", "/health_check/timeout_ms"},
    {"unhealthy_threshold", "/health_check/unhealthy_threshold"},
    {"healthy_threshold", "/health_check/healthy_threshold"},
    {0}};
static const struct onepool_change_kind health_change = {
    .fields = health_fields, .make = make_health, .answer = answer_health};

void api_config_algorithm(struct api_call *call)
{
    onepool_change_submit(call, &algorithm_change);
}

void api_config_health(struct api_call *call)
{
    onepool_change_submit(call, &health_change);
}
