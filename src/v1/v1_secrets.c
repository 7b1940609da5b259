/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets on their way out and in. Whoever reads is shown a mark in place of each (config/secret.h), unless a
 * client of role admin asks for them; whoever writes the mark back keeps the secret that was there. Every
 * answer of /v1 about the document is written by the functions here. */
#include "v1/v1.h"

#include "config/secret.h"
#include "core/log.h"
#include "doc/json_write.h"

/* ---- out ---- */

bool v1_read_view(struct api_call *call, enum schema_view *view)
{
    *view = SCHEMA_HIDDEN;
    if (!api_query_flag(call, "secrets"))
        return true;
    if (call->role < API_ADMIN) {
        api_fail(call, 403, "forbidden", "secrets", "the token's role is %s, secrets are shown to admin only",
                 api_role_word(call->role));
        return false;
    }
    *view = SCHEMA_PLAIN;
    log_notice("api: %.*s is shown secrets of %.*s", SLICE_ARG(call->who), SLICE_ARG(call->request->path));
    return true;
}

static void write_view(const struct schema_section *section, enum schema_view view,
                       const struct doc_node *node, struct text *out)
{
    if (view == SCHEMA_PLAIN)
        json_write(node, NULL, out);
    else
        secret_write(section, node, out);
}

void v1_write_item(const struct resource *resource, enum schema_view view, const struct doc_node *item,
                   struct slice id, struct text *out)
{
    struct text text;
    text_init(&text);
    write_view(resource_section(resource), view, item, &text);
    text_add(out, SLICE("{\"id\":"));
    text_json(out, id);
    if (text.len > 2)
        text_add(out, SLICE(","));
    text_add(out, slice_of(text.data + 1, text.len - 1));
    text_fini(&text);
}

void v1_write_document(const struct doc_node *root, enum schema_view view, struct text *out)
{
    write_view(&schema_config, view, root, out);
}

/* ---- in ---- */

static const struct resource *resource_of(const struct schema_section *section)
{
#define RESOURCE(id, path, param, what)                                                                      \
    if (resource_section(&resource_##id) == section)                                                         \
        return &resource_##id;
#include "v1/resources.def"
#undef RESOURCE
    return NULL;
}

static bool shows_alike(const struct schema_section *section, const struct doc_node *a,
                        const struct doc_node *b)
{
    struct text x, y;
    text_init(&x);
    text_init(&y);
    secret_write(section, a, &x);
    secret_write(section, b, &y);
    bool is_alike = slice_eq(text_slice(&x), text_slice(&y));
    text_fini(&x);
    text_fini(&y);
    return is_alike;
}

/* What an item of a list was: the one of its id, or else the only one that was shown just like it. NULL:
 * nobody can say, and its marks stay, to be refused. */
static const struct doc_node *former(const struct schema_section *section, const struct doc_node *item,
                                     const struct doc_node *list, struct arena *arena)
{
    const struct resource *resource = resource_of(section);
    struct slice id = resource ? resource_id(resource, item, arena) : (struct slice){0};
    const struct doc_node *found = id.ptr ? resource_find(resource, list, id, arena) : NULL;
    if (found)
        return found;
    for (const struct doc_node *one = list->first; one; one = one->next) {
        if (!shows_alike(section, item, one))
            continue;
        if (found)
            return NULL;
        found = one;
    }
    return found;
}

static void keep_value(struct doc_edit *edit, const struct schema_key *key, struct slice name,
                       struct doc_node *now, const struct doc_node *before)
{
    struct text shown;
    if (!before || before->kind == DOC_LIST || before->kind == DOC_MAP || !secret_is_hidden(key, name, now))
        return;
    text_init(&shown);
    secret_show(key, name, before->text, &shown);
    struct doc_node *copy = slice_eq(text_slice(&shown), now->text) ? doc_copy(edit->doc, before) : NULL;
    if (copy)
        doc_edit_replace(edit, now, copy);
    text_fini(&shown);
}

static const struct doc_node *value_of(const struct doc_node *map, struct slice key)
{
    for (const struct doc_node *child = map && map->kind == DOC_MAP ? map->first : NULL; child;
         child = child->next)
        if (slice_eq(child->key, key))
            return child;
    return NULL;
}

static void keep_pairs(struct doc_edit *edit, const struct schema_key *key, struct doc_node *now,
                       const struct doc_node *before)
{
    for (struct doc_node *child = now->first, *next; child; child = next) {
        next = child->next;
        keep_value(edit, key, child->key, child, value_of(before, child->key));
    }
}

static void keep_list(struct doc_edit *edit, const struct schema_section *section, struct doc_node *now,
                      const struct doc_node *before, struct arena *arena)
{
    if (now->kind != DOC_LIST || before->kind != DOC_LIST)
        return;
    for (struct doc_node *item = now->first; item; item = item->next) {
        const struct doc_node *old =
            secret_any_hidden(section, item) ? former(section, item, before, arena) : NULL;
        if (old)
            v1_keep_secrets(edit, section, item, old, arena);
    }
}

void v1_keep_secrets(struct doc_edit *edit, const struct schema_section *section, struct doc_node *now,
                     const struct doc_node *before, struct arena *arena)
{
    if (!before || !secret_any_hidden(section, now))
        return;
    if (now->kind == DOC_LIST) {
        keep_list(edit, section, now, before, arena);
        return;
    }
    for (struct doc_node *child = now->first, *next; child; child = next) {
        next = child->next;
        const struct schema_key *key = schema_find(section, child->key);
        const struct doc_node *old = value_of(before, child->key);
        if (!key || !old)
            continue;
        if (key->secret && child->kind == DOC_MAP)
            keep_pairs(edit, key, child, old);
        else if (key->secret)
            keep_value(edit, key, child->key, child, old);
        else if (key->section)
            v1_keep_secrets(edit, key->section, child, old, arena);
    }
}

void v1_keep_key(struct doc_edit *edit, struct doc_node *now, const struct doc_node *before)
{
    const struct doc_node *cert = doc_get(now, "cert_pem"), *old_cert = doc_get(before, "cert_pem"),
                          *old = doc_get(before, "key_pem");
    if (!cert || !old_cert || !old || doc_get(now, "key_pem") || !doc_eq(cert, old_cert))
        return;
    struct doc_node *copy = doc_copy(edit->doc, old);
    if (copy)
        doc_edit_set(edit, now, "key_pem", copy);
}
