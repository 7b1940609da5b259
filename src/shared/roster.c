/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/roster.h"

#include "core/clock.h"
#include "core/hash.h"
#include "core/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum {
    LOOK_MS = 200,
    WRITES_PER_LOOK = 64,
    WRITE_AGAIN_S = 60,
    KEPT_S = 300, /* an entry in the store, and another node's word here */
    OTHERS_MAX = 16,
    ID_MAX = 512,
    NOT_SAID = 0xffffffffu,
};

const char roster_channel[] = "isobar:health";

/* What another node said last. */
struct word {
    uint64_t node, heard_ns;
    bool is_bad;
};

struct entry {
    char *id;            /* owns: GROUP/NAME */
    char *tags;          /* owns */
    const char *address; /* in id: NAME */
    struct roster_target target;
    uint32_t said;
    uint64_t said_ns;
    struct word others[OTHERS_MAX];
};

struct roster {
    struct loop *loop;
    struct loop_timer timer;
    struct redis *redis; /* borrows; NULL: none */
    struct roster_words words;
    struct entry *entries; /* owns */
    uint32_t n, next;
    char node[17]; /* our name on the channel */
};

static void on_done(void *owner, void *arg, const struct resp_value *reply) {}

static bool write_entry(struct roster *roster, struct entry *entry, const char *status, bool is_news)
{
    char key[ID_MAX + 16], checked[24], weight[16], text[ID_MAX + 64];
    uint64_t checked_ns =
        atomic_load_explicit((_Atomic uint64_t *)entry->target.checked_wall_ns, memory_order_relaxed);
    snprintf(key, sizeof(key), "server:%s", entry->id);
    snprintf(checked, sizeof(checked), "%lu", (unsigned long)(checked_ns / NS_PER_S));
    snprintf(weight, sizeof(weight), "%u", entry->target.weight);
    struct slice hset[] = {
        SLICE("HSET"),       slice_str(key),         SLICE("status"),  slice_str(status),
        SLICE("last_check"), slice_str(checked),     SLICE("address"), slice_str(entry->address),
        SLICE("tags"),       slice_str(entry->tags), SLICE("weight"),  slice_str(weight),
        SLICE("node"),       slice_str(roster->node)};
    struct slice expire[] = {SLICE("EXPIRE"), slice_str(key), SLICE("300")};
    _Static_assert(KEPT_S == 300, "as written above");
    if (!redis_call(roster->redis, hset, iso_countof(hset), on_done, NULL) ||
        !redis_call(roster->redis, expire, iso_countof(expire), on_done, NULL))
        return false;
    int n = snprintf(text, sizeof(text), "%s %s %s", roster->node, status, entry->id);
    struct slice publish[] = {SLICE("PUBLISH"), slice_str(roster_channel), slice_of(text, (size_t)n)};
    return !is_news || redis_call(roster->redis, publish, iso_countof(publish), on_done, NULL);
}

static bool say(struct roster *roster, struct entry *entry)
{
    uint64_t now_ns = roster->loop->now_ns;
    uint32_t state = atomic_load_explicit((_Atomic uint32_t *)entry->target.state, memory_order_relaxed);
    bool is_news = state != entry->said;
    if (!is_news && now_ns < entry->said_ns + WRITE_AGAIN_S * NS_PER_S)
        return false;
    if (!write_entry(roster, entry, roster->words.of_state(state), is_news))
        return false;
    entry->said = state;
    entry->said_ns = now_ns;
    return true;
}

static void count_accusers(const struct roster *roster, struct entry *entry)
{
    uint32_t n = 0;
    for (int i = 0; i < OTHERS_MAX; i++)
        n += entry->others[i].is_bad && roster->loop->now_ns < entry->others[i].heard_ns + KEPT_S * NS_PER_S;
    atomic_store_explicit(entry->target.accusers, n, memory_order_relaxed);
}

static void on_look(struct loop *loop, struct loop_timer *timer)
{
    struct roster *roster = container_of(timer, struct roster, timer);
    bool is_good = roster->redis && redis_health(roster->redis) == REDIS_GOOD;
    for (uint32_t i = 0; i < roster->n; i++)
        count_accusers(roster, &roster->entries[i]);
    uint32_t said = 0;
    for (uint32_t i = 0; is_good && i < roster->n && said < WRITES_PER_LOOK; i++) {
        said += say(roster, &roster->entries[roster->next % roster->n]);
        roster->next++;
    }
    if (roster->n)
        loop_timer_set(loop, timer, loop->now_ns + LOOK_MS * NS_PER_MS);
}

