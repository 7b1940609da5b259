/* SPDX-License-Identifier: Apache-2.0 */
/* Create, change and delete of every resource in resources.def, over the one document. A handler reads
 * the request and submits a change; the change is made when its turn comes, on the document as it is then, so
 * preconditions are looked at there. */
#include "v1/handlers.h"

#include "api/route.h"
#include "document/idempotency.h"
#include "v1/v1.h"

#include <stdlib.h>

struct v1_change {
    struct change change;
    const struct resource *resource;
    struct iso_diag body_diag;
    struct doc body;             /* owns; root NULL: the request has none */
    const struct doc_node *node; /* in the document: what the answer is about; NULL: it is gone */
    struct slice id;
    bool is_new;
    bool is_list;                /* the answer is about the list */
    uint64_t drain_ms;           /* DELETE of a target: what its requests have */
    struct idempotency *pending; /* POST with an Idempotency-Key; NULL: without */
};

static struct v1_change *of(struct change *change)
{
    return container_of(change, struct v1_change, change);
}

/* ---- changes ---- */

/* The steps of a change begin: path prefixes for faults come from where the item is. */
static struct doc_node *writable(const struct doc_node *node)
{
    return (struct doc_node *)node; /* the change at hand may edit the document */
}

static bool check_item_kind(struct api_call *call, const struct doc_node *item)
{
    if (item->kind == DOC_MAP)
        return true;
    api_fail(call, 422, "invalid", "", "the %s in the configuration is not an object",
             v1_resource_of(call)->item);
    return false;
}

/* The list of the resource, made when there is none. */
static struct doc_node *need_list(struct v1_change *v1, const struct v1_place *place)
{
    if (place->list)
        return writable(place->list);
    struct doc_node *list = doc_new(v1->change.edit.doc, DOC_LIST);
    doc_edit_set(&v1->change.edit, writable(place->parent), v1->resource->key, list);
    return list;
}

/* A copy of the body as an item of the document; NULL with the answer in the call. */
static struct doc_node *copy_body(struct v1_change *v1)
{
    v1_translate(v1->resource, v1->body.root);
    struct doc_node *item = doc_copy(v1->change.edit.doc, v1->body.root);
    if (!item)
        api_fail_diag(v1->change.call, 413, "too_large", &v1->change.diag);
    else
        v1_strip_added(v1->resource, &v1->change.edit, item);
    return item;
}

/* Faults of the item are shown by their place in the body. */
static void point_at(struct v1_change *v1, const struct doc_node *item)
{
    v1->change.prefix = doc_path(item, &v1->change.call->arena);
}

static bool make_post(struct change *change)
{
    struct v1_change *v1 = of(change);
    struct api_call *call = change->call;
    struct v1_place place;
    if (!v1_find_place(call, v1->resource, &place))
        return false;
    if (!v1_precondition(call, v1_etag(call, place.list)))
        return false;
    struct doc_node *item = copy_body(v1);
    if (!item)
        return false;
    if (v1->resource->prefix && !doc_get(item, "name") && v1->resource->name_it) {
        const char *name = resource_new_name(v1->resource, place.list, &call->arena);
        v1->resource->name_it(&change->edit, item, slice_str(name));
    }
    struct slice id = v1->resource->identify(item, place.parent, &call->arena);
    if (id.ptr && resource_find(v1->resource, place.list, id, &call->arena)) {
        api_fail(call, 409, "conflict", "", "the %s \"%.*s\" exists already", v1->resource->item,
                 SLICE_ARG(id));
        return false;
    }
    doc_edit_append(&change->edit, need_list(v1, &place), item);
    point_at(v1, item);
    v1->node = item;
    v1->id = id;
    v1->is_new = true;
    return true;
}

/* Does the item say what the path says? */
static bool check_id(struct v1_change *v1, const struct doc_node *item, const struct doc_node *parent)
{
    struct api_call *call = v1->change.call;
    struct slice wanted = v1_item_id(call), have = v1->resource->identify(item, parent, &call->arena);
    if (!have.ptr || slice_eq(have, wanted) || slice_starts(wanted, SLICE("rule.")))
        return true;
    api_fail(call, 422, "invalid", "", "the body says \"%.*s\" and the path \"%.*s\"", SLICE_ARG(have),
             SLICE_ARG(wanted));
    return false;
}

