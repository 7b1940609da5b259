/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/config: what the pool is set to. Source: 001 "Configuration"; G3, G4. */
#include "control/api_pool.h"
#include "control/handlers.h"

static void write_health(const struct config_health_check *check, struct text *out)
{
    static const char *const types[] = {[CONFIG_HEALTH_NONE] = "none",
                                        [CONFIG_HEALTH_TCP] = "tcp",
                                        [CONFIG_HEALTH_HTTP] = "http",
                                        [CONFIG_HEALTH_DEEP] = "deep"};
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
    const struct snap_group *group = pool_group(call);
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
