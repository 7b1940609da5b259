/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as a whole: read, replaced, and back to what it was. */
#include "v1/handlers.h"

#include "doc/json.h"
#include "v1/v1.h"

#include <stdlib.h>

/* They come from the file of this node: without them nobody could ask for a change. */
static const char *const file_keys[] = {"admin", "store"};

struct whole_change {
    struct change change;
    bool is_yaml;
    bool is_rollback;
    const struct version_info *back_to;
};

struct document *v1_document_of(struct api_call *call)
{
    if (!call->document)
        api_fail(call, 503, "starting", "", "no configuration is in force yet");
    return call->document;
}

void v1_config_get(struct api_call *call)
{
    struct document *document = v1_document_of(call);
    enum schema_view view;
    if (!document || !v1_read_view(call, &view) ||
        v1_not_modified(call, v1_etag_of_version(call, document_version(document))))
        return;
    v1_write_document(document_doc(document)->root, view, &call->reply.body);
    text_add(&call->reply.body, SLICE("\n"));
}

/* What the file of this node says stays; the body may repeat it. */
static bool keep_file_keys(struct change *change, struct doc_edit *edit)
{
    const struct doc_node *now = document_doc(change->document)->root;
    for (size_t i = 0; i < iso_countof(file_keys); i++) {
        const struct doc_node *mine = doc_get(now, file_keys[i]),
                              *theirs = doc_get(change->fresh->root, file_keys[i]);
        if (theirs && (!mine || !doc_eq(mine, theirs))) {
            const char *path = arena_printf(&change->call->arena, "/%s", file_keys[i]);
            api_fail(change->call, 422, "invalid", path,
                     "comes from the file of this node and cannot be changed here; change the file and "
                     "reload");
            return false;
        }
        struct doc_node *copy = mine ? doc_copy(change->fresh, mine) : NULL;
        if (copy)
            doc_edit_set(edit, change->fresh->root, file_keys[i], copy);
    }
    return true;
}

static void keep_keys(struct change *change, struct doc_edit *edit)
{
    struct arena *arena = &change->call->arena;
    const struct doc_node *old = doc_get(document_doc(change->document)->root, "certificates"),
                          *list = doc_get(change->fresh->root, "certificates");
    if (!list || list->kind != DOC_LIST)
        return;
    for (struct doc_node *item = list->first; item; item = item->next) {
        struct slice id = resource_id(&resource_certificates, item, arena);
        const struct doc_node *before = id.ptr ? resource_find(&resource_certificates, old, id, arena) : NULL;
        if (before)
            v1_keep_key(edit, item, before);
    }
}

static void translate_all(struct doc_node *root)
{
    const struct doc_node *list = doc_get(root, "load_balancers");
    for (struct doc_node *item = list ? list->first : NULL; item; item = item->next)
        v1_translate(&resource_load_balancers, item);
}

static bool make_whole(struct change *change)
{
    struct whole_change *whole = container_of(change, struct whole_change, change);
    struct api_call *call = change->call;
    struct doc_edit edit;
    if (!v1_precondition(call, v1_etag_of_version(call, document_version(change->document))))
        return false;
    change->fresh = calloc(1, sizeof(*change->fresh));
    iso_assert(change->fresh != NULL);
    if (whole->back_to) {
        doc_init(change->fresh, "", &change->diag);
        iso_err err = json_read(whole->back_to->document, change->fresh);
        iso_assert(!err); /* we wrote it */
    } else if (!api_read_body(call, true, change->fresh, &change->diag)) {
        return false;
    }
    doc_edit_begin(&edit, change->fresh);
    if (whole->back_to) /* what the file says is what it says now */
        for (size_t i = 0; i < iso_countof(file_keys); i++)
            doc_edit_set(&edit, change->fresh->root, file_keys[i], NULL);
    translate_all(change->fresh->root);
    v1_keep_secrets(&edit, &schema_config, change->fresh->root, document_doc(change->document)->root,
                    &call->arena);
    keep_keys(change, &edit);
    if (!keep_file_keys(change, &edit))
        return false;
    return true;
}

static void done_whole(struct change *change, enum change_outcome outcome, const struct config *tried)
{
    struct api_call *call = change->call;
    if (!v1_settle(change, outcome, tried))
        return;
    call->reply.etag = v1_etag_of_version(call, change->version);
    text_printf(&call->reply.body, "{\"version\":%llu,\"changes\":", (unsigned long long)change->version);
    text_add(&call->reply.body, change->changes.len ? text_slice(&change->changes) : SLICE("[]"));
    text_add(&call->reply.body, SLICE("}\n"));
}

void v1_config_submit(struct api_call *call, const struct version_info *back_to)
{
    struct whole_change *whole = arena_new(&call->arena, struct whole_change);
    *whole = (struct whole_change){.change = {.call = call,
                                              .who = call->who,
                                              .is_dry_run = api_query_flag(call, "dry_run"),
                                              .make = make_whole,
                                              .done = done_whole},
                                   .back_to = back_to};
    api_defer(call);
    document_submit(call->document, &whole->change);
}

void v1_config_put(struct api_call *call)
{
    if (v1_document_of(call))
        v1_config_submit(call, NULL);
}
