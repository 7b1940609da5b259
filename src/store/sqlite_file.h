/* SPDX-License-Identifier: Apache-2.0 */
/* A SQLite database as the store uses it: opened with care, brought to the present schema, calls run on it.
 * Everything blocks; one thread at a time. */
#ifndef ISOBAR_STORE_SQLITE_FILE_H
#define ISOBAR_STORE_SQLITE_FILE_H

#include "core/slice.h"
#include "store/call.h"

#include <sys/types.h>

struct sqlite3;

struct sqlite_file {
    char *path;         /* owned by whoever set it */
    bool may_create;    /* a file that is not there is made: nothing is known of an earlier one */
    uint32_t busy_ms;   /* that another process may hold the lock */
    struct sqlite3 *db; /* owns; NULL: closed */
    dev_t device;       /* of the file that was opened */
    ino_t inode;
    int log_pages; /* of the write-ahead log, since the database took them over */
};

/* The file of "sqlite:/var/lib/isobar/isobar.db" or "sqlite:///...". Borrows. */
const char *sqlite_path_of(struct slice url);

/* Opens or makes the file, checks that it is sound, and applies what migrations it lacks. False with the
 * reason, for people; the file is then as it was. */
bool sqlite_file_open(struct sqlite_file *file, char *reason, size_t cap);
void sqlite_file_close(struct sqlite_file *file);
/* False: it was removed or replaced since it was opened, so what is written would be lost. */
bool sqlite_file_is_there(const struct sqlite_file *file, char *reason, size_t cap);
/* The number of the newest version, 0 when there is none. */
bool sqlite_file_version(struct sqlite_file *file, uint64_t *version, char *reason, size_t cap);
/* The write-ahead log is so long that the database should take it over. */
bool sqlite_file_is_due(const struct sqlite_file *file);
/* The database takes over what is in the log, when it is due: not as a part of some commit, which would wait
 * for it. False: the file is not to be trusted any more. */
bool sqlite_file_checkpoint(struct sqlite_file *file, char *reason, size_t cap);
/* Runs the call's statements. False: the file is not to be trusted any more; the call has failed. */
bool sqlite_file_run(struct sqlite_file *file, struct store_call *call);

#endif
