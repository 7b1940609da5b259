/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to PostgreSQL, made ready on a thread of its own since looking up a name blocks: connected,
 * set up, the schema brought up to date, listening for other nodes. Each step has the deadline of the
 * attempt. */
#ifndef ISOBAR_STORE_POSTGRES_CONNECT_H
#define ISOBAR_STORE_POSTGRES_CONNECT_H

#include "store/blocking.h"

#include <libpq-fe.h>

#define POSTGRES_CHANNEL "isobar_versions"

struct postgres_attempt {
    struct blocking_job job; /* the caller sets done; discard frees the whole */
    void *owner;             /* the caller's */
    char *url;               /* owns */
    uint32_t timeout_ms;
    /* results */
    PGconn *conn;     /* owns; NULL: it failed, with the reason */
    uint64_t version; /* the newest in the store */
    char reason[400];
};

struct postgres_attempt *postgres_attempt_new(const char *url, uint32_t timeout_ms);
void postgres_attempt_free(struct postgres_attempt *attempt);

#endif
