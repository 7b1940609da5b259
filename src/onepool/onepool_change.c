/* SPDX-License-Identifier: Apache-2.0 */
#include "onepool/onepool_change.h"

#include "api/body.h"

static bool knows(const struct onepool_change_kind *kind, struct slice name)
{
    for (const struct onepool_field *field = kind->fields; field->name; field++)
        if (slice_eq(name, slice_str(field->name)))
            return true;
    return false;
}

static bool check_fields(struct api_call *call, const struct onepool_change *change)
{
    struct text known;
    const struct doc_node *root = change->body.root;
    for (const struct doc_node *field = root->first; field; field = field->next) {
        if (knows(change->kind, field->key))
            continue;
        text_init(&known);
        for (const struct onepool_field *have = change->kind->fields; have->name; have++)
            text_printf(&known, "%s%s", known.len ? ", " : "", have->name);
        api_fail(call, 400, "invalid", doc_path(field, &call->arena), "is not known here, expected one of %s",
                 known.data);
        text_fini(&known);
        return false;
    }
    return true;
}

static bool read_body(struct api_call *call, struct onepool_change *change)
{
    return !change->kind->fields ||
           (api_read_body(call, false, &change->body, &change->body_diag) && check_fields(call, change));
}

static struct doc_node *find_group(const struct doc *doc, const struct onepool_change *change)
{
    const struct doc_node *groups = doc_get(doc->root, "target_groups");
    for (struct doc_node *group = groups ? groups->first : NULL; group; group = group->next) {
        const struct doc_node *name = doc_get(group, "name");
        if (name && slice_eq(name->text, change->group_name))
            return group;
    }
    return NULL;
}

/* Lists of the document and of the configuration in force are in the same order. */
static struct doc_node *find_server(const struct onepool_change *change)
{
    const struct config *config = document_config(change->change.document);
    const struct doc_node *targets = onepool_targets(change);
    for (uint32_t g = 0; targets && g < config->n_target_groups; g++) {
        const struct config_target_group *group = &config->target_groups[g];
        if (!slice_eq(group->name, change->group_name))
            continue;
        struct doc_node *node = targets->first;
        for (uint32_t i = 0; node && i < group->n_targets; i++, node = node->next)
            if (slice_eq(group->targets[i].endpoint.text, change->server_id))
                return node;
    }
    return NULL;
}

static bool make(struct change *base)
{
    struct onepool_change *change = container_of(base, struct onepool_change, change);
    struct api_call *call = base->call;
    change->group = find_group(base->edit.doc, change);
    if (!change->group) { /* it went while this change waited in line */
        api_fail(call, 404, "not_found", "target_group", "there is no target group \"%.*s\"",
                 SLICE_ARG(change->group_name));
        return false;
    }
    change->server = change->server_id.ptr ? find_server(change) : NULL;
    if (change->kind->needs_server && !change->server) {
        api_fail(call, 404, "not_found", "server_id", "target group %.*s has no server \"%.*s\"",
                 SLICE_ARG(change->group_name), SLICE_ARG(change->server_id));
        return false;
    }
    base->prefix = doc_path(change->server ? change->server : change->group, &call->arena);
    return change->kind->make(change);
}

/* A fault is shown at the field of this API that it came from. */
static void rename_faults(struct onepool_change *change)
{
    for (struct diag_entry *entry = change->change.diag.first; entry; entry = entry->next)
        for (const struct onepool_field *field = change->kind->fields; field && field->name; field++) {
            size_t len = field->path ? strlen(field->path) : 0;
            if (len && strncmp(entry->path, field->path, len) == 0 &&
                (entry->path[len] == '\0' || entry->path[len] == '/')) {
                entry->path =
                    arena_printf(&change->change.diag.arena, "/%s%s", field->name, entry->path + len);
                break;
            }
        }
}

