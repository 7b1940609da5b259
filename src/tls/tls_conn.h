/* SPDX-License-Identifier: Apache-2.0 */
/* One connection's TLS state, as the files of tls/ see it. */
#ifndef ISOBAR_TLS_TLS_CONN_H
#define ISOBAR_TLS_TLS_CONN_H

#include "core/list.h"
#include "tls/client.h"
#include "tls/tickets.h"
#include "tls/tls_layer.h"

#include <openssl/ssl.h>

struct tls_conn {
    struct conn *conn; /* borrows: it is this one's layer_state */
    struct tls_thread *thread;
    struct tls_server *server;     /* shared (counted); NULL: we are the client */
    struct tls_client *client;     /* shared (counted); NULL: we are the server */
    struct tls_session_slot *slot; /* borrows from the caller of tls_connect(); NULL: none */
    SSL *ssl;                      /* owns */
    struct buf *kept;              /* owns: received, and not yet taken by OpenSSL */
    struct buf *held;              /* owns: made while reading (tickets), leaves with the next write */
    struct list waiting;           /* in thread->waiting: its handshake goes on in a later turn */
    uint32_t policy;               /* of the entry chosen, with `server` */
    char *subject;                 /* owns: tls_peer_subject(), once it was asked for */
    bool is_open;                  /* the handshake is done */
    bool has_begun;                /* something came from the peer, or our hello was made */
    bool saw_close;                /* close_notify came */
    bool has_failed;               /* nothing can be read or written any more */
    bool sent_close;               /* close_notify was sent */
    const char *why;               /* has_failed: OpenSSL's word for it, static; NULL: unknown */
};

/* Puts the layer on a connection and takes `ssl` over; NULL: no memory, and the caller keeps it. */
struct tls_conn *tls_conn_attach(struct tls_thread *thread, struct conn *conn, SSL *ssl);

/* The keys of tickets, as of now. */
const struct ticket_chain *tls_thread_tickets(struct tls_thread *thread);

/* The state behind an SSL that a callback was given. */
static inline struct tls_conn *tls_conn_of(SSL *ssl)
{
    return SSL_get_app_data(ssl);
}

#endif
