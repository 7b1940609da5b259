/* SPDX-License-Identifier: Apache-2.0 */
/* The durable store of the configuration: a row of numbered versions, of which the last one is in force.
 * Every call is asynchronous on one loop (the control thread's): it returns at once and its answer function
 * runs exactly once in a later turn, at the latest when its deadline has passed, so a store that hangs holds
 * up neither signals nor the API nor traffic (H3, H5). Calls are carried out one after the other.
 *
 * A change is: validate -> store_commit() -> put in force -> answer. A commit names the version that it was
 * made from, so of two writers one wins and the other hears STORE_CONFLICT with the version to look at.
 * Whatever else moves the store (another node, another process on the same file) comes by on_changed: load,
 * then put in force.
 *
 * Where the configuration comes from when a process starts is store/boot.h. */
#ifndef ISOBAR_STORE_STORE_H
#define ISOBAR_STORE_STORE_H

#include "config/model.h"
#include "core/diag.h"
#include "core/err.h"
#include "net/loop.h"

struct printed;
struct store;

enum store_outcome {
    STORE_DONE,
    STORE_CONFLICT,    /* a newer version than the expected one is there; nothing changed */
    STORE_NOT_FOUND,   /* load: the store is empty; get: no such version, or no longer kept */
    STORE_UNAVAILABLE, /* the store cannot be asked; nothing changed */
    STORE_IN_DOUBT, /* a commit whose confirmation did not arrive; if it was made, on_changed will say so */
};

struct store_version {
    uint64_t number; /* from 1, without gaps but for those that retention dropped */
    uint64_t wall_ms;
    struct slice who;      /* "file", "api", "admin@10.0.0.1": as the commit said */
    struct slice diff;     /* what changed, as the commit said */
    struct slice document; /* JSON; ptr NULL in lists */
};

/* Valid during the call of the answer function only. */
struct store_answer {
    enum store_outcome outcome;
    uint64_t version;                     /* commit: the new one; CONFLICT: the current one */
    const struct store_version *versions; /* load and get: one; list: newest first */
    uint32_t n_versions;
    bool in_tables;     /* load: the tables beside the documents are those of this version */
    const char *reason; /* of UNAVAILABLE and IN_DOUBT, for people: "no connection to 10.0.0.7: timeout" */
};

/* Threads: the loop's. Never called from inside the call that asked. */
typedef void store_answer_fn(void *owner, const struct store_answer *answer);

struct store_change {
    uint64_t expected; /* the version this was made from; 0: the store must be empty */
    struct slice who;  /* at most STORE_WHO_MAX bytes are kept */
    struct slice diff; /* for people and the API; any text */
    /* The whole new document, without store_bootstrap_keys. What it has in common with the one before is not
     * stored again when that was committed here too, see store/chain.h. */
    const struct printed *document;
    const struct config *from; /* the same decoded, for the tables of pools and backends: what differs is */
    const struct config *to;   /* written. from may be NULL: everything is written. Not kept. */
};

enum { STORE_WHO_MAX = 256, STORE_LIST_MAX = 10000 };

/* Keys at the top of a document that come from the file of each node, because without them nothing could be
 * asked ("admin", "store"); ends with NULL. A stored document has none of them. */
extern const char *const store_bootstrap_keys[];

/* What happens without being asked. Threads: the loop's. */
struct store_events {
    void *owner; /* borrows; first argument of each */
    /* A version newer than any that was loaded or committed here is there: another node's. */
    void (*on_changed)(void *owner, uint64_t version);
    /* It went away, with the reason in store_reason(), or came back. */
    void (*on_available)(void *owner, bool is_available);
};

/* Can this build open the store that `config` names, if it names one? Nothing is opened. Errors:
 * ISO_ERR_INVALID, reported at /store/url. */
iso_err store_check(const struct config_store *config, struct iso_diag *diag) ISO_MUST_USE;

/* Begins to open the store that `config` names and returns; while it is not open store_is_available() is
 * false and calls wait for it up to their deadline. Fails only on a URL that cannot be. Copies what it needs.
 * `known`: the version in force, from store/boot.h. Errors: ISO_ERR_INVALID, reported at /store/url. */
iso_err store_open(const struct config_store *config, uint64_t known, struct loop *loop,
                   const struct store_events *events, struct store **out, struct iso_diag *diag) ISO_MUST_USE;
/* Calls that are not answered yet are answered STORE_UNAVAILABLE (a commit under way: STORE_IN_DOUBT) before
 * this returns. Waits for a write to the local disk that has begun, for `timeout_ms` at most, and for nothing
 * else; a disk that has not answered by then is named in the log with what may be missing there. */
void store_close(struct store **store);

/* The last version; the answer's document is what to put in force. */
void store_load(struct store *store, store_answer_fn *done, void *owner);
/* The document as version expected + 1, durable before the answer. */
void store_commit(struct store *store, const struct store_change *change, store_answer_fn *done, void *owner);
/* Up to `limit` versions below `below` (0: from the newest), newest first, without documents. */
void store_list(struct store *store, uint64_t below, uint32_t limit, store_answer_fn *done, void *owner);
void store_get(struct store *store, uint64_t number, store_answer_fn *done, void *owner);

/* Writes the tables of pools and backends anew for `version`; the answer to a load with in_tables false. */
void store_fill_tables(struct store *store, uint64_t version, const struct config *config,
                       store_answer_fn *done, void *owner);
/* What health says of backends now, for the table of them: rows as tables_add_state() makes them. No version
 * comes of it. */
void store_record_states(struct store *store, struct slice rows, store_answer_fn *done, void *owner);
/* This document came into force as this version: it is what a node starts from while the store is away (H3).
 * Writes the last good copy, in the background. */
void store_keep_good(struct store *store, uint64_t version, const struct printed *document);

bool store_is_available(const struct store *store);
/* Why it is not available; "" while it is. Valid until the loop's next turn. */
const char *store_reason(const struct store *store);

struct store_figures {
    uint64_t commits, conflicts, failures; /* failures: commits answered UNAVAILABLE or IN_DOUBT */
    uint64_t loads, reconnects, last_good_failures;
    uint64_t commit_ns_sum, commit_ns_max; /* from the call to the answer, of those that were made */
    uint64_t last_commit_wall_ns, last_error_wall_ns;
    uint64_t known;    /* the newest version seen */
    uint64_t in_force; /* that store_keep_good() named last */
};
const struct store_figures *store_figures(const struct store *store);

#endif
