/* SPDX-License-Identifier: Apache-2.0 */
#include "store/postgres_connect.h"

#include "core/check.h"
#include "core/clock.h"
#include "store/migrations.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A session that hangs in the middle of a transaction would keep all other nodes from writing, and one that
 * forgets commits at a crash would lose acknowledged changes. */
static const char settings[] =
    "SELECT set_config('idle_in_transaction_session_timeout', '%u', false),"
    " set_config('statement_timeout', '%u', false), set_config('lock_timeout', '%u', false),"
    " CASE WHEN current_setting('synchronous_commit') = 'off'"
    " THEN set_config('synchronous_commit', 'on', false) END";

/* Two nodes may find the same old schema at once. The number is "isobar" in ASCII. */
static const char migration_lock[] = "SELECT pg_advisory_xact_lock(115889147437426)";

struct session {
    PGconn *conn;
    uint64_t due_ns;
    char *reason;
    size_t cap;
};

static bool say(struct session *session, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Always false. */
static bool say(struct session *session, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(session->reason, session->cap, fmt, args);
    va_end(args);
    return false;
}

static bool wait_for(struct session *session, short events)
{
    struct pollfd fd = {.fd = PQsocket(session->conn), .events = events};
    uint64_t now_ns = clock_mono_ns();
    if (now_ns >= session->due_ns)
        return say(session, "it did not answer in time");
    int n = poll(&fd, 1, (int)((session->due_ns - now_ns) / NS_PER_MS) + 1);
    if (n < 0 && errno != EINTR)
        return say(session, "poll: %s", strerror(errno));
    return true;
}

static bool receive(struct session *session)
{
    for (int unsent; (unsent = PQflush(session->conn)) != 0;)
        if (unsent < 0 || !wait_for(session, POLLIN | POLLOUT) || !PQconsumeInput(session->conn))
            return session->reason[0] ? false : say(session, "%s", PQerrorMessage(session->conn));
    while (PQisBusy(session->conn)) {
        if (!wait_for(session, POLLIN))
            return false;
        if (!PQconsumeInput(session->conn))
            return say(session, "%s", PQerrorMessage(session->conn));
    }
    return true;
}

/* Runs one or more statements; `value` is the first that the last of them brings. */
static bool ask(struct session *session, const char *sql, char value[64])
{
    bool ok = true;
    value[0] = 0;
    if (!PQsendQuery(session->conn, sql))
        return say(session, "%s", PQerrorMessage(session->conn));
    for (;;) {
        if (!receive(session))
            return false;
        PGresult *result = PQgetResult(session->conn);
        if (!result)
            return ok;
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
            snprintf(value, 64, "%s", PQgetvalue(result, 0, 0));
        else if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
            ok = say(session, "%s", PQresultErrorMessage(result));
        PQclear(result);
    }
}

static bool migrate(struct session *session, char value[64])
{
    char record[160];
    if (!ask(session, "BEGIN", value) || !ask(session, migration_lock, value) ||
        !ask(session, MIGRATIONS_TABLE, value) || !ask(session, MIGRATIONS_NEWEST, value))
        return false;
    unsigned newest = (unsigned)strtoul(value, NULL, 10), known = migrations[migrations_n - 1].number;
    if (newest > known)
        return say(session, MIGRATIONS_TOO_NEW, "the database", newest, known);
    for (size_t i = 0; i < migrations_n; i++) {
        if (migrations[i].number <= newest)
            continue;
        snprintf(record, sizeof(record), MIGRATIONS_RECORD, migrations[i].number,
                 clock_wall_ns() / NS_PER_MS);
        if (!ask(session, migrations[i].sql, value) || !ask(session, record, value))
            return false;
    }
    return ask(session, "COMMIT", value);
}

static bool set_up(struct session *session, uint32_t timeout_ms, uint64_t *version)
{
    char sql[512], value[64];
    snprintf(sql, sizeof(sql), settings, timeout_ms, timeout_ms, timeout_ms);
    if (!ask(session, sql, value) || !migrate(session, value) ||
        !ask(session, "LISTEN " POSTGRES_CHANNEL, value) ||
        !ask(session, "SELECT coalesce(max(number), 0) FROM versions", value))
        return false;
    *version = strtoull(value, NULL, 10);
    return true;
}

/* Notices go nowhere: what matters comes back as an error. */
static void ignore(void *arg, const char *message) {}

static PGconn *connect_to(const char *url, uint32_t timeout_ms)
{
    char timeout_s[16], timeout[16];
    snprintf(timeout_s, sizeof(timeout_s), "%u", timeout_ms < 2000 ? 2 : (timeout_ms + 999) / 1000);
    snprintf(timeout, sizeof(timeout), "%u", timeout_ms);
    /* What the URL says comes later and wins. read-write: of several servers the one that takes changes. */
    const char *const keys[] = {"connect_timeout",
                                "target_session_attrs",
                                "client_encoding",
                                "keepalives_idle",
                                "keepalives_interval",
                                "keepalives_count",
                                "tcp_user_timeout",
                                "fallback_application_name",
                                "dbname",
                                NULL};
    const char *const values[] = {timeout_s, "read-write", "UTF8",   "10", "5",
                                  "3",       timeout,      "isobar", url,  NULL};
    PGconn *conn = PQconnectdbParams(keys, values, 1);
    PQsetNoticeProcessor(conn, ignore, NULL);
    return conn;
}

static void work(struct blocking_job *job)
{
    struct postgres_attempt *attempt = container_of(job, struct postgres_attempt, job);
    attempt->conn = connect_to(attempt->url, attempt->timeout_ms);
    struct session session = {.conn = attempt->conn,
                              .due_ns = clock_mono_ns() + attempt->timeout_ms * NS_PER_MS,
                              .reason = attempt->reason,
                              .cap = sizeof(attempt->reason)};
    bool ok = attempt->conn && PQstatus(attempt->conn) == CONNECTION_OK;
    if (!ok)
        say(&session, "%s", attempt->conn ? PQerrorMessage(attempt->conn) : "out of memory");
    else if (PQsetnonblocking(attempt->conn, 1))
        ok = say(&session, "%s", PQerrorMessage(attempt->conn));
    else
        ok = set_up(&session, attempt->timeout_ms, &attempt->version);
    if (ok)
        return;
    PQfinish(attempt->conn);
    attempt->conn = NULL;
}

static void discard(struct blocking_job *job)
{
    postgres_attempt_free(container_of(job, struct postgres_attempt, job));
}

struct postgres_attempt *postgres_attempt_new(const char *url, uint32_t timeout_ms)
{
    struct postgres_attempt *attempt = calloc(1, sizeof(*attempt));
    iso_assert(attempt != NULL);
    attempt->job = (struct blocking_job){.work = work, .discard = discard};
    attempt->url = strdup(url);
    attempt->timeout_ms = timeout_ms;
    return attempt;
}

void postgres_attempt_free(struct postgres_attempt *attempt)
{
    if (attempt->conn)
        PQfinish(attempt->conn);
    free(attempt->url);
    free(attempt);
}
