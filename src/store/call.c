/* SPDX-License-Identifier: Apache-2.0 */
#include "store/call.h"

#include "core/clock.h"
#include "store/tables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

enum { KEPT_BYTES = 256 << 20 /* of documents; the newest is kept whatever its size */ };

struct store_call *call_new(store_answer_fn *done, void *owner)
{
    struct store_call *call = calloc(1, sizeof(*call));
    iso_assert(call != NULL);
    list_init(&call->node);
    arena_init(&call->arena);
    call->done = done;
    call->owner = owner;
    call->outcome = STORE_UNAVAILABLE;
    call->reason = "";
    text_init(&call->text);
    return call;
}

void call_free(struct store_call *call)
{
    list_remove(&call->node);
    arena_fini(&call->arena);
    text_fini(&call->text);
    printed_unref(&call->document);
    free(call->versions);
    free(call);
}

/* ---- statements ---- */

static struct statement *add(struct store_call *call, const char *sql)
{
    iso_assert(call->n_statements < CALL_STATEMENTS_MAX);
    struct statement *statement = &call->statements[call->n_statements++];
    *statement = (struct statement){.sql = sql};
    return statement;
}

static void bind(struct statement *statement, struct slice value)
{
    iso_assert(statement->n_params < STATEMENT_PARAMS_MAX);
    statement->params[statement->n_params++] = value;
}

static void bind_number(struct store_call *call, struct statement *statement, uint64_t number)
{
    bind(statement, slice_str(arena_printf(&call->arena, "%" PRIu64, number)));
}

static void end_main(struct store_call *call)
{
    call->n_main = call->n_statements;
}

static uint64_t number_of(struct slice column)
{
    uint64_t number = 0;
    return slice_u64(column, &number) ? number : 0;
}

static struct store_version *next_version(struct store_call *call)
{
    if (call->n_versions == call->cap_versions) {
        call->cap_versions = call->cap_versions ? call->cap_versions * 2 : 4;
        call->versions = realloc(call->versions, call->cap_versions * sizeof(*call->versions));
        iso_assert(call->versions != NULL);
    }
    return &call->versions[call->n_versions++];
}

static void take_version(struct store_call *call, const struct slice *columns)
{
    *next_version(call) = (struct store_version){.number = number_of(columns[0]),
                                                 .wall_ms = number_of(columns[1]),
                                                 .who = arena_slice(&call->arena, columns[2]),
                                                 .diff = arena_slice(&call->arena, columns[3])};
    call->version = call->versions[0].number;
    call->outcome = STORE_DONE;
}

/* A row of a chain: the answer is the last one. */
static void take_document(struct store_call *call, const struct slice *columns)
{
    uint64_t before = call->n_versions ? call->versions[0].number : 0, number = number_of(columns[0]);
    bool is_whole = !columns[6].ptr, fits = is_whole || before + 1 == number;
    if (is_whole)
        call->text.len = 0;
    if (is_whole)
        text_add(&call->text, columns[4]);
    else
        fits = fits && chain_read(&call->text, number_of(columns[6]), number_of(columns[7]), columns[4]);
    if (!fits) {
        call->is_broken = true;
        call_fail(call,
                  "version %" PRIu64 " is what changed in version %" PRIu64
                  ", which is not there or another one: something else wrote to the store",
                  number, number - 1);
    }
    if (call->is_broken)
        return;
    call->n_versions = 0;
    take_version(call, columns);
    call->versions[0].document = text_slice(&call->text);
    call->in_tables = number_of(columns[5]) != 0;
    if (call->expected && call->expected != number)
        call->outcome = STORE_NOT_FOUND;
}

#define VERSION_COLUMNS  "number, created_at, who, diff"
#define DOCUMENT_COLUMNS VERSION_COLUMNS ", document, in_tables, head, tail"

void call_make_load(struct store_call *call)
{
    call->outcome = STORE_NOT_FOUND;
    add(call, "SELECT " DOCUMENT_COLUMNS " FROM versions WHERE number >= (SELECT number FROM versions"
              " WHERE head IS NULL ORDER BY number DESC LIMIT 1) ORDER BY number")
        ->take = take_document;
    end_main(call);
}

void call_make_get(struct store_call *call, uint64_t number)
{
    call->outcome = STORE_NOT_FOUND;
    call->expected = number;
    struct statement *get =
        add(call, "SELECT " DOCUMENT_COLUMNS " FROM versions WHERE number <= CAST($1 AS BIGINT) AND number >="
                  " (SELECT number FROM versions WHERE head IS NULL AND number <= CAST($1 AS BIGINT)"
                  " ORDER BY number DESC LIMIT 1) ORDER BY number");
    bind_number(call, get, number);
    get->take = take_document;
    end_main(call);
}

