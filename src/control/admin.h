/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server: an HTTP/1 server on the control thread's loop, apart from the traffic (G6). It reads
 * requests by the same strict parser as the proxy, finds their route and their client's role, and hands whole
 * requests to handlers. What a client can cost is bounded: connections, bytes, time, turns of the loop. */
#ifndef ISOBAR_CONTROL_ADMIN_H
#define ISOBAR_CONTROL_ADMIN_H

#include "control/control.h"

struct admin;
struct document;

/* Each has its answer: 431, 414, 413, 503, 408; a connection more closes the longest idle one, or else
 * itself. */
enum {
    ADMIN_HEAD_BYTES = 16 << 10,
    ADMIN_URI_BYTES = 4 << 10,
    ADMIN_FIELDS = 100,
    ADMIN_BODY_BYTES = 16 << 20,   /* what a document may have */
    ADMIN_BODIES_BYTES = 64 << 20, /* of all connections together */
    ADMIN_CONNECTIONS = 64,
    ADMIN_REQUEST_S = 10, /* for a handshake, a whole head, and for a reader to take some of the answer */
    ADMIN_BODY_S = 30,    /* for a whole body */
    ADMIN_IDLE_S = 75,    /* longer than a scrape interval, so that scrapers keep their connection */
};

/* Borrows until admin_free(). */
struct admin *admin_new(struct loop *loop, const struct control_view *view);
/* Every deferred call must have been finished. */
void admin_free(struct admin **admin);
/* What calls see as call->document from now on; NULL: none. */
void admin_set_document(struct admin *admin, struct document *document);
/* See control_listen(). */
iso_err admin_listen(struct admin *admin, const struct config_admin *config,
                     struct iso_diag *diag) ISO_MUST_USE;
const char *admin_endpoint(const struct admin *admin);
bool admin_is_tls(const struct admin *admin);

#endif
