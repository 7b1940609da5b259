/* SPDX-License-Identifier: Apache-2.0 */
/* POST, PUT and DELETE of /api/servers. A new server is pending until its checks pass; one that is disabled
 * or removed gets no new requests and finishes what it has, and the answer does not wait for that. Source:
 * 001 "API design"; G3, E1. */
#include "onepool/handlers.h"

#include "config/endpoint.h"
#include "onepool/onepool_change.h"

/* {"datacenter": "eu", "version": 2, "tags": ["canary"]}: keys and tags together are the target's tags. */
static bool set_metadata(struct onepool_change *change, struct doc_node *target)
{
    const struct doc_node *metadata = onepool_body(change, "metadata");
    struct doc_edit *edit = &change->change.edit;
    if (!metadata)
        return true;
    if (metadata->kind != DOC_MAP)
        return onepool_refuse(change, metadata, "an object");
    struct doc_node *tags = doc_new(edit->doc, DOC_MAP);
    if (!tags)
        return false;
    for (const struct doc_node *entry = metadata->first; entry; entry = entry->next) {
        if (slice_eq(entry->key, SLICE("tags"))) {
            if (entry->kind != DOC_LIST)
                return onepool_refuse(change, entry, "a list of texts");
            for (const struct doc_node *tag = entry->first; tag; tag = tag->next)
                if (tag->kind != DOC_STRING || tag->text.len == 0)
                    return onepool_refuse(change, tag, "a text");
                else if (!onepool_set(change, tags, arena_slice(&edit->doc->arena, tag->text).ptr, SLICE(""),
                                      false))
                    return false;
        } else if (entry->kind == DOC_LIST || entry->kind == DOC_MAP || entry->kind == DOC_NULL) {
            return onepool_refuse(change, entry, "a text");
        } else if (!onepool_set(change, tags, arena_slice(&edit->doc->arena, entry->key).ptr, entry->text,
                                false)) {
            return false;
        }
    }
    const struct doc_node *old = doc_get(target, "tags");
    if (!old || !doc_eq(old, tags))
        doc_edit_set(edit, target, "tags", tags);
    return true;
}

static bool set_common(struct onepool_change *change, struct doc_node *target)
{
    return onepool_take(change, "weight", target, "weight") &&
           onepool_take(change, "enabled", target, "enabled") &&
           onepool_take(change, "backup", target, "backup") && set_metadata(change, target);
}

static void answer_server(struct onepool_change *change, const struct snap_group *group)
{
    struct api_call *call = change->change.call;
    struct text *out = &call->reply.body;
    const struct onepool_server *server = onepool_server_named(call, group, change->server_id);
    if (server) {
        onepool_write_server(call, server, out);
        text_printf(out, "\n");
        return;
    }
    /* A name that has no address now. */
    out->len = 0;
    call->reply.status = 200;
    text_printf(out, "{\"server_id\":");
    text_json(out, change->server_id);
    text_printf(out, ",\"status\":\"unresolved\"}\n");
}

/* ---- POST ---- */

static bool set_address(struct onepool_change *change, struct doc_node *target)
{
    const struct config_endpoint *address = &change->address;
    char text[IP_TEXT_MAX];
    struct arena *arena = &change->change.call->arena;
    if (address->unix_path.ptr)
        return onepool_set(change, target, "unix", address->unix_path, false);
    return onepool_set(change, target, "ip", slice_of(text, ip_print(&address->ip, text)), false) &&
           onepool_set(change, target, "port", slice_str(arena_printf(arena, "%u", address->port)), true);
}

static bool read_address(struct onepool_change *change)
{
    struct api_call *call = change->change.call;
    const struct doc_node *field = onepool_body(change, "address");
    const char *why = "";
    if (!field) {
        api_fail(call, 422, "invalid", "/address", "is missing, expected \"IP:PORT\"");
        return false;
    }
    if (field->kind != DOC_STRING)
        return onepool_refuse(change, field, "a text such as \"10.0.0.1:8080\"");
    if (!endpoint_parse(arena_slice(&call->arena, field->text), &change->address, &why) ||
        (!change->address.unix_path.ptr && (change->address.port == 0 || change->address.ip.family == 0))) {
        api_fail(call, 422, "invalid", "/address",
                 "is %s, expected \"IP:PORT\" such as \"10.0.0.1:8080\"%s%s",
                 doc_describe(field, &call->arena), why[0] ? ": " : "", why);
        return false;
    }
    endpoint_name(&change->address, &call->arena);
    change->server_id = change->address.text;
    return true;
}

