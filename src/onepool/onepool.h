/* SPDX-License-Identifier: Apache-2.0 */
/* The single-pool view of source 001 (/api): what its handlers share. It shows and changes the same model as
 * /v1: the pool is the target group that ?target_group= names, by default the first; a server is a target,
 * its id the endpoint ("10.0.0.1:80"), which is unique in its group and stays the same over reloads and
 * restarts. Threads: control. */
#ifndef ISOBAR_ONEPOOL_ONEPOOL_H
#define ISOBAR_ONEPOOL_ONEPOOL_H

#include "api/api.h"
#include "api/view.h"
#include "metrics/recorder.h"

/* A server as it stands; a target of the snapshot in force, or one that is still finishing what it had when
 * it was removed. */
struct onepool_server {
    const struct snap_group *group;     /* borrows from the snapshot */
    const struct config_target *config; /* borrows from the snapshot */
    struct backend *backend;            /* borrows from the snapshot; only read */
    bool is_leaving;                    /* removed, with requests in flight */
};

/* The group that the call is about, or NULL with the answer in the call: 404, or 503 before the first
 * configuration. */
const struct snap_group *onepool_group(struct api_call *call);

/* Every server of the group, those that are leaving included; in the call's arena. */
uint32_t onepool_servers(struct api_call *call, const struct snap_group *group,
                         struct onepool_server **servers);
/* The one that the path names, or NULL with 404 in the call. */
const struct onepool_server *onepool_server_named(struct api_call *call, const struct snap_group *group,
                                                  struct slice id);

/* "healthy" "unhealthy" "draining" "pending": source 001's words for the states of states.def. */
const char *onepool_status(const struct onepool_server *server);

/* Requests, errors and latency of late; `span_ms` is 0 when nothing was recorded yet. */
struct history_point onepool_recent(const struct api_call *call, const struct snap_group *group,
                                    const struct backend *target, struct history_totals *totals);
double onepool_rate(const struct history_point *point);       /* requests a second */
double onepool_error_rate(const struct history_point *point); /* 0..1 of the requests */

/* Appends the server as a JSON object. */
void onepool_write_server(const struct api_call *call, const struct onepool_server *server, struct text *out);
/* Appends "2026-11-30T00:39:04.250Z", or null for 0. */
void onepool_write_time(struct text *out, uint64_t wall_ms);

#endif
