/* SPDX-License-Identifier: Apache-2.0 */
/* What a kind of store (SQLite, PostgreSQL) gives and gets. A kind has one call at a time; everything here
 * runs on the loop's thread. */
#ifndef ISOBAR_STORE_STORE_INTERNAL_H
#define ISOBAR_STORE_STORE_INTERNAL_H

#include "store/call.h"
#include "store/store.h"

enum { STORE_RETRY_MIN_MS = 100, STORE_RETRY_MAX_MS = 10000 };

/* A variant. Each is a const table at the end of its file and a line in kinds.def. */
struct store_kind {
    const char *scheme; /* "sqlite" */
    const struct dialect *dialect;
    /* Can this build open it? NULL: yes. Errors: ISO_ERR_INVALID, reported. */
    iso_err (*check)(struct iso_diag *diag);
    /* Begins to open `url`; afterwards store_is_up() or store_is_down() is called whenever that changes, the
     * first time in a later turn. Errors: ISO_ERR_INVALID, reported. */
    iso_err (*open)(struct store *store, struct slice url, void **kind, struct iso_diag *diag);
    /* Runs the statements; store_call_done() later, never inside. The store is up. */
    void (*run)(void *kind, struct store_call *call);
    /* The call's deadline has passed and nobody waits for it; store_call_done() is still due, soon. */
    void (*give_up)(void *kind, struct store_call *call);
    /* Ends; the call that is running comes back by store_call_done() inside. */
    void (*close)(void **kind);
};

struct loop *store_loop(const struct store *store);
uint32_t store_timeout_ms(const struct store *store);

/* The store answers; its newest version is `version`. */
void store_is_up(struct store *store, uint64_t version);
/* It does not, and the kind tries again by itself. */
void store_is_down(struct store *store, const char *fmt, ...) ISO_PRINTF(2, 3);
/* Somebody's commit was noticed. */
void store_moved(struct store *store, uint64_t version);
void store_call_done(struct store *store, struct store_call *call);
/* At the end: the call is still with a thread that nobody waits for any longer, and was answered. The kind
 * frees it. */
void store_call_left(struct store *store, struct store_call *call);
/* The wait before attempt number `attempt` (from 0), doubling, with jitter. */
uint64_t store_retry_ns(uint32_t attempt);

#endif
