/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/local.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WAYS = 4, RENEW_AFTER_S = 5 };
enum { KEY_FREE = 0, KEY_BUSY = 1 }; /* no key has these values */

/* `value` is the target in the high half, the second of expiry in the low one. A writer takes an entry by
 * exchanging its key for KEY_BUSY; a reader that saw the same key before and after the value has read a pair.
 */
struct entry {
    _Atomic uint64_t key, value;
};

struct local_sessions {
    uint32_t mask;               /* lines - 1 */
    struct entry (*lines)[WAYS]; /* owns */
    /* owns; [lines * WAYS]: when each entry was bound. Apart, since only people ask for it. */
    _Atomic uint32_t *bound_s;
};

struct local_sessions *local_sessions_new(uint32_t entries)
{
    struct local_sessions *sessions = malloc(sizeof(*sessions));
    uint32_t lines = 1;
    while (lines < 1u << 28 && (uint64_t)lines * WAYS < entries)
        lines *= 2;
    iso_assert(sessions != NULL);
    sessions->mask = lines - 1;
    sessions->lines = aligned_alloc(ISO_CACHE_LINE, (size_t)lines * sizeof(*sessions->lines));
    iso_assert(sessions->lines != NULL);
    memset(sessions->lines, 0, (size_t)lines * sizeof(*sessions->lines));
    sessions->bound_s = calloc((size_t)lines * WAYS, sizeof(*sessions->bound_s));
    iso_assert(sessions->bound_s != NULL);
    return sessions;
}

void local_sessions_free(struct local_sessions **sessions)
{
    if (*sessions) {
        free((*sessions)->lines);
        free((void *)(*sessions)->bound_s);
    }
    free(*sessions);
    *sessions = NULL;
}

static uint64_t usable_key(uint64_t key)
{
    return key > KEY_BUSY ? key : key + 2;
}

static struct entry *line_of(const struct local_sessions *sessions, uint64_t key)
{
    return sessions->lines[(uint32_t)(key >> 32) & sessions->mask];
}

static struct entry *find(const struct local_sessions *sessions, uint64_t key)
{
    struct entry *line = line_of(sessions, key);
    for (int i = 0; i < WAYS; i++)
        if (atomic_load_explicit(&line[i].key, memory_order_acquire) == key)
            return &line[i];
    return NULL;
}

static _Atomic uint32_t *bound_of(const struct local_sessions *sessions, const struct entry *entry)
{
    return &sessions->bound_s[entry - sessions->lines[0]];
}

bool local_sessions_find(struct local_sessions *sessions, uint64_t key, uint32_t now_s, uint32_t ttl_s,
                         uint32_t *target, bool *is_renewed)
{
    key = usable_key(key);
    struct entry *entry = find(sessions, key);
    if (!entry)
        return false;
    uint64_t value = atomic_load_explicit(&entry->value, memory_order_acquire);
    uint32_t expires_s = (uint32_t)value;
    if (atomic_load_explicit(&entry->key, memory_order_acquire) != key || expires_s <= now_s)
        return false;
    if (expires_s < now_s + ttl_s - (ttl_s > RENEW_AFTER_S ? RENEW_AFTER_S : 0)) {
        uint64_t renewed = (value >> 32 << 32) | (now_s + ttl_s);
        bool is_ours = atomic_compare_exchange_strong_explicit(&entry->value, &value, renewed,
                                                               memory_order_acq_rel, memory_order_relaxed);
        if (is_renewed)
            *is_renewed = is_ours;
    }
    *target = (uint32_t)(value >> 32);
    return true;
}

bool local_sessions_peek(const struct local_sessions *sessions, uint64_t key, uint32_t now_s,
                         struct local_session *session)
{
    key = usable_key(key);
    struct entry *entry = find(sessions, key);
    if (!entry)
        return false;
    uint64_t value = atomic_load_explicit(&entry->value, memory_order_acquire);
    uint32_t bound_s = atomic_load_explicit(bound_of(sessions, entry), memory_order_acquire);
    if (atomic_load_explicit(&entry->key, memory_order_acquire) != key || (uint32_t)value <= now_s)
        return false;
    *session = (struct local_session){(uint32_t)(value >> 32), bound_s, (uint32_t)value};
    return true;
}

/* An entry to overwrite: free or expired, else the one that expires first. */
static struct entry *victim(struct entry *line, uint32_t now_s)
{
    struct entry *first = &line[0];
    uint32_t first_s = UINT32_MAX;
    for (int i = 0; i < WAYS; i++) {
        uint32_t expires_s = (uint32_t)atomic_load_explicit(&line[i].value, memory_order_relaxed);
        if (atomic_load_explicit(&line[i].key, memory_order_relaxed) == KEY_FREE || expires_s <= now_s)
            return &line[i];
        if (expires_s < first_s) {
            first_s = expires_s;
            first = &line[i];
        }
    }
    return first;
}

void local_sessions_put(struct local_sessions *sessions, uint64_t key, uint32_t now_s, uint32_t ttl_s,
                        uint32_t target)
{
    key = usable_key(key);
    struct entry *entry = find(sessions, key);
    if (!entry)
        entry = victim(line_of(sessions, key), now_s);
    uint64_t old = atomic_load_explicit(&entry->key, memory_order_relaxed);
    if (old == KEY_BUSY || !atomic_compare_exchange_strong_explicit(
                               &entry->key, &old, KEY_BUSY, memory_order_acq_rel, memory_order_relaxed))
        return;
    atomic_store_explicit(&entry->value, (uint64_t)target << 32 | (now_s + ttl_s), memory_order_release);
    atomic_store_explicit(bound_of(sessions, entry), now_s, memory_order_release);
    atomic_store_explicit(&entry->key, key, memory_order_release);
}

bool local_sessions_drop(struct local_sessions *sessions, uint64_t key)
{
    key = usable_key(key);
    struct entry *entry = find(sessions, key);
    return entry && atomic_compare_exchange_strong_explicit(&entry->key, &key, KEY_FREE, memory_order_acq_rel,
                                                            memory_order_relaxed);
}

uint32_t local_sessions_count(const struct local_sessions *sessions, uint32_t now_s)
{
    uint32_t n = 0;
    for (uint32_t line = 0; line <= sessions->mask; line++)
        for (int i = 0; i < WAYS; i++) {
            struct entry *entry = &sessions->lines[line][i];
            n += atomic_load_explicit(&entry->key, memory_order_relaxed) > KEY_BUSY &&
                 (uint32_t)atomic_load_explicit(&entry->value, memory_order_relaxed) > now_s;
        }
    return n;
}
