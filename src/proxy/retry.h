/* SPDX-License-Identifier: Apache-2.0 */
/* May a request be sent again, and when (A12). It may when that is safe: nothing of it was sent, because the
 * connection did not open or the target refused it unread, or its method is idempotent, it has no body, and
 * no byte of an answer reached the client (RFC 9110 9.2.2). What a target may have worked on already is
 * repeated only within the budget, so that retries never multiply the load of targets that fail because of it
 * (case C-036). */
#ifndef ISOBAR_PROXY_RETRY_H
#define ISOBAR_PROXY_RETRY_H

#include "proxy/exchange.h"

/* A request has earned its part of the retry budget. */
void retry_earn(struct exchange *x);
/* Would repeating the request be safe, whatever became of it so far? */
bool retry_can_replay(const struct exchange *x);
/* May another attempt be made after this failure? Yes takes it from the budget. END_NORMAL stands for a 502,
 * 503 or 504 that the target itself sent. */
bool retry_take(struct exchange *x, enum exchange_end end);
/* Makes it, after retry.backoff_ms; the last attempt has been dropped. */
void retry_go(struct exchange *x);
/* How long the attempt may wait for the head of its answer. */
uint32_t retry_patience_ms(const struct exchange *x);
/* That time is over: tries elsewhere, or waits on up to response_ms. False when that is over too. */
bool retry_out_of_patience(struct exchange *x);
/* No longer waits for its next attempt, if it did. */
void retry_leave(struct exchange *x);
void retry_init(struct worker *worker);

#endif
