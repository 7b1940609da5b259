/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts: choosing a target, getting a connection to it, sending the request, and what happens when that
 * fails.
 *
 * Whether a request may be sent again is retry.c's to say. A pooled connection that turns out stale gives one
 * such retry for free; other retries count against retry.attempts. */
#ifndef ISOBAR_PROXY_FORWARD_H
#define ISOBAR_PROXY_FORWARD_H

#include "proxy/exchange.h"

/* How the attempt under way ended, as far as that tells something about its target (D2). Before the attempt
 * is dropped. */
void forward_note(struct exchange *x, enum passive_sign sign);
/* The same of any attempt. */
void forward_note_target(const struct worker *worker, const struct snap_group *group, struct backend *backend,
                         enum passive_sign sign);
/* Starts the first attempt; the head is in x->head, `pieces` hold the body bytes that came with it. */
void forward_start(struct exchange *x, const struct transfer_pieces *pieces);
/* Another attempt; the last one has been dropped. */
void forward_again(struct exchange *x);
/* The attempt has failed before any byte of an answer: tries again where that is allowed, else fails with
 * `end`. */
void forward_attempt_failed(struct exchange *x, enum exchange_end end);
/* More of the body, and its end, as of carrier->send(). */
enum conn_result forward_send(struct exchange *x, struct slice body, const struct http_message *trailers);
/* The carrier's connection is open: the request is sent. */
void forward_opened(struct exchange *x);
/* It could not be opened; `err` is an errno value. */
void forward_connect_failed(struct exchange *x, int err);
void forward_tls_failed(struct exchange *x);
/* The attempt begins anew, since its target speaks another protocol than it was taken for; nothing was sent.
 */
void forward_otherwise(struct exchange *x);
/* Sets or moves the attempt's deadline. */
void forward_set_deadline(struct exchange *x, uint32_t ms);
/* It has come. */
void forward_due(struct exchange *x);
/* No longer waits for a connection, if it did. */
void forward_leave_pending(struct exchange *x);
void forward_pending_init(struct worker *worker);
/* A connection was given back or closed: exchanges that wait may go on. */
void forward_wake_pending(struct worker *worker);

#endif
