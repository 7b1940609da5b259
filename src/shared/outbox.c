/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/outbox.h"

#include "core/check.h"
#include "core/hash.h"

#include <stdlib.h>

enum { SLOTS = 4096 };

struct outbox {
    uint32_t max, n;
    uint64_t lost;
    struct list waiting, sent; /* oldest first */
    struct list slots[SLOTS];
};

struct outbox *outbox_new(uint32_t max)
{
    struct outbox *outbox = calloc(1, sizeof(*outbox));
    iso_assert(outbox != NULL && max > 0);
    outbox->max = max;
    list_init(&outbox->waiting);
    list_init(&outbox->sent);
    for (int i = 0; i < SLOTS; i++)
        list_init(&outbox->slots[i]);
    return outbox;
}

static void drop(struct outbox *outbox, struct outbox_entry *entry)
{
    list_remove(&entry->order);
    list_remove(&entry->slot);
    free((char *)entry->key.ptr);
    free((char *)entry->value.ptr);
    free(entry);
    outbox->n--;
}

void outbox_free(struct outbox **freed)
{
    struct outbox *outbox = *freed;
    *freed = NULL;
    if (!outbox)
        return;
    list_for_each_safe (node, next, &outbox->waiting)
        drop(outbox, container_of(node, struct outbox_entry, order));
    list_for_each_safe (node, next, &outbox->sent)
        drop(outbox, container_of(node, struct outbox_entry, order));
    free(outbox);
}

static struct slice copy(struct slice s)
{
    if (!s.ptr)
        return s;
    char *text = strndup(s.ptr, s.len);
    iso_assert(text != NULL);
    return slice_of(text, s.len);
}

static struct list *slot_of(struct outbox *outbox, struct slice key)
{
    return &outbox->slots[iso_hash64(key, 0) % SLOTS];
}

static struct outbox_entry *find(struct outbox *outbox, struct slice key)
{
    list_for_each (node, slot_of(outbox, key)) {
        struct outbox_entry *entry = container_of(node, struct outbox_entry, slot);
        if (slice_eq(entry->key, key))
            return entry;
    }
    return NULL;
}

static struct outbox_entry *add(struct outbox *outbox, struct slice key)
{
    if (outbox->n >= outbox->max && !list_is_empty(&outbox->waiting)) {
        drop(outbox, container_of(outbox->waiting.next, struct outbox_entry, order));
        outbox->lost++;
    }
    struct outbox_entry *entry = calloc(1, sizeof(*entry));
    iso_assert(entry != NULL);
    entry->key = copy(key);
    list_push_back(slot_of(outbox, key), &entry->slot);
    list_push_back(&outbox->waiting, &entry->order);
    outbox->n++;
    return entry;
}

void outbox_put(struct outbox *outbox, struct slice key, struct slice value, uint64_t expires_ns)
{
    struct outbox_entry *entry = find(outbox, key);
    if (!entry)
        entry = add(outbox, key);
    free((char *)entry->value.ptr);
    entry->value = copy(value);
    entry->expires_ns = expires_ns;
    entry->version++;
}

struct outbox_entry *outbox_next(struct outbox *outbox, uint64_t now_ns)
{
    while (!list_is_empty(&outbox->waiting)) {
        struct outbox_entry *entry = container_of(outbox->waiting.next, struct outbox_entry, order);
        if (entry->value.ptr && entry->expires_ns <= now_ns) {
            drop(outbox, entry);
            continue;
        }
        list_remove(&entry->order);
        list_push_back(&outbox->sent, &entry->order);
        entry->sent_version = entry->version;
        return entry;
    }
    return NULL;
}

void outbox_done(struct outbox *outbox, struct outbox_entry *entry, bool is_stored)
{
    if (is_stored && entry->version == entry->sent_version) {
        drop(outbox, entry);
        return;
    }
    list_remove(&entry->order);
    list_push_back(&outbox->waiting, &entry->order);
}

uint32_t outbox_count(const struct outbox *outbox)
{
    return outbox->n;
}

uint64_t outbox_lost(const struct outbox *outbox)
{
    return outbox->lost;
}
