/* SPDX-License-Identifier: Apache-2.0 */
/* Which target a session belongs to, in this process's memory (C2): a table of fixed size that every worker
 * reads and writes without a lock. Four entries share a cache line; a full line gives up the entry that would
 * expire first, so memory is bounded whatever clients send. Keys are hashes with a secret salt, made by the
 * caller. */
#ifndef ISOBAR_SHARED_LOCAL_H
#define ISOBAR_SHARED_LOCAL_H

#include "core/check.h"

#include <stdbool.h>
#include <stdint.h>

struct local_sessions;

/* Room for at least `entries`, 20 bytes each, rounded up to a power of two. Threads: control. */
struct local_sessions *local_sessions_new(uint32_t entries);
void local_sessions_free(struct local_sessions **sessions);

/* The target of a session that has not expired; its time is renewed, at most every few seconds, and then
 * *is_renewed (may be NULL) set. Units: `now_s` of a clock that only goes forward. Threads: any. */
bool local_sessions_find(struct local_sessions *sessions, uint64_t key, uint32_t now_s, uint32_t ttl_s,
                         uint32_t *target, bool *is_renewed);
struct local_session {
    uint32_t target;
    uint32_t bound_s;   /* when it was bound to this target */
    uint32_t expires_s; /* unless it is used before */
};

/* The same without renewing it. Threads: any. */
bool local_sessions_peek(const struct local_sessions *sessions, uint64_t key, uint32_t now_s,
                         struct local_session *session);
/* Binds or rebinds a session. A put that meets another one on the same line may be lost. Threads: any. */
void local_sessions_put(struct local_sessions *sessions, uint64_t key, uint32_t now_s, uint32_t ttl_s,
                        uint32_t target);
/* Forgets a session; false when there was none. Threads: any. */
bool local_sessions_drop(struct local_sessions *sessions, uint64_t key);
/* Entries that have not expired; walks the table. Threads: any. */
uint32_t local_sessions_count(const struct local_sessions *sessions, uint32_t now_s);

#endif
