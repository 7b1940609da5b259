/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sqlite_file.h"

#include "core/clock.h"
#include "core/log.h"
#include "store/migrations.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOG_PAGES_MAX = 1000 /* 4 MiB, as SQLite has it */ };

const char *sqlite_path_of(struct slice url)
{
    const char *path = url.ptr + strlen("sqlite:");
    return strncmp(path, "//", 2) == 0 ? path + 2 : path;
}

static bool say(char *reason, size_t cap, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Always false. */
static bool say(char *reason, size_t cap, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(reason, cap, fmt, args);
    va_end(args);
    return false;
}

static bool is_damage(int code)
{
    return code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
}

/* What is open is of no use any more. */
static bool is_lost(int code)
{
    return is_damage(code) || code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
}

static bool fail(const struct sqlite_file *file, char *reason, size_t cap)
{
    int code = sqlite3_errcode(file->db) & 0xff;
    if (is_damage(code))
        return say(
            reason, cap,
            "%s is damaged or not a database (%s); it is left as it is: move it away or restore a copy",
            file->path, sqlite3_errmsg(file->db));
    return say(reason, cap, "%s: %s", file->path, sqlite3_errmsg(file->db));
}

/* ---- statements ---- */

static bool bind(sqlite3_stmt *stmt, const struct statement *statement)
{
    for (unsigned i = 0; i < statement->n_params; i++) {
        char name[8];
        snprintf(name, sizeof(name), "$%u", i + 1);
        int at = sqlite3_bind_parameter_index(stmt, name);
        struct slice value = statement->params[i];
        if (at && (value.len > INT_MAX || sqlite3_bind_text(stmt, at, value.ptr ? value.ptr : "",
                                                            (int)value.len, SQLITE_STATIC) != SQLITE_OK))
            return false;
    }
    return true;
}

static void take_row(sqlite3_stmt *stmt, struct store_call *call)
{
    struct slice columns[CALL_COLUMNS_MAX] = {0};
    int n = sqlite3_column_count(stmt);
    for (int i = 0; i < n && i < CALL_COLUMNS_MAX; i++) {
        const char *value = (const char *)sqlite3_column_text(stmt, i);
        columns[i] = slice_of(value, value ? (size_t)sqlite3_column_bytes(stmt, i) : 0);
    }
    call_take_row(call, columns);
}

/* SQLITE_OK and how it ended, or what went wrong. */
static int run_statement(struct sqlite_file *file, struct store_call *call, enum statement_end *end)
{
    const struct statement *statement = &call->statements[call->at];
    sqlite3_stmt *stmt = NULL;
    int code = sqlite3_prepare_v2(file->db, statement->sql, -1, &stmt, NULL);
    if (code != SQLITE_OK)
        return code;
    *end = STATEMENT_NO_ROWS;
    if (bind(stmt, statement))
        while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
            *end = STATEMENT_ROWS;
            take_row(stmt, call);
        }
    else
        code = SQLITE_TOOBIG;
    sqlite3_finalize(stmt);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

static void roll_back(struct sqlite_file *file)
{
    if (!sqlite3_get_autocommit(file->db))
        sqlite3_exec(file->db, "ROLLBACK", NULL, NULL, NULL);
}

static bool run_failed(struct sqlite_file *file, struct store_call *call, int code)
{
    char reason[400];
    fail(file, reason, sizeof(reason));
    roll_back(file);
    call_fail(call, "%s", reason);
    return !is_lost(code & 0xff);
}

bool sqlite_file_run(struct sqlite_file *file, struct store_call *call)
{
    enum statement_end end;
    do {
        if (call->statements[call->at].is_commit && !call_may_commit(call)) {
            roll_back(file);
            call_fail(call, "it was given up before it was made");
            return true;
        }
        int code = run_statement(file, call, &end);
        if (code != SQLITE_OK)
            return run_failed(file, call, code);
    } while (call_next(call, end));
    return true;
}

/* ---- opening ---- */

static int first_column(void *out, int n, char **values, char **names)
{
    if (n > 0 && values[0])
        snprintf(out, 200, "%s", values[0]);
    return 0;
}

/* The first value that a statement brings. */
static bool ask(struct sqlite_file *file, const char *sql, char value[200], char *reason, size_t cap)
{
    value[0] = 0;
    if (sqlite3_exec(file->db, sql, first_column, value, NULL) == SQLITE_OK)
        return true;
    return fail(file, reason, cap);
}

static bool check(struct sqlite_file *file, char *reason, size_t cap)
{
    char found[200];
    if (!ask(file, "PRAGMA integrity_check(1)", found, reason, cap))
        return false;
    if (strcmp(found, "ok") == 0)
        return true;
    return say(reason, cap, "%s is damaged (%s); it is left as it is: move it away or restore a copy",
               file->path, found);
}

/* In place of SQLite's own, which takes the log over as a part of the commit that made it long. */
static int note_log(void *arg, sqlite3 *db, const char *name, int pages)
{
    ((struct sqlite_file *)arg)->log_pages = pages;
    return SQLITE_OK;
}

static bool set_up(struct sqlite_file *file, char *reason, size_t cap)
{
    char value[200];
    sqlite3_busy_timeout(file->db, (int)file->busy_ms);
    /* The check comes first: to switch to the write-ahead log is to write. */
    if (!check(file, reason, cap) || !ask(file, "PRAGMA journal_mode = WAL", value, reason, cap))
        return false;
    if (strcmp(value, "wal") != 0)
        return say(reason, cap, "%s: there can be no write-ahead log in this place (the mode is %s)",
                   file->path, value);
    sqlite3_wal_hook(file->db, note_log, file);
    return ask(file, "PRAGMA synchronous = FULL", value, reason, cap) &&
           ask(file, "PRAGMA foreign_keys = ON", value, reason, cap);
}

static bool migrate_one(struct sqlite_file *file, const struct migration *migration, char *reason, size_t cap)
{
    char record[160], value[200];
    snprintf(record, sizeof(record), MIGRATIONS_RECORD, migration->number, clock_wall_ns() / NS_PER_MS);
    return ask(file, migration->sql, value, reason, cap) && ask(file, record, value, reason, cap);
}

static bool migrate(struct sqlite_file *file, char *reason, size_t cap)
{
    char value[200];
    if (!ask(file, "BEGIN IMMEDIATE", value, reason, cap))
        return false;
    bool ok =
        ask(file, MIGRATIONS_TABLE, value, reason, cap) && ask(file, MIGRATIONS_NEWEST, value, reason, cap);
    unsigned newest = ok ? (unsigned)strtoul(value, NULL, 10) : 0;
    if (ok && newest > migrations[migrations_n - 1].number)
        ok = say(reason, cap, MIGRATIONS_TOO_NEW, file->path, newest, migrations[migrations_n - 1].number);
    for (size_t i = 0; ok && i < migrations_n; i++)
        if (migrations[i].number > newest)
            ok = migrate_one(file, &migrations[i], reason, cap);
    if (ok)
        ok = ask(file, "COMMIT", value, reason, cap);
    if (!ok)
        roll_back(file);
    return ok;
}

static bool remember(struct sqlite_file *file, char *reason, size_t cap)
{
    struct stat st;
    if (stat(file->path, &st) < 0)
        return say(reason, cap, "%s: %s", file->path, strerror(errno));
    file->device = st.st_dev;
    file->inode = st.st_ino;
    if (st.st_mode & (S_IRWXG | S_IRWXO))
        log_warning(
            "store: %s has the mode %04o, so others may read the keys and passwords in it; expected 0600",
            file->path, (unsigned)st.st_mode & 07777);
    return true;
}

bool sqlite_file_open(struct sqlite_file *file, char *reason, size_t cap)
{
    /* Made here for its mode, since documents may hold secrets. Only a new file may be opened and closed
     * beside SQLite: closing another descriptor of one that is in use would give up its locks. */
    int fd = file->may_create ? open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        close(fd);
    int code = sqlite3_open_v2(file->path, &file->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
    bool ok = code == SQLITE_OK
                  ? set_up(file, reason, cap) && migrate(file, reason, cap) && remember(file, reason, cap)
                  : fail(file, reason, cap);
    if (ok)
        file->may_create = false; /* one that vanishes is missed, not replaced by an empty one */
    else
        sqlite_file_close(file);
    return ok;
}

void sqlite_file_close(struct sqlite_file *file)
{
    if (file->db)
        sqlite3_close(file->db);
    file->db = NULL;
}

bool sqlite_file_is_there(const struct sqlite_file *file, char *reason, size_t cap)
{
    struct stat st;
    if (stat(file->path, &st) < 0)
        return say(reason, cap, "%s: %s", file->path, strerror(errno));
    if (st.st_dev != file->device || st.st_ino != file->inode)
        return say(reason, cap, "%s was replaced by another file while it was open", file->path);
    return true;
}

bool sqlite_file_is_due(const struct sqlite_file *file)
{
    return file->log_pages >= LOG_PAGES_MAX;
}

/* A database that another process reads or writes takes over what it can; the rest comes later. */
bool sqlite_file_checkpoint(struct sqlite_file *file, char *reason, size_t cap)
{
    if (!sqlite_file_is_due(file))
        return true;
    file->log_pages = 0;
    int code = sqlite3_wal_checkpoint_v2(file->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) & 0xff;
    return is_lost(code) ? fail(file, reason, cap) : true;
}

bool sqlite_file_version(struct sqlite_file *file, uint64_t *version, char *reason, size_t cap)
{
    char value[200];
    if (!ask(file, "SELECT coalesce(max(number), 0) FROM versions", value, reason, cap))
        return false;
    *version = strtoull(value, NULL, 10);
    return true;
}
