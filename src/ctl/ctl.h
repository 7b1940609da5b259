/* SPDX-License-Identifier: Apache-2.0 */
/* `isobar ctl`: what its commands share. Each is one function that asks the admin listener of a running
 * process and prints; a table in cmd_ctl.c names them. */
#ifndef ISOBAR_CTL_CTL_H
#define ISOBAR_CTL_CTL_H

#include "ctl/client.h"
#include "doc/doc.h"

/* Exit statuses. */
enum {
    CTL_OK = 0,
    CTL_DIFFERS = 1, /* diff: there are differences; drain --wait: it did not end in time */
    CTL_USAGE = 2,
    CTL_REFUSED = 3,     /* the API answered with an error */
    CTL_UNREACHABLE = 4, /* there was no answer */
};

enum { CTL_HEADERS_MAX = 100 };

struct ctl {
    struct client client;
    bool json; /* print what the API said, for programs */
    bool dry_run, once, raw, end, no_secrets;
    const char *group;   /* NULL: the first */
    const char *version; /* that a change must be made from; NULL: any */
    const char *method, *from, *via, *listener;
    const char *headers[CTL_HEADERS_MAX]; /* "Name: value" */
    uint32_t n_headers;
    uint32_t wait_s; /* 0: do not */
    uint32_t interval_s;
    int argc; /* the command's own arguments */
    char **argv;
};

typedef int ctl_fn(struct ctl *ctl);

ctl_fn ctl_apply, ctl_diff, ctl_drain, ctl_enable, ctl_explain, ctl_export, ctl_get, ctl_list, ctl_metrics,
    ctl_rollback, ctl_sessions, ctl_top, ctl_versions, ctl_weight;

/* An answer and, where it was JSON, what it says. */
struct ctl_answer {
    struct client_reply reply; /* owns */
    struct iso_diag diag;
    struct doc doc; /* owns; root NULL: no JSON */
};

/* Asks. CTL_OK with an answer below 400; else what went wrong was printed. ctl_answer_fini() is due in any
 * case. */
int ctl_ask(const struct ctl *ctl, const char *method, const char *path, struct ctl_answer *answer);
int ctl_send(const struct ctl *ctl, const char *method, const char *path, const char *content_type,
             struct slice body, struct ctl_answer *answer);
void ctl_answer_fini(struct ctl_answer *answer);
/* Wrong usage: says why. */
int ctl_usage(const char *fmt, ...) ISO_PRINTF(1, 2);

/* Prints the answer as it came, with its line end. */
void ctl_print_raw(const struct ctl_answer *answer);
/* Prints a value over several lines. */
void ctl_print_json(const struct doc_node *node);
/* The text of a scalar under a key of a map: "-" when there is none. */
struct slice ctl_text(const struct doc_node *map, const char *key);

/* A table whose columns are as wide as they must be; numbers stand at the right. */
struct ctl_table {
    struct arena arena;
    const char **titles; /* borrows; [n_columns] */
    uint32_t n_columns;
    struct slice *cells; /* [n_cells], row by row */
    uint32_t n_cells, cap;
};

void ctl_table_init(struct ctl_table *table, const char **titles, uint32_t n_columns);
void ctl_table_add(struct ctl_table *table, struct slice cell); /* copied */
void ctl_table_addf(struct ctl_table *table, const char *fmt, ...) ISO_PRINTF(2, 3);
void ctl_table_write(const struct ctl_table *table, struct text *out);
void ctl_table_fini(struct ctl_table *table);

#endif
