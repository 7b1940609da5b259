/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration as a document: what the file said, as changes of the API and reloads have made it since.
 * It is what /v1 shows and edits; the decoded config and the snapshot are made from it.
 *
 * A change goes one way only: edit, decode and validate the whole, prepare (compile, bind), commit, put in
 * force, answer. Whatever fails on the way leaves document, version and traffic as they were. Changes wait in
 * line; each is made on what the one before left. Readers see a change when it is in force, not earlier.
 * Threads: control. */
#ifndef ISOBAR_DOCUMENT_DOCUMENT_H
#define ISOBAR_DOCUMENT_DOCUMENT_H

#include "api/api.h"
#include "core/list.h"
#include "doc/doc_edit.h"
#include "net/loop.h"

struct config;
struct document;
struct printed;
struct change;
struct idempotency_table;

/* How a configuration comes into force; the owner is the process. */
struct document_hooks {
    void *owner; /* borrows; first argument of each */
    /* Compiles the configuration (taken over on success only) and binds what is new. Nothing of it serves. On
     * failure nothing changed. `reads_files`: files that it names are read anew. */
    iso_err (*prepare)(void *owner, struct config **config, bool reads_files, struct iso_diag *diag);
    /* Puts what was prepared in force on every worker, then calls done, possibly at once. `is_patient`: new
     * targets get time for their first checks before. */
    void (*publish)(void *owner, bool is_patient, void (*done)(void *arg), void *arg);
    /* Forgets what was prepared. */
    void (*discard)(void *owner);
    /* The configuration in force. */
    const struct config *(*current)(void *owner);
    /* Makes the prepared change durable: change->printed as the version behind document_version(). Calls
     * document_committed() once, later. NULL: there is no store, and versions are counted here. */
    void (*commit)(void *owner, struct change *change);
    /* A version came into force; `printed` is the document without the local keys. NULL: nobody asks. */
    void (*in_force)(void *owner, uint64_t version, const struct printed *printed);
    /* Keys of the root that are not part of what is committed: they come from the file of each node. Ends
     * with NULL; may be NULL. */
    const char *const *local_keys;
};

/* What became of a commit. */
enum commit_outcome {
    COMMIT_MADE,
    COMMIT_CONFLICT, /* another node's version is newer; it comes into force here by itself */
    COMMIT_FAILED,   /* the store is away: nothing changed */
    COMMIT_IN_DOUBT, /* it may have been made, and then comes into force by itself */
};

/* What became of a change. */
enum change_outcome {
    CHANGE_MADE,      /* in force, as change->version */
    CHANGE_NONE,      /* it would change nothing; change->version is the current one */
    CHANGE_TRIED,     /* a dry run: nothing changed */
    CHANGE_REFUSED,   /* the edit, or validation; change->diag, and change->call has its answer */
    CHANGE_FAILED,    /* it cannot be put in force: an address in use */
    CHANGE_ABANDONED, /* the process ends */
};

/* A change on its way. Whoever makes one embeds this, zeroed but for what is said here, in memory that lives
 * until `done` was called. */
struct change {
    /* set by the maker */
    struct api_call *call; /* whom to answer, by api_finish() after `done`; NULL: nobody */
    struct slice who;      /* for the history */
    bool is_dry_run;
    bool is_by_meaning; /* what only says the same in other words (a default) is no change */
    bool is_patient;    /* see document_hooks.publish */
    bool reads_files;   /* see document_hooks.prepare */
    /* Makes the steps in change->edit, or fills change->fresh. False: refused, and the call has its answer.
     */
    bool (*make)(struct change *change);
    /* Tells the outcome. With a dry run, `tried` is the configuration that would be; else it is NULL. */
    void (*done)(struct change *change, enum change_outcome outcome, const struct config *tried);
    void (*free)(struct change *change); /* called last; NULL: the memory is the call's */
    const char *prefix; /* in the call's arena: of paths in faults, which are shown without it; NULL: none */

    /* set by the document */
    struct document *document;
    struct doc_edit edit;
    struct iso_diag diag;
    uint64_t version;
    bool is_unchanged;           /* the document is as it was; only files are read anew */
    const struct config *config; /* what is or would be in force */

    /* The whole document anew, in place of steps; owned. */
    struct doc *fresh;
    /* Of it, decoded already: then it is not done again. Owned until it is prepared. */
    struct config *fresh_config;
    /* Not 0: it is in the store already, as this version, so it is not committed (a change of another node)
     * and comes into force even when it changes nothing but the number. */
    uint64_t stored_version;

    struct list node;
    uint64_t wall_ms;        /* when it came into force */
    struct text changes;     /* owns: as version_info.changes */
    struct printed *printed; /* shared (counted): what is committed */
};

enum { DOCUMENT_QUEUE_MAX = 1000 };

/* `doc` is taken over (the struct is copied); `base_dir` is copied. `version` is that of the configuration in
 * force. */
struct document *document_new(struct loop *loop, const struct document_hooks *hooks, struct doc *doc,
                              const char *base_dir, uint64_t version, struct slice who);
/* Changes that wait are abandoned. */
void document_free(struct document **document);

/* The answer to document_hooks.commit. `version`: the new one, or with COMMIT_CONFLICT the one that is there.
 */
void document_committed(struct change *change, enum commit_outcome outcome, uint64_t version,
                        const char *reason);

/* Takes a change; `done` is called once, possibly before this returns. */
void document_submit(struct document *document, struct change *change);
/* From now on changes are refused: the process is ending. */
void document_close(struct document *document);

/* What is in force. Borrowed until the next change. */
struct doc *document_doc(struct document *document);
/* Its text, without the local keys. */
const struct printed *document_printed(const struct document *document);
const struct config *document_config(const struct document *document);
uint64_t document_version(const struct document *document);
const char *document_base_dir(const struct document *document);
/* The answers that requests with an Idempotency-Key were given. */
struct idempotency_table *document_idempotency(struct document *document);

struct version_info {
    uint64_t number, wall_ms;
    struct slice who;
    struct slice changes;          /* JSON: a list of {object, change, what} */
    struct slice document;         /* JSON; ptr NULL: not at hand, or as `printed` */
    const struct printed *printed; /* of one that this process remembers */
};

/* What differs between two configurations, as a JSON list of {object, change, what}. */
void document_write_changes(const struct config *from, const struct config *to, struct text *out);

/* Versions that are still known, newest first: the index-th, NULL behind the last. Borrowed until the next
 * change. */
const struct version_info *document_history(const struct document *document, size_t index);
const struct version_info *document_find_version(const struct document *document, uint64_t number);

#endif
