/* SPDX-License-Identifier: Apache-2.0 */
/* Where and what: the faults found in something the operator gave us. A run collects all of them before it
 * returns, so that `isobar check` can show every fault at once (G7). Texts live in the diag's own arena. */
#ifndef ISOBAR_CORE_DIAG_H
#define ISOBAR_CORE_DIAG_H

#include "core/arena.h"
#include "core/check.h"
#include "core/text.h"

enum diag_severity { DIAG_ERROR, DIAG_WARNING };

struct diag_entry {
    struct diag_entry *next;
    enum diag_severity severity;
    unsigned number;       /* in the order found */
    const char *file;      /* borrows; "" when the text came over the API */
    unsigned line, column; /* from 1; 0 is unknown */
    const char *path;      /* for example "/target_groups/0/targets/1/port"; "" is the whole document */
    const char *message;   /* what is wrong, what was expected */
};

struct iso_diag {
    struct arena arena;              /* owns the entries */
    struct diag_entry *first, *last; /* in the order found, until diag_sort() */
    unsigned errors, warnings;
};

void diag_init(struct iso_diag *diag);
void diag_fini(struct iso_diag *diag);
/* Threads: owner only. `file` and `path` are copied. */
void diag_add(struct iso_diag *diag, enum diag_severity severity, const char *file, unsigned line,
              unsigned column, const char *path, const char *fmt, ...) ISO_PRINTF(7, 8);
/* Orders the entries by file, line and column; those without a line come last, those of one place stay as
 * found. */
void diag_sort(struct iso_diag *diag);
/* "file:line:column: path: message", without what is unknown; a warning says so before its path. No line end.
 */
void diag_format(const struct diag_entry *entry, struct text *out);
/* Every entry, a line each, to standard error. */
void diag_print(const struct iso_diag *diag);

#endif
