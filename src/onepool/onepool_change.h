/* SPDX-License-Identifier: Apache-2.0 */
/* A change of /api: a JSON body of known fields, made into steps on the document, and the answer once it is
 * in force. It is the same change as one of /v1, so it is validated, ordered and remembered like those.
 * Threads: control. */
#ifndef ISOBAR_ONEPOOL_ONEPOOL_CHANGE_H
#define ISOBAR_ONEPOOL_ONEPOOL_CHANGE_H

#include "document/document.h"
#include "onepool/onepool.h"

struct onepool_change;

/* A field that a body may have, and what /v1 calls it, for faults found there. */
struct onepool_field {
    const char *name;
    const char *path; /* "/health_check/interval_s"; NULL: it has the same name */
};

struct onepool_change_kind {
    const struct onepool_field *fields; /* ends with a NULL name; NULL: no body */
    bool needs_server;                  /* the path names one, which must exist */
    /* Makes the steps. False: refused, and the call has its answer. */
    bool (*make)(struct onepool_change *change);
    /* Writes the answer, when it is in force or changed nothing. */
    void (*answer)(struct onepool_change *change, const struct snap_group *group);
};

struct onepool_change {
    struct change change;
    const struct onepool_change_kind *kind;
    struct doc body; /* owns */
    struct iso_diag body_diag;
    struct slice group_name;
    struct slice server_id;
    struct doc_node *group;         /* of the document, from make() on */
    struct doc_node *server;        /* likewise; NULL: none was named */
    struct config_endpoint address; /* of a new server */
};

/* Reads the body and submits the change; in either case the call gets its answer. */
void onepool_change_submit(struct api_call *call, const struct onepool_change_kind *kind);

/* A field of the body; NULL when it is not there. */
const struct doc_node *onepool_body(const struct onepool_change *change, const char *name);
/* The target list of the group as it stands, or NULL. */
struct doc_node *onepool_targets(const struct onepool_change *change);

/* The value of a field under another key of `map`: taken over as it is. False when a limit was hit. */
bool onepool_take(struct onepool_change *change, const char *name, struct doc_node *map, const char *key);
bool onepool_set(struct onepool_change *change, struct doc_node *map, const char *key, struct slice text,
                 bool plain);
/* The map under a key of `map`, made when it is not there. */
struct doc_node *onepool_section(struct onepool_change *change, struct doc_node *map, const char *key);
/* Says what is wrong with a field; always false. */
bool onepool_refuse(struct onepool_change *change, const struct doc_node *field, const char *expected);

#endif
