/* SPDX-License-Identifier: Apache-2.0 */
#include "v1/v1.h"

#include "config/secret.h"

#include <stdlib.h>

/* ---- where a path leads ---- */

struct document *v1_document(struct api_call *call)
{
    if (!call->document)
        api_fail(call, 503, "starting", "", "no configuration is in force yet");
    return call->document;
}

const struct resource *v1_resource_of(const struct api_call *call)
{
    return call->route->resource;
}

bool v1_find_place(struct api_call *call, const struct resource *resource, struct v1_place *out)
{
    bool exists;
    unsigned depth = resource_depth(resource);
    const struct doc_node *root = document_doc(call->document)->root;
    out->list = resource_list(resource, root, call->params, &call->arena, &out->parent, &exists);
    if (!exists) {
        api_fail(call, 404, "not_found", "", "there is no %s \"%.*s\"", resource->parent->item,
                 SLICE_ARG(call->params[depth - 2]));
        return false;
    }
    out->item = call->n_params == depth
                    ? resource_find(resource, out->list, call->params[depth - 1], &call->arena)
                    : NULL;
    return true;
}

struct slice v1_item_id(const struct api_call *call)
{
    return call->params[resource_depth(v1_resource_of(call)) - 1];
}

void v1_fail_missing(struct api_call *call)
{
    api_fail(call, 404, "not_found", "", "there is no %s \"%.*s\"", v1_resource_of(call)->item,
             SLICE_ARG(v1_item_id(call)));
}

/* ---- validators ---- */

struct slice v1_etag(struct api_call *call, const struct doc_node *node)
{
    if (!node)
        return (struct slice){0};
    uint64_t hash = secret_digest(resource_section(v1_resource_of(call)), node);
    return slice_str(arena_printf(&call->arena, "\"%016llx\"", (unsigned long long)hash));
}

struct slice v1_etag_of_version(struct api_call *call, uint64_t version)
{
    return slice_str(arena_printf(&call->arena, "\"%llu\"", (unsigned long long)version));
}

/* Does a list of entity tags name this one? Weak ones never match strongly. */
static bool names_tag(struct slice list, struct slice etag, bool weakly)
{
    struct slice one;
    if (slice_eq(slice_trim(list), SLICE("*")))
        return etag.ptr != NULL;
    while (slice_next(&list, ',', &one)) {
        one = slice_trim(one);
        if (weakly && slice_starts(one, SLICE("W/")))
            one = slice_of(one.ptr + 2, one.len - 2);
        if (etag.ptr && slice_eq(one, etag))
            return true;
    }
    return false;
}

bool v1_precondition(struct api_call *call, struct slice etag)
{
    struct slice match = api_field(call, "if-match"), none = api_field(call, "if-none-match");
    if (match.ptr && !names_tag(match, etag, false)) {
        if (etag.ptr)
            api_fail(call, 412, "precondition_failed", "If-Match",
                     "it has changed since: its ETag is %.*s now", SLICE_ARG(etag));
        else
            api_fail(call, 412, "precondition_failed", "If-Match", "it does not exist");
        call->reply.etag = etag;
        return false;
    }
    if (none.ptr && names_tag(none, etag, true)) {
        api_fail(call, 412, "precondition_failed", "If-None-Match", "it exists");
        call->reply.etag = etag;
        return false;
    }
    return true;
}

bool v1_not_modified(struct api_call *call, struct slice etag)
{
    struct slice none = api_field(call, "if-none-match");
    call->reply.etag = etag;
    if (!none.ptr || !names_tag(none, etag, true))
        return false;
    call->reply.status = 304;
    return true;
}

/* ---- items ---- */

void v1_strip_added(const struct resource *resource, struct doc_edit *edit, struct doc_node *item)
{
    doc_edit_set(edit, item, "id", NULL);
    doc_edit_set(edit, item, "version", NULL);
    doc_edit_set(edit, item, "dns_name", NULL);
    if (resource->id_key)
        doc_edit_set(edit, item, resource->id_key, NULL);
    const struct doc_node *vip = resource == &resource_load_balancers ? doc_get(item, "vip") : NULL;
    if (vip && vip->kind == DOC_NULL)
        doc_edit_set(edit, item, "vip", NULL);
}

static void translate_listener(struct doc_node *listener)
{
    struct doc_node *node = (struct doc_node *)doc_get(listener, "cert_id");
    if (node && !doc_get(listener, "certificates"))
        node->key = SLICE("certificates");
}

void v1_translate(const struct resource *resource, struct doc_node *item)
{
    const struct doc_node *list = resource == &resource_load_balancers ? doc_get(item, "listeners") : NULL;
    if (resource == &resource_listeners)
        translate_listener(item);
    for (struct doc_node *listener = list ? list->first : NULL; listener; listener = listener->next)
        translate_listener(listener);
}

/* ---- ends of changes ---- */

bool v1_settle(struct change *change, enum change_outcome outcome, const struct config *tried)
{
    struct api_call *call = change->call;
    struct text *out = &call->reply.body;
    switch (outcome) {
    case CHANGE_MADE:
    case CHANGE_NONE:
        break;
    case CHANGE_REFUSED:
    case CHANGE_FAILED:
    case CHANGE_ABANDONED:
        return false;
    case CHANGE_TRIED: {
        const struct config *now = document_config(change->document);
        text_printf(out,
                    "{\"dry_run\":true,\"version\":%llu,\"changes\":", (unsigned long long)change->version);
        document_write_changes(now, tried, out);
        text_add(out, SLICE(",\"impact\":"));
        v1_write_impact(now, tried, out);
        text_add(out, SLICE("}\n"));
        return false;
    }
    }
    if (!change->is_dry_run)
        return true;
    text_printf(out, "{\"dry_run\":true,\"version\":%llu,\"changes\":[],\"impact\":",
                (unsigned long long)change->version);
    v1_write_impact(document_config(change->document), document_config(change->document), out);
    text_add(out, SLICE("}\n"));
    return false;
}
