/* SPDX-License-Identifier: Apache-2.0 */
/* What is still to be written to the shared store: the last value of each key, oldest first, so that nothing
 * is lost while the store is away (C5). Bounded: when it is full the oldest is given up and counted. Pure;
 * one thread. */
#ifndef ISOBAR_SHARED_OUTBOX_H
#define ISOBAR_SHARED_OUTBOX_H

#include "core/list.h"
#include "core/slice.h"

struct outbox;

struct outbox_entry {
    struct slice key, value; /* value.ptr NULL: the key is to be deleted */
    uint64_t expires_ns;     /* monotonic; of the value */
    /* the outbox's */
    uint32_t version, sent_version; /* differ: there is something newer than what was sent */
    struct list order, slot;
};

struct outbox *outbox_new(uint32_t max);
void outbox_free(struct outbox **outbox);

/* Puts a write in, in place of an earlier one of the key. Aborts when memory ends. */
void outbox_put(struct outbox *outbox, struct slice key, struct slice value, uint64_t expires_ns);
/* The oldest that waits to be sent, or NULL; from now on it counts as sent until outbox_done(). Those that
 * have expired are dropped. */
struct outbox_entry *outbox_next(struct outbox *outbox, uint64_t now_ns);
/* What became of one that was sent: it leaves, or waits again. */
void outbox_done(struct outbox *outbox, struct outbox_entry *entry, bool is_stored);

uint32_t outbox_count(const struct outbox *outbox);
/* Given up because it was full. */
uint64_t outbox_lost(const struct outbox *outbox);

#endif
