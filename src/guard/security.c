/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/security.h"

static void put(struct snap_listener *listener, struct slice name, struct slice value)
{
    listener->security[listener->n_security++] = (struct h1_pair){name, value};
}

void security_build(struct snapshot *snapshot, struct snap_listener *listener)
{
    const struct config_listener *config = listener->config;
    const struct config_hsts *hsts = &config->hsts;
    listener->security = arena_array(&snapshot->arena, struct h1_pair, SECURITY_FIELDS_MAX);
    if (hsts->set)
        put(listener, SLICE("Strict-Transport-Security"),
            slice_str(arena_printf(&snapshot->arena, "max-age=%u%s%s", hsts->max_age_s,
                                   hsts->include_subdomains ? "; includeSubDomains" : "",
                                   hsts->preload ? "; preload" : "")));
    if (!config->security_headers)
        return;
    put(listener, SLICE("X-Content-Type-Options"), SLICE("nosniff"));
    put(listener, SLICE("X-Frame-Options"), SLICE("SAMEORIGIN"));
    put(listener, SLICE("Referrer-Policy"), SLICE("strict-origin-when-cross-origin"));
}

bool security_add(const struct snap_listener *listener, struct http_message *msg)
{
    for (uint32_t i = 0; i < listener->n_security; i++) {
        const struct h1_pair *field = &listener->security[i];
        if (!http_message_find_name(msg, field->name) && !http_message_add(msg, field->name, field->value))
            return false;
    }
    return true;
}
