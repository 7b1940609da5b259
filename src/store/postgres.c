/* SPDX-License-Identifier: Apache-2.0 */
/* The store in PostgreSQL, for a fleet: one connection, asynchronous on the loop, that carries the calls and
 * the notifications of other nodes' commits. A connection is made ready on a thread (postgres_connect.c).
 *
 * A call that is given up, or a server that does not answer, ends the connection: the server then rolls back
 * whatever had not been committed. COMMIT is a statement of its own, so nothing can have happened before it
 * was sent; when the connection is lost after that, the next one first finds out whether it happened. */
#include "store/postgres_connect.h"

#include "core/clock.h"
#include "core/log.h"
#include "store/store_internal.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { POLL_MS = 3000 /* is it still there, and was a notification missed? */ };

#define SQLSTATE_UNIQUE    "23505"
#define SQLSTATE_READ_ONLY "25006"

/* The lock is held to the end of the transaction; the number is "isobar" + 1 in ASCII. */
static const struct dialect dialect = {.begin = "BEGIN",
                                       .each = "json_array_elements(CAST($1 AS json)) AS e(value)",
                                       .announce = "SELECT pg_notify('" POSTGRES_CHANNEL "', $1)",
                                       .write_lock = "SELECT pg_advisory_xact_lock(115889147437427)"};

enum postgres_doing {
    POSTGRES_IDLE,
    POSTGRES_CALL,
    POSTGRES_ROLLBACK, /* of a call that failed */
    POSTGRES_POLL,
};

struct postgres_kind {
    struct store *store;     /* borrows */
    struct blocking *thread; /* owns */
    char *url;               /* owns */
    PGconn *conn;            /* owns; NULL: not connected */
    struct loop_io io;       /* of the connection */
    struct loop_timer timer; /* the next attempt, the next poll, or the end of a poll */
    uint32_t attempt;
    bool is_connecting; /* the thread is at it */
    enum postgres_doing doing;
    struct store_call
        *call;         /* running, waiting for a poll to end, or in doubt while there is no connection */
    bool is_resolving; /* the call is the question whether it was committed */
    uint64_t version;
    /* of the statement under way */
    enum statement_end end;
    bool has_failed;
    bool is_over; /* this connection is of no use any more */
    char reason[400];
};

static void on_attempt(struct blocking_job *job);

static void wait(struct postgres_kind *kind, uint64_t ns)
{
    loop_timer_set(store_loop(kind->store), &kind->timer, clock_mono_ns() + ns);
}

static void connect(struct postgres_kind *kind)
{
    struct postgres_attempt *attempt = postgres_attempt_new(kind->url, store_timeout_ms(kind->store));
    attempt->owner = kind;
    attempt->job.done = on_attempt;
    kind->is_connecting = true;
    blocking_do(kind->thread, &attempt->job);
}

static void hang_up(struct postgres_kind *kind)
{
    if (!kind->conn)
        return;
    loop_disarm(store_loop(kind->store), &kind->io);
    kind->io.fd = -1;
    PQfinish(kind->conn);
    kind->conn = NULL;
    kind->doing = POSTGRES_IDLE;
}

static void finish(struct postgres_kind *kind)
{
    struct store_call *call = kind->call;
    kind->call = NULL;
    kind->is_resolving = false;
    store_call_done(kind->store, call);
}

static bool is_in_doubt(const struct store_call *call)
{
    return call->is_commit && atomic_load_explicit(&call->progress, memory_order_acquire) == CALL_COMMITTING;
}

/* The connection is of no use any more. A commit in doubt waits for the next one, unless nobody waits for it.
 */
static void lose(struct postgres_kind *kind, const char *fmt, ...) ISO_PRINTF(2, 3);
static void lose(struct postgres_kind *kind, const char *fmt, ...)
{
    char reason[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, sizeof(reason), fmt, args);
    va_end(args);
    hang_up(kind);
    wait(kind, store_retry_ns(kind->attempt++));
    store_is_down(kind->store, "%s", reason);
    if (kind->call && (kind->call->is_answered || !is_in_doubt(kind->call))) {
        call_fail(kind->call, "%s", reason);
        finish(kind);
    }
}

/* ---- statements ---- */

static bool flush(struct postgres_kind *kind)
{
    if (PQflush(kind->conn) >= 0)
        return true; /* the rest when the socket can be written */
    lose(kind, "%s", PQerrorMessage(kind->conn));
    return false;
}