static struct entry *find(const struct roster *roster, struct slice id)
{
    for (uint32_t i = 0; i < roster->n; i++)
        if (slice_eq(slice_str(roster->entries[i].id), id))
            return &roster->entries[i];
    return NULL;
}

/* The place for a node's word: its own, else the one heard longest ago. */
static struct word *word_of(struct entry *entry, uint64_t node)
{
    struct word *oldest = &entry->others[0];
    for (int i = 0; i < OTHERS_MAX; i++) {
        if (entry->others[i].node == node)
            return &entry->others[i];
        if (entry->others[i].heard_ns < oldest->heard_ns)
            oldest = &entry->others[i];
    }
    return oldest;
}

void roster_hear(struct roster *roster, struct slice text)
{
    struct slice node, status;
    if (!slice_next(&text, ' ', &node) || !slice_next(&text, ' ', &status) ||
        slice_eq(node, slice_str(roster->node)))
        return;
    struct entry *entry = find(roster, text);
    if (!entry)
        return;
    struct word *word = word_of(entry, iso_hash64(node, 0));
    bool is_bad = slice_eq(status, SLICE("unhealthy"));
    if (is_bad && !(word->is_bad && word->node == iso_hash64(node, 0)))
        log_notice("shared state: another node finds target %s unhealthy; it is checked here", entry->id);
    *word = (struct word){iso_hash64(node, 0), roster->loop->now_ns, is_bad};
    count_accusers(roster, entry);
    if (is_bad)
        roster->words.suspect(entry->target.arg);
}

struct roster *roster_new(struct loop *loop)
{
    struct roster *roster = calloc(1, sizeof(*roster));
    uint64_t name = clock_wall_ns();
    iso_assert(roster != NULL);
    roster->loop = loop;
    loop_timer_init(&roster->timer, on_look);
    if (getrandom(&name, sizeof(name), GRND_NONBLOCK) != sizeof(name))
        log_debug("no random numbers from the kernel yet; the clock names this node");
    snprintf(roster->node, sizeof(roster->node), "%016lx", name);
    return roster;
}

static void free_entries(struct entry *entries, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        free(entries[i].id);
        free(entries[i].tags);
    }
    free(entries);
}

void roster_free(struct roster **freed)
{
    struct roster *roster = *freed;
    *freed = NULL;
    if (roster)
        free_entries(roster->entries, roster->n);
    free(roster);
}

void roster_set(struct roster *roster, const struct roster_words *words, const struct roster_target *targets,
                uint32_t n)
{
    struct entry *entries = calloc(n + 1, sizeof(*entries));
    iso_assert(entries != NULL);
    for (uint32_t i = 0; i < n; i++) {
        char id[ID_MAX];
        snprintf(id, sizeof(id), "%.*s/%.*s", SLICE_ARG(targets[i].group), SLICE_ARG(targets[i].name));
        const struct entry *old = find(roster, slice_str(id));
        if (old)
            entries[i] = *old;
        else
            entries[i].said = NOT_SAID;
        entries[i].id = strdup(id);
        entries[i].tags = strndup(targets[i].tags.ptr ? targets[i].tags.ptr : "", targets[i].tags.len);
        entries[i].target = targets[i];
        size_t at = targets[i].group.len + 1;
        entries[i].address = entries[i].id + (at < strlen(id) ? at : 0);
        iso_assert(entries[i].id != NULL && entries[i].tags != NULL);
        if (old && (old->target.weight != targets[i].weight || strcmp(old->tags, entries[i].tags) != 0))
            entries[i].said_ns = 0; /* written at once, though it is no news of its health */
    }
    free_entries(roster->entries, roster->n);
    roster->entries = entries;
    roster->n = n;
    if (words)
        roster->words = *words;
    loop_timer_set(roster->loop, &roster->timer, roster->loop->now_ns);
}

void roster_use(struct roster *roster, struct redis *redis)
{
    roster->redis = redis;
    if (!redis)
        loop_timer_remove(roster->loop, &roster->timer);
    else
        loop_timer_set(roster->loop, &roster->timer, roster->loop->now_ns);
}

void roster_again(struct roster *roster)
{
    for (uint32_t i = 0; i < roster->n; i++)
        roster->entries[i].said = NOT_SAID;
}