static void done(struct change *base, enum change_outcome outcome, const struct config *tried)
{
    struct onepool_change *change = container_of(base, struct onepool_change, change);
    struct api_call *call = base->call;
    if (outcome == CHANGE_REFUSED && base->diag.errors) {
        rename_faults(change);
        api_fail_diag(call, 422, "invalid", &base->diag);
    }
    if (outcome != CHANGE_MADE && outcome != CHANGE_NONE)
        return;
    const struct snapshot *snapshot = call->view->snapshot;
    for (uint32_t g = 0; g < snapshot->n_groups; g++)
        if (slice_eq(snapshot->groups[g].config->name, change->group_name)) {
            change->kind->answer(change, &snapshot->groups[g]);
            return;
        }
}

static void release(struct change *base)
{
    struct onepool_change *change = container_of(base, struct onepool_change, change);
    doc_fini(&change->body);
    diag_fini(&change->body_diag);
}

void onepool_change_submit(struct api_call *call, const struct onepool_change_kind *kind)
{
    const struct snap_group *group = onepool_group(call);
    struct onepool_change *change = arena_new(&call->arena, struct onepool_change);
    if (!group)
        return;
    if (!call->document) {
        api_fail(call, 405, "read_only", "", "the configuration of this process cannot be changed");
        return;
    }
    *change = (struct onepool_change){.change = {.call = call,
                                                 .who = call->who,
                                                 .is_by_meaning = true,
                                                 .make = make,
                                                 .done = done,
                                                 .free = release},
                                      .kind = kind,
                                      .group_name = arena_slice(&call->arena, group->config->name),
                                      .server_id = call->n_params ? call->params[0] : (struct slice){0}};
    diag_init(&change->body_diag);
    doc_init(&change->body, "", &change->body_diag);
    if (!read_body(call, change)) {
        release(&change->change);
        return;
    }
    api_defer(call);
    document_submit(call->document, &change->change);
}

const struct doc_node *onepool_body(const struct onepool_change *change, const char *name)
{
    return change->body.root ? doc_get(change->body.root, name) : NULL;
}

struct doc_node *onepool_targets(const struct onepool_change *change)
{
    struct doc_node *targets = (struct doc_node *)doc_get(change->group, "targets");
    return targets && targets->kind == DOC_LIST ? targets : NULL;
}

bool onepool_take(struct onepool_change *change, const char *name, struct doc_node *map, const char *key)
{
    const struct doc_node *field = onepool_body(change, name), *old = doc_get(map, key);
    if (!field || (old && doc_eq(field, old)))
        return true;
    struct doc_node *copy = doc_copy(change->change.edit.doc, field);
    if (!copy)
        return false;
    doc_edit_set(&change->change.edit, map, key, copy);
    return true;
}

bool onepool_set(struct onepool_change *change, struct doc_node *map, const char *key, struct slice text,
                 bool plain)
{
    struct doc *doc = change->change.edit.doc;
    const struct doc_node *old = doc_get(map, key);
    if (old && slice_eq(old->text, text))
        return true;
    struct doc_node *node = doc_new(doc, DOC_STRING);
    if (!node)
        return false;
    doc_set_scalar(doc, node, text, plain);
    doc_edit_set(&change->change.edit, map, key, node);
    return true;
}

struct doc_node *onepool_section(struct onepool_change *change, struct doc_node *map, const char *key)
{
    struct doc_node *section = (struct doc_node *)doc_get(map, key);
    if (section && section->kind == DOC_MAP)
        return section;
    section = doc_new(change->change.edit.doc, DOC_MAP);
    if (section)
        doc_edit_set(&change->change.edit, map, key, section);
    return section;
}

bool onepool_refuse(struct onepool_change *change, const struct doc_node *field, const char *expected)
{
    struct arena *arena = &change->change.call->arena;
    api_fail(change->change.call, 422, "invalid", doc_path(field, arena), "is %s, expected %s",
             doc_describe(field, arena), expected);
    return false;
}
