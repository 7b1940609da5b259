/* SPDX-License-Identifier: Apache-2.0 */
/* May the request come in? What its rule asks of clients (guard/), one after the other, and what is answered
 * to who may not. A password that has to be compared is waited for before a target is chosen. */
#ifndef ISOBAR_PROXY_ACCESS_H
#define ISOBAR_PROXY_ACCESS_H

#include "proxy/exchange.h"

/* Asks what the request's rule asks of clients. True: it may not come in, and has been answered. Otherwise it
 * may, or access_is_asking(). */
bool access_refuses(struct exchange *x, struct http_message *msg);
/* Is it not known yet? Then the exchange goes on by forward_again(), or ends with 401. */
bool access_is_asking(const struct exchange *x);
/* The exchange waits for it no longer. */
void access_leave(struct exchange *x);
/* Tells a client that was let pass what remains of its limit (x->limit_told), in the answer of a target.
 * False: no room. */
bool access_note_answer(struct exchange *x, struct http_message *msg, struct scratch *scratch);

#endif