static void keep_secrets(struct v1_change *v1, struct doc_node *item, const struct doc_node *before)
{
    v1_keep_secrets(&v1->change.edit, resource_section(v1->resource), item, before, &v1->change.call->arena);
    if (v1->resource == &resource_certificates)
        v1_keep_key(&v1->change.edit, item, before);
}

static bool make_put(struct change *change)
{
    struct v1_change *v1 = of(change);
    struct api_call *call = change->call;
    struct v1_place place;
    if (!v1_find_place(call, v1->resource, &place) || !v1_precondition(call, v1_etag(call, place.item)))
        return false;
    struct doc_node *item = copy_body(v1);
    if (!item)
        return false;
    if (!v1->resource->name_it(&change->edit, item, v1_item_id(call))) {
        api_fail(call, 422, "invalid", "", "\"%.*s\" cannot be the id of a %s", SLICE_ARG(v1_item_id(call)),
                 v1->resource->item);
        return false;
    }
    if (place.item)
        keep_secrets(v1, item, place.item);
    if (!check_id(v1, item, place.parent))
        return false;
    v1->is_new = !place.item;
    v1->node = item;
    v1->id = v1_item_id(call);
    if (place.item && doc_eq(item, place.item)) {
        doc_edit_undo(&change->edit); /* steps of the copy alone */
        doc_edit_begin(&change->edit, change->edit.doc);
        v1->node = place.item;
        return true;
    }
    if (place.item)
        doc_edit_replace(&change->edit, writable(place.item), item);
    else
        doc_edit_append(&change->edit, need_list(v1, &place), item);
    point_at(v1, item);
    return true;
}

/* May the client change these keys? */
static bool may_patch(struct v1_change *v1)
{
    struct api_call *call = v1->change.call;
    if (call->role >= API_ADMIN)
        return true;
    for (const struct doc_node *part = v1->body.root->first; part; part = part->next) {
        const char *const *key = v1->resource->operate;
        while (key && *key && !slice_eq(part->key, slice_str(*key)))
            key++;
        if (key && *key)
            continue;
        api_fail(call, 403, "forbidden", "", "the token's role is operate, which may not change %.*s here",
                 (int)(part->key.len < 60 ? part->key.len : 60), part->key.ptr);
        return false;
    }
    return true;
}

static bool make_patch(struct change *change)
{
    struct v1_change *v1 = of(change);
    struct api_call *call = change->call;
    struct v1_place place;
    if (!may_patch(v1) || !v1_find_place(call, v1->resource, &place))
        return false;
    if (!place.item) {
        v1_fail_missing(call);
        return false;
    }
    if (!check_item_kind(call, place.item) || !v1_precondition(call, v1_etag(call, place.item)))
        return false;
    v1_translate(v1->resource, v1->body.root);
    struct doc_node *item = doc_copy(change->edit.doc, place.item);
    if (!item || !doc_edit_merge(&change->edit, item, v1->body.root)) {
        api_fail_diag(call, 413, "too_large", &change->diag);
        return false;
    }
    v1_strip_added(v1->resource, &change->edit, item);
    keep_secrets(v1, item, place.item);
    v1->node = item;
    if (doc_eq(item, place.item)) {
        doc_edit_undo(&change->edit);
        doc_edit_begin(&change->edit, change->edit.doc);
        v1->node = place.item;
    } else {
        doc_edit_replace(&change->edit, writable(place.item), item);
        point_at(v1, item);
    }
    v1->id = v1->resource->identify(v1->node, place.parent, &call->arena);
    return true;
}

static uint64_t drain_ms_of(struct v1_change *v1)
{
    const struct config *config = document_config(v1->change.document);
    for (uint32_t g = 0; g < config->n_target_groups; g++)
        if (slice_eq(config->target_groups[g].name, v1->change.call->params[0]))
            return config->target_groups[g].deregistration_delay_ms;
    return 0;
}

