/* SPDX-License-Identifier: Apache-2.0 */
#include "document/idempotency.h"

#include "core/clock.h"
#include "core/hash.h"
#include "document/document.h"

#include <stdlib.h>

struct idempotency {
    struct idempotency_table *table;
    struct list node; /* in table->entries */
    char *key;        /* owns */
    uint64_t request; /* a hash of what was asked for, by whom */
    uint64_t until_ns;
    bool is_done;
    unsigned status;
    char *location, *etag; /* owns; NULL: none */
    char *body;            /* owns */
    size_t len;
};

struct idempotency_table {
    struct list entries; /* oldest first */
    uint32_t n;
    size_t bytes;
};

struct idempotency_table *idempotency_table_new(void)
{
    struct idempotency_table *table = calloc(1, sizeof(*table));
    iso_assert(table != NULL);
    list_init(&table->entries);
    return table;
}

static void forget(struct idempotency *entry)
{
    list_remove(&entry->node);
    entry->table->n--;
    entry->table->bytes -= entry->len;
    free(entry->key);
    free(entry->location);
    free(entry->etag);
    free(entry->body);
    free(entry);
}

void idempotency_table_free(struct idempotency_table **taken)
{
    struct idempotency_table *table = *taken;
    *taken = NULL;
    if (!table)
        return;
    list_for_each_safe (node, next, &table->entries)
        forget(container_of(node, struct idempotency, node));
    free(table);
}

static char *copy(struct slice s)
{
    char *out = s.ptr ? strndup(s.ptr, s.len) : NULL;
    iso_assert(!s.ptr || out);
    return out;
}

static void make_room(struct idempotency_table *table)
{
    uint64_t now_ns = clock_mono_ns();
    list_for_each_safe (node, next, &table->entries) {
        struct idempotency *entry = container_of(node, struct idempotency, node);
        bool is_too_much = table->n >= IDEMPOTENCY_ENTRIES || table->bytes > IDEMPOTENCY_BYTES;
        if (entry->is_done && (is_too_much || entry->until_ns < now_ns))
            forget(entry);
    }
}

static uint64_t hash_of(struct api_call *call)
{
    return iso_hash64(call->body, iso_hash64(call->request->target, iso_hash64(call->who, 0)));
}

static void replay(struct api_call *call, const struct idempotency *entry)
{
    struct arena *arena = &call->arena;
    call->reply.status = entry->status;
    text_add(&call->reply.body, slice_of(entry->body, entry->len));
    if (entry->etag)
        call->reply.etag = slice_str(arena_str(arena, entry->etag));
    if (entry->location)
        call->reply.location = slice_str(arena_str(arena, entry->location));
}

bool idempotency_begin(struct api_call *call, struct idempotency **pending)
{
    struct idempotency_table *table = document_idempotency(call->document);
    struct slice key = api_field(call, "idempotency-key");
    uint64_t request = hash_of(call);
    *pending = NULL;
    if (!key.ptr || api_query_flag(call, "dry_run"))
        return true;
    if (key.len == 0 || key.len > IDEMPOTENCY_KEY_MAX) {
        api_fail(call, 400, "invalid", "Idempotency-Key", "expected 1 to %d characters", IDEMPOTENCY_KEY_MAX);
        return false;
    }
    make_room(table);
    list_for_each (node, &table->entries) {
        struct idempotency *entry = container_of(node, struct idempotency, node);
        if (!slice_eq(slice_str(entry->key), key))
            continue;
        if (entry->request != request)
            api_fail(call, 422, "key_reused", "Idempotency-Key", "was used for another request");
        else if (!entry->is_done)
            api_fail(call, 409, "in_progress", "Idempotency-Key", "the same request is being carried out");
        else
            replay(call, entry);
        return false;
    }
    struct idempotency *entry = calloc(1, sizeof(*entry));
    iso_assert(entry != NULL);
    *entry = (struct idempotency){.table = table, .key = copy(key), .request = request};
    list_push_back(&table->entries, &entry->node);
    table->n++;
    *pending = entry;
    return true;
}

void idempotency_end(struct idempotency **taken, const struct api_call *call)
{
    struct idempotency *entry = *taken;
    *taken = NULL;
    if (call->reply.status >= 300) {
        forget(entry);
        return;
    }
    entry->is_done = true;
    entry->until_ns = clock_mono_ns() + IDEMPOTENCY_S * NS_PER_S;
    entry->status = call->reply.status;
    entry->location = copy(call->reply.location);
    entry->etag = copy(call->reply.etag);
    entry->body = copy(text_slice(&call->reply.body));
    entry->len = call->reply.body.len;
    entry->table->bytes += entry->len;
}
