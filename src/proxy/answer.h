/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of our own: errors, and what a rule says to answer (redirects, fixed responses, denials). */
#ifndef ISOBAR_PROXY_ANSWER_H
#define ISOBAR_PROXY_ANSWER_H

#include "proxy/exchange.h"

/* Answers with our own words if nothing was sent yet, else cuts the client off; the attempt under way ends.
 */
void exchange_fail(struct exchange *x, enum exchange_end end);
/* The request's body cannot be read on: answers with the parser's word and ends the connection. */
void exchange_reject_body(struct exchange *x, enum http_reject why);
/* An answer to a request that no exchange began for (a refused head, a timeout). */
void exchange_answer_bare(struct client *client, unsigned status, const char *word, const char *text,
                          bool json, bool head, unsigned client_minor);
/* Answers as a rule or the listener says; false: it is to be forwarded, and x->group is set. */
bool exchange_answer_by_rule(struct exchange *x, const struct http_message *msg);
/* Answers 429; `fields` beside Retry-After. */
void exchange_answer_limited(struct exchange *x, uint32_t retry_after_s, const struct h1_pair *fields,
                             uint32_t n_fields);
/* Answers 401 with a WWW-Authenticate field (another status without it). */
void exchange_answer_challenge(struct exchange *x, enum exchange_end end, struct slice challenge);

#endif