static bool make_delete(struct change *change)
{
    struct v1_change *v1 = of(change);
    struct api_call *call = change->call;
    struct v1_place place;
    if (!v1_find_place(call, v1->resource, &place))
        return false;
    if (!place.item) {
        v1_fail_missing(call);
        return false;
    }
    if (!v1_precondition(call, v1_etag(call, place.item)))
        return false;
    v1->drain_ms = v1->resource == &resource_targets ? drain_ms_of(v1) : 0;
    v1->id = v1_item_id(call);
    doc_edit_remove(&change->edit, writable(place.item));
    return true;
}

/* {"targets": [...]} in place of the whole list. */
static bool make_replace(struct change *change)
{
    struct v1_change *v1 = of(change);
    struct api_call *call = change->call;
    const struct doc_node *given = doc_get(v1->body.root, v1->resource->key);
    struct v1_place place;
    if (!v1_find_place(call, v1->resource, &place) || !v1_precondition(call, v1_etag(call, place.list)))
        return false;
    for (const struct doc_node *part = v1->body.root->first; part; part = part->next)
        if (part != given || given->kind != DOC_LIST) {
            api_fail(call, 422, "invalid", doc_path(part, &call->arena),
                     "expected {\"%s\": [...]} and nothing else", v1->resource->key);
            return false;
        }
    if (!given) {
        api_fail(call, 422, "invalid", "", "expected {\"%s\": [...]}", v1->resource->key);
        return false;
    }
    for (struct doc_node *item = given->first; item; item = item->next)
        v1_translate(v1->resource, item);
    struct doc_node *list = doc_copy(change->edit.doc, given);
    if (!list) {
        api_fail_diag(call, 413, "too_large", &change->diag);
        return false;
    }
    for (struct doc_node *item = list->first; item; item = item->next)
        v1_strip_added(v1->resource, &change->edit, item);
    v1_keep_secrets(&change->edit, resource_section(v1->resource), list, place.list, &call->arena);
    for (struct doc_node *item = list->first; item; item = item->next) {
        struct slice id = v1->resource->identify(item, place.parent, &call->arena);
        const struct doc_node *old =
            id.ptr ? resource_find(v1->resource, place.list, id, &call->arena) : NULL;
        if (old)
            keep_secrets(v1, item, old);
    }
    v1->is_list = true;
    v1->node = list;
    if (place.list && doc_eq(list, place.list)) {
        doc_edit_undo(&change->edit);
        doc_edit_begin(&change->edit, change->edit.doc);
        v1->node = place.list;
        return true;
    }
    doc_edit_set(&change->edit, writable(place.parent), v1->resource->key, list);
    if (v1->resource->parent)
        point_at(v1, place.parent);
    return true;
}

/* ---- answers ---- */

static void end_v1(struct v1_change *v1)
{
    if (v1->pending)
        idempotency_end(&v1->pending, v1->change.call);
    doc_fini(&v1->body);
    diag_fini(&v1->body_diag);
}

/* Load balancers have two keys that source 000 shows even when the document says nothing. */
static void write_item_answer(struct v1_change *v1)
{
    struct api_call *call = v1->change.call;
    struct text *out = &call->reply.body, item;
    text_printf(out, "{\"version\":%llu,", (unsigned long long)v1->change.version);
    if (v1->resource->id_key) {
        text_printf(out, "\"%s\":", v1->resource->id_key);
        text_json(out, v1->id);
        text_add(out, SLICE(","));
    }
    if (v1->resource == &resource_load_balancers) {
        /* No zone is served here that would have a name for it. */
        text_add(out, SLICE("\"dns_name\":null,"));
        if (!doc_get(v1->node, "vip"))
            text_add(out, SLICE("\"vip\":null,"));
    }
    text_init(&item);
    v1_write_item(v1->resource, SCHEMA_HIDDEN, v1->node, v1->id, &item);
    text_add(out, slice_of(item.data + 1, item.len - 1));
    text_add(out, SLICE("\n"));
    text_fini(&item);
    call->reply.etag = v1_etag(call, v1->node);
}