static void send(struct postgres_kind *kind, const char *sql, const struct statement *statement)
{
    const char *values[STATEMENT_PARAMS_MAX];
    unsigned n = statement ? statement->n_params : 0;
    for (unsigned i = 0; i < n; i++)
        values[i] = statement->params[i].ptr ? statement->params[i].ptr : "";
    kind->end = STATEMENT_NO_ROWS;
    kind->has_failed = kind->is_over = false;
    if (!PQsendQueryParams(kind->conn, sql, (int)n, NULL, values, NULL, NULL, 0))
        lose(kind, "%s", PQerrorMessage(kind->conn));
    else
        flush(kind);
}

static void send_next(struct postgres_kind *kind)
{
    struct store_call *call = kind->call;
    const struct statement *statement = &call->statements[call->at];
    kind->doing = POSTGRES_CALL;
    if (statement->is_commit && !call_may_commit(call))
        lose(kind, "a change was given up before it was made");
    else
        send(kind, statement->sql, statement);
}

static void begin_poll(struct postgres_kind *kind)
{
    kind->doing = POSTGRES_POLL;
    wait(kind, store_timeout_ms(kind->store) * NS_PER_MS);
    send(kind, "SELECT coalesce(max(number), 0) FROM versions", NULL);
}

static void take_rows(struct postgres_kind *kind, const PGresult *result)
{
    int n = PQntuples(result), n_columns = PQnfields(result);
    for (int row = 0; row < n; row++) {
        struct slice columns[CALL_COLUMNS_MAX] = {0};
        for (int i = 0; i < n_columns && i < CALL_COLUMNS_MAX; i++)
            if (!PQgetisnull(result, row, i))
                columns[i] = slice_of(PQgetvalue(result, row, i), (size_t)PQgetlength(result, row, i));
        kind->end = STATEMENT_ROWS;
        if (kind->doing == POSTGRES_CALL)
            call_take_row(kind->call, columns);
        else if (!slice_u64(columns[0], &kind->version))
            kind->version = 0;
    }
}

/* A standby takes no changes: the next connection looks for the primary. What is worse than an error ends the
 * session, and says nothing of a COMMIT under way. */
static bool ends_session(const PGresult *result, const char *state)
{
    const char *severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
    return !severity || strcmp(severity, "ERROR") != 0 || !state || strcmp(state, SQLSTATE_READ_ONLY) == 0;
}

static void take_error(struct postgres_kind *kind, const PGresult *result)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (state && strcmp(state, SQLSTATE_UNIQUE) == 0) {
        kind->end = STATEMENT_TAKEN;
        return;
    }
    if (!kind->has_failed)
        snprintf(kind->reason, sizeof(kind->reason), "%s", PQresultErrorMessage(result));
    kind->has_failed = true;
    kind->is_over |= ends_session(result, state);
}

static void take_result(struct postgres_kind *kind, const PGresult *result)
{
    switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
        take_rows(kind, result);
        break;
    case PGRES_COMMAND_OK:
        break;
    default:
        take_error(kind, result);
    }
}

static void become_idle(struct postgres_kind *kind)
{
    kind->doing = POSTGRES_IDLE;
    wait(kind, POLL_MS * NS_PER_MS);
}

static void call_ended(struct postgres_kind *kind)
{
    bool was_resolving = kind->is_resolving;
    become_idle(kind);
    finish(kind);
    if (was_resolving)
        store_is_up(kind->store, kind->version);
}

static void statement_ended(struct postgres_kind *kind)
{
    switch (kind->doing) {
    case POSTGRES_CALL:
        if (kind->has_failed && kind->is_over) {
            lose(kind, "%s", kind->reason);
        } else if (kind->has_failed) {
            call_fail(kind->call, "%s", kind->reason);
            kind->doing = POSTGRES_ROLLBACK;
            send(kind, "ROLLBACK", NULL);
        } else if (call_next(kind->call, kind->end)) {
            send_next(kind);
        } else {
            call_ended(kind);
        }
        break;
    case POSTGRES_ROLLBACK:
        call_ended(kind);
        break;
    case POSTGRES_POLL:
        if (kind->has_failed) {
            lose(kind, "%s", kind->reason);
            break;
        }
        become_idle(kind);
        if (kind->call)
            send_next(kind); /* it came meanwhile */
        else
            store_moved(kind->store, kind->version);
        break;
    case POSTGRES_IDLE:
        break;
    }
}

static void take_notifications(struct postgres_kind *kind)
{
    for (PGnotify *note; (note = PQnotifies(kind->conn)) != NULL;) {
        uint64_t version;
        bool is_other = note->be_pid != PQbackendPID(kind->conn);
        bool is_number = slice_u64(slice_str(note->extra), &version);
        PQfreemem(note);
        if (is_other && is_number)
            store_moved(kind->store, version);
    }
}

