/* SPDX-License-Identifier: Apache-2.0 */
/* A carrier takes one attempt's request to its target and brings the answer back: an HTTP/1 connection lent
 * to the exchange (carrier_h1.c) or a stream of a shared HTTP/2 connection (carrier_h2.c). The pipeline sees
 * messages and body bytes only; framing, connections and their events are the carrier's. What comes from the
 * target goes to response_head(), response_body() and response_end(); how the attempt fails goes to
 * forward_attempt_failed(). */
#ifndef ISOBAR_PROXY_CARRIER_H
#define ISOBAR_PROXY_CARRIER_H

#include "net/conn.h"
#include "upstream/pool.h"

struct exchange;
struct http_message;

struct carrier {
    /* A target may refuse what it has not worked on: a small body is kept until the answer begins. */
    bool keeps_body;
    /* Gets a connection for the attempt: sets x->carrier, is_connecting and is_reused. With `must_be_fresh`
     * (the request cannot be replayed) one that has been idle is looked at closely; with x->wants_fresh it is
     * new. Nothing is set when there is none; errno says why with FAILED. */
    enum pool_open_result (*open)(struct exchange *x, struct backend *backend, bool must_be_fresh);
    /* Sends the head, the body bytes so far, and the end of the body with `trailers` (NULL: none) when
     * x->request is done. Not before is_connecting is false. CONN_FAILED: nothing was sent. */
    enum conn_result (*begin)(struct exchange *x, struct slice body, const struct http_message *trailers);
    /* The same of what follows. CONN_FAILED: the target takes no more, but may have said why. */
    enum conn_result (*send)(struct exchange *x, struct slice body, const struct http_message *trailers);
    /* Is what was sent last still queued? Then nothing more is to be sent. */
    bool (*is_full)(const struct exchange *x);
    /* Reads the answer as long as the client takes it; may end x. */
    void (*read)(struct exchange *x);
    /* Ends the attempt; its connection is used again where `reuse` says that it may and it can. */
    void (*end)(struct exchange *x, bool reuse);
    /* The attempt has become a tunnel: what bytes are moved over from now on, until end(). NULL: no memory.
     */
    struct conn *(*tunnel)(struct exchange *x);
    /* The attempt's deadline: forward_due() is called then. */
    struct loop_timer *(*timer)(struct exchange *x);
};

extern const struct carrier carrier_h1, carrier_h2;

/* Goes on over an open HTTP/1 connection, which becomes lent to x. */
void carrier_h1_adopt(struct exchange *x, struct upstream *upstream);

#endif
