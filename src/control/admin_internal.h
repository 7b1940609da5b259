/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the admin server share. */
#ifndef ISOBAR_CONTROL_ADMIN_INTERNAL_H
#define ISOBAR_CONTROL_ADMIN_INTERNAL_H

#include "api/auth.h"
#include "control/admin.h"
#include "control/router.h"
#include "core/buf.h"
#include "net/conn.h"
#include "tls/server.h"
#include "tls/tls_layer.h"

struct admin {
    struct loop *loop;               /* borrows */
    const struct control_view *view; /* borrows */
    struct document *document;       /* borrows */
    struct buf_pool bufs;
    struct tls_thread *tls;    /* owns */
    struct tls_server *server; /* shared (counted): of new connections; NULL: plain */
    struct auth *auth;         /* owns; NULL: whoever gets here may do everything */
    struct loop_io listener;
    struct loop_timer retry; /* of accept(), when there was no descriptor */
    struct net_addr addr;
    char *configured;  /* owns; the endpoint as configured; NULL: no listener */
    char actual[128];  /* with the port the kernel chose */
    struct list conns; /* of struct admin_conn, longest idle first */
    uint32_t n_conns;
    size_t body_bytes; /* of requests that are being read or answered */
};

/* admin_access.c: who asks, into call->role and call->who; may they do this? False with the answer in the
 * call. */
bool access_identify(const struct admin *admin, struct api_call *call);
bool access_allow(const struct admin *admin, struct api_call *call, enum router_result found);

/* Takes the descriptor over. */
void admin_conn_open(struct admin *admin, int fd);
/* Closes the connection that has been idle longest; false when none is. */
bool admin_conn_close_idle(struct admin *admin);
void admin_conn_close_all(struct admin *admin);

#endif