static bool has_more(const struct postgres_kind *kind)
{
    struct pollfd fd = {.fd = kind->io.fd, .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

static void take_results(struct postgres_kind *kind)
{
    while (kind->conn && kind->doing != POSTGRES_IDLE && !PQisBusy(kind->conn)) {
        PGresult *result = PQgetResult(kind->conn);
        if (!result) {
            statement_ended(kind);
            continue;
        }
        take_result(kind, result);
        PQclear(result);
    }
}

/* Edge-triggered: reads until the socket has no more. */
static void on_ready(struct loop *loop, struct loop_io *io, uint32_t events)
{
    struct postgres_kind *kind = container_of(io, struct postgres_kind, io);
    if (!flush(kind))
        return;
    do {
        if (!PQconsumeInput(kind->conn)) {
            lose(kind, "%s", PQerrorMessage(kind->conn));
            return;
        }
        take_results(kind);
        if (kind->conn)
            take_notifications(kind);
    } while (kind->conn && has_more(kind));
}

/* ---- connecting ---- */

static void connected(struct postgres_kind *kind, PGconn *conn, uint64_t version)
{
    kind->conn = conn;
    kind->io = (struct loop_io){.fd = PQsocket(conn), .on_ready = on_ready};
    kind->attempt = 0;
    kind->version = version;
    if (loop_arm(store_loop(kind->store), &kind->io)) {
        lose(kind, "cannot watch the connection");
        return;
    }
    become_idle(kind);
    if (kind->call) {
        kind->is_resolving = true;
        call_make_resolve(kind->call, &dialect);
        send_next(kind);
    } else {
        store_is_up(kind->store, version);
    }
    if (kind->conn)
        take_notifications(kind); /* those that came with the answers on the thread */
}

static void on_attempt(struct blocking_job *job)
{
    struct postgres_attempt *attempt = container_of(job, struct postgres_attempt, job);
    struct postgres_kind *kind = attempt->owner;
    kind->is_connecting = false;
    if (attempt->conn) {
        PGconn *conn = attempt->conn;
        attempt->conn = NULL;
        connected(kind, conn, attempt->version);
    } else {
        wait(kind, store_retry_ns(kind->attempt++));
        store_is_down(kind->store, "%s", attempt->reason);
    }
    postgres_attempt_free(attempt);
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct postgres_kind *kind = container_of(timer, struct postgres_kind, timer);
    if (!kind->conn)
        connect(kind);
    else if (kind->doing == POSTGRES_POLL)
        lose(kind, "it did not answer within %u ms", store_timeout_ms(kind->store));
    else if (kind->doing == POSTGRES_IDLE)
        begin_poll(kind);
}

/* ---- what the store asks ---- */

static iso_err postgres_open(struct store *store, struct slice url, void **out, struct iso_diag *diag)
{
    struct postgres_kind *kind = calloc(1, sizeof(*kind));
    iso_assert(kind != NULL);
    kind->store = store;
    kind->io.fd = -1;
    kind->url = strndup(url.ptr, url.len);
    loop_timer_init(&kind->timer, on_timer);
    char *fault = NULL;
    PQconninfoOption *parsed = PQconninfoParse(kind->url, &fault);
    PQconninfoFree(parsed);
    iso_err err =
        parsed ? blocking_start(store_loop(store), "store connect", &kind->thread) : ISO_ERR_INVALID;
    if (!parsed)
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/store/url", "%s", fault ? fault : "cannot be read");
    PQfreemem(fault);
    if (err) {
        free(kind->url);
        free(kind);
        return err;
    }
    connect(kind);
    *out = kind;
    return ISO_OK;
}

static void postgres_run(void *arg, struct store_call *call)
{
    struct postgres_kind *kind = arg;
    kind->call = call;
    if (kind->doing == POSTGRES_IDLE)
        send_next(kind);
}

static void postgres_give_up(void *arg, struct store_call *call)
{
    struct postgres_kind *kind = arg;
    if (kind->conn)
        lose(kind, "it did not answer within %u ms", store_timeout_ms(kind->store));
    else
        finish(kind);
}

static void postgres_close(void **taken)
{
    struct postgres_kind *kind = *taken;
    *taken = NULL;
    hang_up(kind);
    if (kind->call)
        finish(kind);
    loop_timer_remove(store_loop(kind->store), &kind->timer);
    if (kind->is_connecting)
        blocking_leave(&kind->thread);
    else
        blocking_stop(&kind->thread);
    free(kind->url);
    free(kind);
}

const struct store_kind store_postgres = {.scheme = "postgresql",
                                          .dialect = &dialect,
                                          .open = postgres_open,
                                          .run = postgres_run,
                                          .give_up = postgres_give_up,
                                          .close = postgres_close};
