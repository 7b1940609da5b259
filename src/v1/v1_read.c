/* SPDX-License-Identifier: Apache-2.0 */
/* Reading resources: one, and pages of a list. */
#include "v1/handlers.h"

#include "v1/v1.h"

#include <stdlib.h>

void v1_get(struct api_call *call)
{
    struct v1_place place;
    enum schema_view view;
    if (!v1_document(call) || !v1_read_view(call, &view) ||
        !v1_find_place(call, v1_resource_of(call), &place))
        return;
    if (!place.item) {
        v1_fail_missing(call);
        return;
    }
    if (v1_not_modified(call, v1_etag(call, place.item)))
        return;
    v1_write_item(v1_resource_of(call), view, place.item, v1_item_id(call), &call->reply.body);
    text_add(&call->reply.body, SLICE("\n"));
}

struct entry {
    struct slice id;
    const struct doc_node *item;
};

static int by_id(const void *a, const void *b)
{
    return slice_compare(((const struct entry *)a)->id, ((const struct entry *)b)->id);
}

/* The next parameter of a query as it stands; false at the end. */
static bool next_param(struct slice *rest, struct slice *name)
{
    struct slice part;
    if (!slice_next(rest, '&', &part))
        return false;
    *name = slice_of(part.ptr, slice_find(part, '='));
    return true;
}

/* Whoever may not see a value must not find it by asking either. `below`: ".secret", or empty. */
static bool is_secret(const struct schema_key *key, struct slice below)
{
    const struct schema_key *part =
        key->section && below.len ? schema_find(key->section, slice_of(below.ptr + 1, below.len - 1)) : NULL;
    return key->secret || (part && part->secret);
}

/* ?protocol=HTTP, ?tags.zone=a: true when the item says so, or its default does. `*known` false: there is no
 * such key. */
static bool passes_one(struct api_call *call, const struct resource *resource, const struct doc_node *item,
                       struct slice name, bool *known)
{
    char key[64];
    struct slice wanted = {0};
    size_t dot = slice_find(name, '.');
    const struct schema_key *schema =
        schema_find(resource_section(resource), slice_of(name.ptr, dot < name.len ? dot : name.len));
    *known = schema != NULL && name.len < sizeof(key) &&
             !is_secret(schema, slice_of(name.ptr + dot, name.len - dot));
    if (!*known)
        return false;
    memcpy(key, name.ptr, name.len);
    key[name.len] = '\0';
    api_query(call, key, &wanted);
    const struct doc_node *node = doc_get(item, schema->name);
    if (dot < name.len)
        node = doc_get(node, key + dot + 1);
    if (!node)
        return dot == name.len && schema->default_text && slice_eq(slice_str(schema->default_text), wanted);
    if (node->kind != DOC_LIST)
        return slice_eq(node->text, wanted);
    for (const struct doc_node *one = node->first; one; one = one->next)
        if (slice_eq(one->text, wanted))
            return true;
    return false;
}

/* 1: passes, 0: does not, -1: a filter that is none, with 400 in the call. */
static int passes(struct api_call *call, const struct resource *resource, const struct doc_node *item)
{
    struct slice rest = call->request->query, name;
    int result = 1;
    while (next_param(&rest, &name)) {
        bool known;
        if (name.len == 0 || slice_eq(name, SLICE("limit")) || slice_eq(name, SLICE("cursor")) ||
            slice_eq(name, SLICE("secrets")))
            continue;
        if (!passes_one(call, resource, item, name, &known))
            result = 0;
        if (!known) {
            api_fail(call, 400, "invalid", "query", "%.*s is no key of %s to filter by",
                     (int)(name.len < 60 ? name.len : 60), name.ptr, resource_section(resource)->item);
            return -1;
        }
    }
    return result;
}

/* Where the page begins; false with 400 in the call. */
static bool find_start(struct api_call *call, const struct resource *resource, const struct api_page *page,
                       const struct entry *entries, uint32_t n, uint32_t *start)
{
    *start = 0;
    if (!page->after.ptr)
        return true;
    if (!resource->is_ordered) {
        while (*start < n && slice_compare(entries[*start].id, page->after) <= 0)
            ++*start;
        return true;
    }
    for (uint32_t i = 0; i < n; i++)
        if (slice_eq(entries[i].id, page->after)) {
            *start = i + 1;
            return true;
        }
    api_fail(call, 400, "invalid", "cursor", "the %s that it names is gone; begin anew", resource->item);
    return false;
}

/* Items in the order of their ids, or of the list where that has a meaning; what is there all the time while
 * somebody turns pages is shown exactly once (C-149). */
void v1_list(struct api_call *call)
{
    const struct resource *resource = v1_resource_of(call);
    struct api_page page;
    struct v1_place place;
    enum schema_view view;
    if (!v1_document(call) || !v1_read_view(call, &view) || !api_read_page(call, &page) ||
        !v1_find_place(call, resource, &place))
        return;
    uint32_t n = 0, start, max = place.list ? place.list->n : 0;
    struct entry *entries = arena_array(&call->arena, struct entry, max + 1);
    for (const struct doc_node *item = place.list ? place.list->first : NULL; item; item = item->next) {
        int passed = passes(call, resource, item);
        if (passed < 0)
            return;
        struct slice id = passed ? resource_id(resource, item, &call->arena) : (struct slice){0};
        if (id.ptr)
            entries[n++] = (struct entry){id, item};
    }
    if (!resource->is_ordered)
        qsort(entries, n, sizeof(*entries), by_id);
    if (!find_start(call, resource, &page, entries, n, &start))
        return;
    static const struct doc_node no_list = {.kind = DOC_LIST};
    if (v1_not_modified(call, v1_etag(call, place.list ? place.list : &no_list)))
        return;
    struct text *out = &call->reply.body;
    uint32_t end = n - start > page.limit ? start + page.limit : n;
    text_printf(out, "{\"version\":%llu,\"items\":[", (unsigned long long)document_version(call->document));
    for (uint32_t i = start; i < end; i++) {
        if (i > start)
            text_add(out, SLICE(","));
        v1_write_item(resource, view, entries[i].item, entries[i].id, out);
    }
    text_add(out, SLICE("],"));
    api_write_cursor(out, end < n ? entries[end - 1].id : (struct slice){0});
    text_add(out, SLICE("}\n"));
}