static bool has_server(const struct onepool_change *change)
{
    const struct config *config = document_config(change->change.document);
    for (uint32_t g = 0; g < config->n_target_groups; g++) {
        const struct config_target_group *group = &config->target_groups[g];
        for (uint32_t i = 0; i < group->n_targets && slice_eq(group->name, change->group_name); i++)
            if (slice_eq(group->targets[i].endpoint.text, change->server_id))
                return true;
    }
    return false;
}

static bool make_new(struct onepool_change *change)
{
    struct api_call *call = change->change.call;
    struct doc_edit *edit = &change->change.edit;
    if (!read_address(change))
        return false;
    if (has_server(change)) {
        api_fail(call, 409, "conflict", "/address", "target group %.*s has a server %.*s already",
                 SLICE_ARG(change->group_name), SLICE_ARG(change->server_id));
        return false;
    }
    struct doc_node *list = onepool_targets(change), *target = doc_new(edit->doc, DOC_MAP);
    if (!list && (list = doc_new(edit->doc, DOC_LIST)))
        doc_edit_set(edit, change->group, "targets", list);
    if (!list || !target || !set_address(change, target) || !set_common(change, target))
        return false;
    doc_edit_append(edit, list, target);
    change->change.prefix = doc_path(target, &call->arena);
    return true;
}

static void answer_new(struct onepool_change *change, const struct snap_group *group)
{
    struct api_call *call = change->change.call;
    struct text *out = &call->reply.body;
    call->reply.status = 201;
    text_printf(out, "{\"server_id\":");
    text_json(out, change->server_id);
    text_printf(out, ",\"address\":");
    text_json(out, change->server_id);
    text_printf(out, ",\"status\":\"pending\",\"target_group\":");
    text_json(out, change->group_name);
    text_printf(out, ",\"version\":%llu}\n", (unsigned long long)change->change.version);
}

/* ---- DELETE ---- */

static bool make_gone(struct onepool_change *change)
{
    doc_edit_remove(&change->change.edit, change->server);
    return true;
}

static void answer_gone(struct onepool_change *change, const struct snap_group *group)
{
    struct api_call *call = change->change.call;
    struct text *out = &call->reply.body;
    struct onepool_server *servers;
    uint32_t active = 0, n = onepool_servers(call, group, &servers);
    for (uint32_t i = 0; i < n; i++)
        if (servers[i].is_leaving && slice_eq(servers[i].config->endpoint.text, change->server_id))
            active = atomic_load_explicit(&servers[i].backend->in_flight, memory_order_relaxed);
    call->reply.status = 202;
    text_printf(out, "{\"server_id\":");
    text_json(out, change->server_id);
    text_printf(out,
                ",\"status\":\"draining\",\"active_connections\":%u,\"drain_timeout_seconds\":%g,"
                "\"version\":%llu}\n",
                active, group->config->deregistration_delay_ms / 1000.0,
                (unsigned long long)change->change.version);
}

/* ---- PUT ---- */

static bool make_changed(struct onepool_change *change)
{
    struct api_call *call = change->change.call;
    const struct doc_node *address = onepool_body(change, "address");
    if (address && !slice_eq(address->text, change->server_id)) {
        api_fail(call, 422, "invalid", "/address",
                 "is what a server is known by: add another, remove this one");
        return false;
    }
    if (call->role < API_ADMIN && (onepool_body(change, "metadata") || onepool_body(change, "backup"))) {
        api_fail(call, 403, "forbidden", onepool_body(change, "metadata") ? "/metadata" : "/backup",
                 "needs a token of role admin; weight and enabled need operate");
        return false;
    }
    return set_common(change, change->server);
}

static const struct onepool_field fields[] = {
    {"address", "/ip"}, {"address", "/port"}, {"address", "/unix"},  {"weight", NULL},
    {"enabled", NULL},  {"backup", NULL},     {"metadata", "/tags"}, {0}};

static const struct onepool_change_kind create = {.fields = fields, .make = make_new, .answer = answer_new};
static const struct onepool_change_kind update = {
    .fields = fields, .needs_server = true, .make = make_changed, .answer = answer_server};
static const struct onepool_change_kind removal = {
    .needs_server = true, .make = make_gone, .answer = answer_gone};

void api_servers_add(struct api_call *call)
{
    onepool_change_submit(call, &create);
}

void api_servers_put(struct api_call *call)
{
    onepool_change_submit(call, &update);
}

void api_servers_remove(struct api_call *call)
{
    onepool_change_submit(call, &removal);
}