void call_make_list(struct store_call *call, uint64_t below, uint32_t limit)
{
    call->outcome = STORE_DONE;
    struct statement *list =
        add(call, "SELECT " VERSION_COLUMNS " FROM versions WHERE number < CAST($1 AS BIGINT)"
                  " ORDER BY number DESC LIMIT CAST($2 AS BIGINT)");
    bind_number(call, list, below ? below : INT64_MAX);
    bind_number(call, list, limit < STORE_LIST_MAX ? limit : STORE_LIST_MAX);
    list->take = take_version;
    end_main(call);
}

/* ---- writing ---- */

static void take_committed(struct store_call *call, const struct slice *columns)
{
    call->version = number_of(columns[0]);
    call->outcome = STORE_DONE;
}

static void take_current(struct store_call *call, const struct slice *columns)
{
    call->version = number_of(columns[0]);
    call->outcome = STORE_CONFLICT;
}

static void begin(struct store_call *call, const struct dialect *dialect)
{
    add(call, dialect->begin);
    if (dialect->write_lock)
        add(call, dialect->write_lock);
}

static void commit(struct store_call *call)
{
    add(call, "COMMIT")->is_commit = true;
    end_main(call);
    add(call, "ROLLBACK");
    add(call, "SELECT coalesce(max(number), 0) FROM versions")->take = take_current;
}

static void write_tables(struct store_call *call, const struct dialect *dialect, uint64_t version,
                         const struct config *from, const struct config *to)
{
    struct tables_change change;
    tables_diff(from, to, &change);
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        if (!change.puts[i].len)
            continue;
        struct statement *put = add(call, tables_put_sql(i, dialect, &call->arena));
        bind(put, arena_slice(&call->arena, text_slice(&change.puts[i])));
        bind_number(call, put, clock_wall_ns() / NS_PER_MS);
        bind_number(call, put, version);
    }
    for (unsigned i = TABLE_COUNT; i-- > 0;) { /* what refers goes before what it refers to */
        if (!from) {
            bind_number(call, add(call, tables_clear_sql(i, &call->arena)), version);
        } else if (change.gone[i].len) {
            struct statement *gone = add(call, tables_gone_sql(i, dialect, &call->arena));
            bind(gone, arena_slice(&call->arena, text_slice(&change.gone[i])));
        }
    }
    tables_change_fini(&change);
}

