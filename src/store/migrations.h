/* SPDX-License-Identifier: Apache-2.0 */
/* The steps from an empty database to the present schema, see migrations.def, and the SQL around them. */
#ifndef ISOBAR_STORE_MIGRATIONS_H
#define ISOBAR_STORE_MIGRATIONS_H

#include <stddef.h>

struct migration {
    unsigned number;
    const char *sql; /* one or more statements */
};

extern const struct migration migrations[];
extern const size_t migrations_n;

#define MIGRATIONS_TABLE                                                                                     \
    "CREATE TABLE IF NOT EXISTS store_migrations (number BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)"
#define MIGRATIONS_NEWEST "SELECT coalesce(max(number), 0) FROM store_migrations"
/* A format: number and time in ms. */
#define MIGRATIONS_RECORD "INSERT INTO store_migrations (number, applied_at) VALUES (%u, %llu)"
/* A format: where, what was found and what is known. */
#define MIGRATIONS_TOO_NEW                                                                                   \
    "%s was brought to schema %u by a newer isobar, and this one knows schemas up to %u only; it is left "   \
    "as it is"

#endif
