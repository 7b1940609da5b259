/* SPDX-License-Identifier: Apache-2.0 */
/* The access log: one line per request, JSON or by a format string. A worker formats into its own ring and
 * never blocks; one writer thread carries the rings to the file. When a ring is full the line is dropped and
 * counted. */
#ifndef ISOBAR_OBSERVE_ACCESSLOG_H
#define ISOBAR_OBSERVE_ACCESSLOG_H

#include "core/err.h"
#include "core/ip.h"
#include "core/slice.h"
#include "observe/counters.h"

struct accesslog;        /* the writer */
struct accesslog_format; /* compiled once; immutable */

/* One finished request; all slices are borrowed for the call. */
struct accesslog_entry {
    uint64_t wall_ns;     /* when the request's head was complete */
    uint64_t duration_us; /* from there to the last byte of the answer */
    uint64_t upstream_us; /* from the choice of a target to the answer's head; 0: none */
    struct ip_addr client, peer;
    uint16_t peer_port;
    struct slice listener, rule, group, target; /* "" when not reached */
    struct slice method, host, path, query, request_id, user_agent, referer;
    const char *protocol;                /* "HTTP/1.1" */
    uint16_t status;                     /* 0: none was sent */
    struct slice grpc_status;            /* "" when it is no call, or has none */
    uint64_t received_bytes, sent_bytes; /* bodies and heads on the client's side */
    uint32_t attempts;
    const char *reason; /* the reason word: who ended it, in which phase; "-" for a normal end */
};

/* "json", "common", "combined", or a text with {fields} of accesslog_fields.def; `{{` is a brace.
 * ISO_ERR_INVALID when it has an unknown field; `*what` is then its name, a part of `format`. */
iso_err accesslog_format_compile(struct slice format, struct accesslog_format **out,
                                 struct slice *what) ISO_MUST_USE;
/* Has no field, so every line would be the same: hardly what was meant. */
bool accesslog_format_is_constant(const struct accesslog_format *format);
void accesslog_format_free(struct accesslog_format *format);

/* Opens the file ("stdout" or a path, appended to) and starts the writer thread with one ring per worker.
 * Threads: control. */
iso_err accesslog_open(struct slice file, uint32_t n_workers, struct accesslog **out) ISO_MUST_USE;
/* Writes what is left in the rings, then closes. Threads: control, when no worker writes any more. */
void accesslog_close(struct accesslog **log);
/* Opens the file again by its name (after rotation). Threads: control. */
iso_err accesslog_reopen(struct accesslog *log) ISO_MUST_USE;
/* Lines that were queued but could not be written (a full disk, a pipe without a reader). Threads: any. */
uint64_t accesslog_lost(const struct accesslog *log);
/* Formats and queues one line; false when the ring is full (the caller counts it). Costs what bench/accesslog
 * prints. Threads: worker `worker` only. */
bool accesslog_write(struct accesslog *log, uint32_t worker, const struct accesslog_format *format,
                     const struct accesslog_entry *entry);

#endif