static void make_token(char token[33])
{
    unsigned char bytes[16];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        iso_unreachable("16 bytes of randomness are always given");
    for (unsigned i = 0; i < sizeof(bytes); i++)
        snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

#define INSERT_VERSION(head, tail, condition)                                                                \
    "INSERT INTO versions (number, created_at, who, token, diff, document, bytes, in_tables, head, tail)"    \
    " SELECT CAST($1 AS BIGINT) + 1, CAST($2 AS BIGINT), $3, $4, $5, $6, length(CAST($6 AS TEXT)), 1, " head \
    ", " tail " WHERE (SELECT coalesce(max(number), 0) FROM versions) = CAST($1 AS BIGINT)" condition        \
    " RETURNING number"

static struct slice stored_text(struct store_call *call)
{
    struct text text;
    text_init(&text);
    if (call->row.is_whole)
        printed_write(call->document, &text);
    else
        printed_write_middle(call->document, &call->row.change, &text);
    struct slice kept = arena_slice(&call->arena, text_slice(&text));
    text_fini(&text);
    return kept;
}

static void insert_version(struct store_call *call, const struct store_change *change,
                           const char *before_token)
{
    /* Two at once: the second waits for the first at the write lock or the key, and then finds it taken. */
    bool is_whole = call->row.is_whole;
    struct statement *insert = add(call, is_whole ? INSERT_VERSION("NULL", "NULL", "")
                                                  : INSERT_VERSION("CAST($7 AS BIGINT)", "CAST($8 AS BIGINT)",
                                                                   " AND (SELECT token FROM versions WHERE"
                                                                   " number = CAST($1 AS BIGINT)) = $9"));
    struct slice who = change->who;
    if (who.len > STORE_WHO_MAX)
        who.len = STORE_WHO_MAX;
    bind_number(call, insert, change->expected);
    bind_number(call, insert, clock_wall_ns() / NS_PER_MS);
    bind(insert, arena_slice(&call->arena, who));
    bind(insert, slice_str(call->token));
    bind(insert, arena_slice(&call->arena, change->diff));
    bind(insert, stored_text(call));
    if (!is_whole) {
        bind_number(call, insert, call->row.change.head);
        bind_number(call, insert, call->row.change.tail);
        bind(insert, arena_slice(&call->arena, slice_str(before_token)));
    }
    insert->must_bring_row = true;
    insert->take = take_committed;
}

static void drop_old(struct store_call *call, uint64_t version, uint32_t keep_versions)
{
    /* Down to a whole document: those before the oldest that is to be kept may need it. */
    struct statement *drop =
        add(call, "DELETE FROM versions WHERE number < (SELECT number FROM versions WHERE head IS NULL AND"
                  " number <= CAST($1 AS BIGINT) - CAST($2 AS BIGINT) + 1 ORDER BY number DESC LIMIT 1)"
                  " OR number < (SELECT number FROM versions WHERE head IS NULL AND number <="
                  " (SELECT coalesce(min(number), CAST($1 AS BIGINT)) FROM (SELECT number, sum(bytes)"
                  " OVER (ORDER BY number DESC) AS held FROM versions) AS v WHERE held <= CAST($3 AS BIGINT))"
                  " ORDER BY number DESC LIMIT 1)");
    bind_number(call, drop, version);
    bind_number(call, drop, keep_versions);
    bind_number(call, drop, KEPT_BYTES);
}

void call_make_commit(struct store_call *call, const struct dialect *dialect,
                      const struct store_change *change, const struct chain *chain, uint32_t keep_versions)
{
    uint64_t version = change->expected + 1;
    call->is_commit = call->writes = true;
    call->expected = change->expected;
    call->document = printed_ref(change->document);
    chain_plan(chain, change->expected, change->document, &call->row);
    make_token(call->token);
    begin(call, dialect);
    insert_version(call, change, chain->token);
    write_tables(call, dialect, version, change->from, change->to);
    drop_old(call, version, keep_versions);
    if (dialect->announce)
        bind_number(call, add(call, dialect->announce), version);
    commit(call);
}

void call_make_tables(struct store_call *call, const struct dialect *dialect, uint64_t version,
                      const struct config *config)
{
    call->writes = true;
    begin(call, dialect);
    struct statement *mark = add(call, "UPDATE versions SET in_tables = 1 WHERE number = CAST($1 AS BIGINT)"
                                       " AND number = (SELECT max(number) FROM versions) RETURNING number");
    bind_number(call, mark, version);
    mark->must_bring_row = true;
    mark->take = take_committed;
    write_tables(call, dialect, version, NULL, config);
    commit(call);
}

void call_make_states(struct store_call *call, const struct dialect *dialect, struct slice rows)
{
    call->outcome = STORE_DONE;
    begin(call, dialect);
    bind(add(call, tables_states_sql(dialect, &call->arena)), arena_slice(&call->arena, rows));
    add(call, "COMMIT")->is_commit = true;
    end_main(call);
}

void call_make_resolve(struct store_call *call, const struct dialect *dialect)
{
    call->n_statements = call->at = 0;
    call->outcome = STORE_UNAVAILABLE;
    call->reason = "the connection was lost before the change was made";
    begin(call, dialect); /* the lock waits for the lost transaction, should it still live */
    struct statement *find = add(call, "SELECT number FROM versions WHERE token = $1");
    bind(find, slice_str(call->token));
    find->take = take_committed;
    add(call, "ROLLBACK");
    end_main(call);
}

/* ---- running ---- */

void call_take_row(struct store_call *call, const struct slice *columns)
{
    const struct statement *statement = &call->statements[call->at];
    if (statement->take)
        statement->take(call, columns);
}

bool call_next(struct store_call *call, enum statement_end end)
{
    const struct statement *statement = &call->statements[call->at];
    bool conflicts = end == STATEMENT_TAKEN || (statement->must_bring_row && end == STATEMENT_NO_ROWS);
    call->at = conflicts ? call->n_main : call->at + 1;
    return call->at != call->n_statements && (call->at != call->n_main || conflicts);
}

void call_fail(struct store_call *call, const char *fmt, ...)
{
    char reason[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    for (char *c = reason; *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    call->outcome = STORE_UNAVAILABLE;
    call->reason =
        arena_str(&call->arena, slice_trim(slice_str(reason)).len ? reason : "no reason was given");
}

bool call_may_commit(struct store_call *call)
{
    enum call_progress begun = CALL_BEGUN;
    return atomic_compare_exchange_strong_explicit(&call->progress, &begun, CALL_COMMITTING,
                                                   memory_order_acq_rel, memory_order_acquire);
}

bool call_abandon(struct store_call *call)
{
    enum call_progress begun = CALL_BEGUN;
    return atomic_compare_exchange_strong_explicit(&call->progress, &begun, CALL_ABANDONED,
                                                   memory_order_acq_rel, memory_order_acquire);
}
