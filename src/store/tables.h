/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of source 003 (pools, backends, health-check policies) and those of load balancers and
 * listeners, kept beside the documents so that other programs can ask about the configuration in SQL. They
 * are written in the transaction of their version, only what differs, and never read back: the document is
 * what counts. Ids are names, so a row stays the same row as long as its object does; registered_at and
 * created_at say since when. Source: H1; 003 "TABLE backends" ff. */
#ifndef ISOBAR_STORE_TABLES_H
#define ISOBAR_STORE_TABLES_H

#include "config/model.h"
#include "core/text.h"

struct dialect;

/* In an order that has what is referred to before what refers. */
enum table_id {
    TABLE_POLICIES,
    TABLE_POOLS,
    TABLE_BACKENDS,
    TABLE_LOAD_BALANCERS,
    TABLE_LISTENERS,
    TABLE_COUNT
};

/* Per table a JSON list of rows to write, each a list of its columns, and one of ids to delete; "" for
 * nothing. */
struct tables_change {
    struct text puts[TABLE_COUNT], gone[TABLE_COUNT]; /* owns */
};

/* What leads from one to the other; `from` NULL: every row of `to`, and nothing gone. */
void tables_diff(const struct config *from, const struct config *to, struct tables_change *change);
void tables_change_fini(struct tables_change *change);

/* $1 rows, $2 now in ms, $3 the version. Owns: the arena, as for the others. */
const char *tables_put_sql(enum table_id table, const struct dialect *dialect, struct arena *arena);
/* $1 ids. */
const char *tables_gone_sql(enum table_id table, const struct dialect *dialect, struct arena *arena);
/* Health of backends: $1 rows as tables_add_state() makes them. Rows whose state is the same already, and
 * those of backends that are gone, change nothing. */
const char *tables_states_sql(const struct dialect *dialect, struct arena *arena);
/* Appends one to a JSON list that begins with "" and is to be ended with "]". `state`: "ACTIVE". */
void tables_add_state(struct text *rows, struct slice pool, struct slice endpoint, const char *state,
                      uint64_t checked_wall_ms, uint32_t failures_in_row, uint32_t passes_in_row);
/* Deletes what version $1 did not write. */
const char *tables_clear_sql(enum table_id table, struct arena *arena);

#endif
