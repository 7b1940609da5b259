/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server: a small HTTP/1 server on the control thread's loop, apart from the traffic (G6). It reads
 * a request's head by the same strict parser as the proxy, answers from pages.c and bounds what a client can
 * cost: connections, bytes, time. */
#ifndef ISOBAR_CONTROL_ADMIN_H
#define ISOBAR_CONTROL_ADMIN_H

#include "control/control.h"

struct admin;

/* Each has its answer: 431, 414, 408; a connection more closes the longest idle one, or else itself. */
enum {
    ADMIN_HEAD_BYTES = 16 << 10,
    ADMIN_URI_BYTES = 4 << 10,
    ADMIN_FIELDS = 100,
    ADMIN_CONNECTIONS = 64,
    ADMIN_REQUEST_S = 10, /* for a whole head, and for a reader to take some of the answer */
    ADMIN_IDLE_S = 75,    /* longer than a scrape interval, so that scrapers keep their connection */
};

/* Borrows both until admin_free(). */
struct admin *admin_new(struct loop *loop, const struct control_view *view);
void admin_free(struct admin **admin);
/* See control_listen(). */
iso_err admin_listen(struct admin *admin, const struct config_endpoint *endpoint,
                     struct iso_diag *diag) ISO_MUST_USE;
const char *admin_endpoint(const struct admin *admin);

#endif