static void write_list_answer(struct v1_change *v1)
{
    struct api_call *call = v1->change.call;
    struct text *out = &call->reply.body;
    text_printf(out, "{\"version\":%llu,\"%s\":[", (unsigned long long)v1->change.version, v1->resource->key);
    for (const struct doc_node *item = v1->node->first; item; item = item->next) {
        if (item != v1->node->first)
            text_add(out, SLICE(","));
        v1_write_item(v1->resource, SCHEMA_HIDDEN, item, resource_id(v1->resource, item, &call->arena), out);
    }
    text_add(out, SLICE("]}\n"));
    call->reply.etag = v1_etag(call, v1->node);
}

static void done_write(struct change *change, enum change_outcome outcome, const struct config *tried)
{
    struct v1_change *v1 = of(change);
    struct api_call *call = change->call;
    if (v1_settle(change, outcome, tried)) {
        if (v1->is_new) {
            struct slice path = call->request->path;
            bool is_named = call->route->method == HTTP_PUT;
            call->reply.status = 201;
            call->reply.location = slice_str(
                is_named ? arena_printf(&call->arena, "%.*s", SLICE_ARG(path))
                         : arena_printf(&call->arena, "%.*s/%.*s", SLICE_ARG(path), SLICE_ARG(v1->id)));
        }
        if (v1->is_list)
            write_list_answer(v1);
        else
            write_item_answer(v1);
    }
    end_v1(v1);
}

/* A target leaves when its requests have ended or its time is over: 202, and what it is doing (E1). */
static void write_drain_answer(struct v1_change *v1)
{
    struct api_call *call = v1->change.call;
    struct text *out = &call->reply.body;
    call->reply.status = 202;
    text_add(out, SLICE("{\"state\":\"draining\",\"until\":"));
    api_write_time(out, v1->change.wall_ms + v1->drain_ms);
    text_printf(out, ",\"version\":%llu}\n", (unsigned long long)v1->change.version);
}

static void done_delete(struct change *change, enum change_outcome outcome, const struct config *tried)
{
    struct v1_change *v1 = of(change);
    struct api_call *call = change->call;
    if (outcome == CHANGE_REFUSED && call->reply.status == 422)
        api_fail_diag(call, 409, "in_use", &change->diag); /* what was valid with it is not without */
    else if (v1_settle(change, outcome, tried) && v1->resource == &resource_targets)
        write_drain_answer(v1);
    else if (outcome == CHANGE_MADE)
        text_printf(&call->reply.body, "{\"version\":%llu}\n", (unsigned long long)change->version);
    end_v1(v1);
}

/* ---- handlers ---- */

static struct v1_change *new_change(struct api_call *call, bool (*make)(struct change *change),
                                    void (*done)(struct change *change, enum change_outcome outcome,
                                                 const struct config *tried))
{
    struct v1_change *v1 = arena_new(&call->arena, struct v1_change);
    v1->resource = v1_resource_of(call);
    v1->change = (struct change){.call = call,
                                 .who = call->who,
                                 .is_dry_run = api_query_flag(call, "dry_run"),
                                 .make = make,
                                 .done = done};
    diag_init(&v1->body_diag);
    return v1;
}

/* Reads the body, then waits for the change's turn. */
static void submit(struct api_call *call, struct v1_change *v1)
{
    api_defer(call);
    document_submit(call->document, &v1->change);
}

static void write_with_body(struct api_call *call, bool (*make)(struct change *change))
{
    if (!v1_document(call))
        return;
    struct v1_change *v1 = new_change(call, make, done_write);
    if (!api_read_body(call, false, &v1->body, &v1->body_diag) ||
        (make == make_post && !idempotency_begin(call, &v1->pending))) {
        end_v1(v1);
        return;
    }
    submit(call, v1);
}

void v1_post(struct api_call *call)
{
    write_with_body(call, make_post);
}

void v1_put(struct api_call *call)
{
    write_with_body(call, make_put);
}

void v1_patch(struct api_call *call)
{
    write_with_body(call, make_patch);
}

void v1_replace(struct api_call *call)
{
    write_with_body(call, make_replace);
}

void v1_delete(struct api_call *call)
{
    if (v1_document(call))
        submit(call, new_change(call, make_delete, done_delete));
}
