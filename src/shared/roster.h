/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes tell each other of targets (H2): each writes what it finds, server:GROUP/TARGET with status,
 * last_check, address, weight, tags and node, and announces changes on a channel; entries end when nobody
 * writes them any more. A node that hears of trouble counts who says so and looks for itself at once:
 * nobody's word alone takes a target out. Runs on the thread of shared/state; reads targets' states as the
 * workers do. */
#ifndef ISOBAR_SHARED_ROSTER_H
#define ISOBAR_SHARED_ROSTER_H

#include "net/loop.h"
#include "shared/redis.h"

struct roster;

/* One target; what it points to outlives the roster's next roster_set(). */
struct roster_target {
    struct slice group, name; /* copied */
    struct slice tags;        /* copied: "canary,datacenter=eu" */
    uint32_t weight;
    const _Atomic uint32_t *state;           /* by numbers that the words are for */
    const _Atomic uint64_t *checked_wall_ns; /* 0: never */
    _Atomic uint32_t *accusers;              /* written: other nodes that say it is unhealthy */
    void *arg;                               /* of suspect() */
};

struct roster_words {
    const char *(*of_state)(uint32_t state); /* "healthy", "unhealthy", ... */
    void (*suspect)(void *arg);              /* another node says "unhealthy": look. Threads: any */
};

extern const char roster_channel[];

/* `loop` is the thread's. */
struct roster *roster_new(struct loop *loop);
void roster_free(struct roster **roster);

/* The targets from now on; what others said of those that stay is kept. */
void roster_set(struct roster *roster, const struct roster_words *words, const struct roster_target *targets,
                uint32_t n);
/* Where to write; NULL: nowhere. */
void roster_use(struct roster *roster, struct redis *redis);
/* The server is back, and may have forgotten everything. */
void roster_again(struct roster *roster);
/* Something came on the channel. */
void roster_hear(struct roster *roster, struct slice text);

#endif
