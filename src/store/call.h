/* SPDX-License-Identifier: Apache-2.0 */
/* One call of the store: what was asked, as SQL that every kind of store understands, and what came of it. A
 * kind runs the statements in order, hands each row to call_take_row() and tells call_next() how a statement
 * ended; it needs to know nothing else about what the call is for.
 *
 * The statements are a transaction whose last main one is COMMIT. One that had to bring a row and did not (or
 * broke a unique key) is a conflict: the rest is left out and the statements behind the main ones are run,
 * which roll back and find out what is there instead.
 *
 * A call belongs to the loop's thread; while a kind runs it on another one, that thread alone touches it but
 * for `progress`. */
#ifndef ISOBAR_STORE_CALL_H
#define ISOBAR_STORE_CALL_H

#include "core/arena.h"
#include "core/list.h"
#include "core/text.h"
#include "store/chain.h"
#include "store/store.h"

#include <stdatomic.h>

enum { STATEMENT_PARAMS_MAX = 9, CALL_STATEMENTS_MAX = 40, CALL_COLUMNS_MAX = 8 };

struct store_call;

/* Parameters are texts for $1, $2, ...; the SQL casts them. */
struct statement {
    const char *sql;
    struct slice params[STATEMENT_PARAMS_MAX];
    unsigned n_params;
    bool must_bring_row;
    bool is_commit;
    /* What to do with a row; NULL: nothing. A column is ptr NULL when it is NULL. */
    void (*take)(struct store_call *call, const struct slice *columns);
};

/* The two dialects differ in this only. */
struct dialect {
    const char *begin;      /* a transaction that may write */
    const char *each;       /* the elements of the JSON list $1, as e.value */
    const char *announce;   /* tells other nodes that version $1 is there; NULL: nothing does */
    const char *write_lock; /* held by writers to the end of their transaction; NULL: begin does that */
};

enum call_progress { CALL_BEGUN, CALL_COMMITTING, CALL_ABANDONED };

struct store_call {
    struct list node;
    struct arena arena; /* owns all texts */
    bool is_commit, writes;
    bool is_broken; /* what was read cannot be put together */
    store_answer_fn *done;
    void *owner;
    uint64_t begun_ns, due_ns;
    uint64_t expected;        /* of a commit; of a get: which one */
    char token[33];           /* of a commit: to find out whether it happened */
    struct printed *document; /* of a commit; shared (counted) */
    struct chain_row row;     /* of a commit: how it is kept */
    struct text text;         /* load and get: of the version read last */
    struct statement statements[CALL_STATEMENTS_MAX];
    unsigned n_statements, n_main, at;
    /* results */
    enum store_outcome outcome;
    uint64_t version;
    bool in_tables; /* load: pools and backends are those of this version */
    struct store_version *versions;
    uint32_t n_versions, cap_versions;
    const char *reason;
    bool is_answered; /* its deadline passed; what comes later is for the store only */
    /* any thread: atomic, acquire-release: who may still decide */
    _Atomic(enum call_progress) progress;
};

struct store_call *call_new(store_answer_fn *done, void *owner);
void call_free(struct store_call *call);

void call_make_load(struct store_call *call);
void call_make_list(struct store_call *call, uint64_t below, uint32_t limit);
void call_make_get(struct store_call *call, uint64_t number);
void call_make_commit(struct store_call *call, const struct dialect *dialect,
                      const struct store_change *change, const struct chain *chain, uint32_t keep_versions);
void call_make_tables(struct store_call *call, const struct dialect *dialect, uint64_t version,
                      const struct config *config);
void call_make_states(struct store_call *call, const struct dialect *dialect, struct slice rows);
/* Turns a commit whose confirmation was lost into the question whether it happened; until that is answered it
 * stays in doubt. */
void call_make_resolve(struct store_call *call, const struct dialect *dialect);

void call_take_row(struct store_call *call, const struct slice *columns);

enum statement_end {
    STATEMENT_ROWS,
    STATEMENT_NO_ROWS,
    STATEMENT_TAKEN /* a unique key was there already */
};
/* Goes to the next statement; false: the call is complete and its outcome stands. */
bool call_next(struct store_call *call, enum statement_end end);
/* It could not be carried out. */
void call_fail(struct store_call *call, const char *fmt, ...) ISO_PRINTF(2, 3);
/* Claims the right to commit; false: it was abandoned, roll back. Threads: the one that runs the call. */
bool call_may_commit(struct store_call *call);
/* False: it is committing already. Threads: the loop's. */
bool call_abandon(struct store_call *call);

#endif
