/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of the admin server. It works on one request at a time: head, then who asks and for what,
 * then the body, then the handler, then the answer; what is pipelined behind waits in the input buffer and in
 * the kernel. Nothing is taken from a client before it is known to be allowed: the body is read last.
 *
 *   admin_conn.c     the connection: its phases, reading, the answer
 *   admin_request.c  the request: head, body, handler */
#ifndef ISOBAR_CONTROL_ADMIN_CONN_H
#define ISOBAR_CONTROL_ADMIN_CONN_H

#include "control/admin_internal.h"
#include "http1/parse.h"

enum conn_phase {
    CONN_HANDSHAKE, /* TLS */
    CONN_IDLE,      /* no byte of a request yet */
    CONN_HEAD,      /* a head has begun */
    CONN_BODY,      /* its body is on its way */
    CONN_HANDLING,  /* a handler has deferred its answer */
    CONN_WRITING,   /* the answer is not all sent */
    CONN_LINGER, /* all is sent, the peer's bytes are thrown away until it closes, so that it can read us */
    CONN_CLOSED,
};

struct admin_conn {
    struct conn conn;
    struct list node; /* in admin->conns, longest idle first */
    struct admin *admin;
    struct loop_later resume;
    struct loop_deferred release;
    uint8_t phase; /* enum conn_phase */
    bool close_after;
    char *in; /* owns; [IN_BYTES]; NULL while idle */
    size_t in_len;
    struct api_call *call; /* owns: the request being read or answered */
    struct text body;      /* owns: of it, so far */
    uint64_t body_left;    /* of a body with a length */
    struct h1_chunked chunked;
    bool in_trailers;
    char *out; /* owns; the answer; NULL when there is none */
    size_t out_len, out_sent;
    size_t lingered; /* bytes thrown away */
};

/* Enters a phase and gives it its time; 0: as long as it takes. */
void admin_conn_set_phase(struct admin_conn *conn, enum conn_phase phase, uint32_t seconds);
/* Puts the answer of conn->call together and ends the call. */
void admin_conn_queue_answer(struct admin_conn *conn);
void admin_conn_close(struct admin_conn *conn);

/* Takes the head at the front of the input; false when there is not a whole one. */
bool admin_conn_take_head(struct admin_conn *conn);
/* Takes what the input has of the body; false when more is needed. */
bool admin_conn_take_body(struct admin_conn *conn);
/* What was refused before its body was read, or before it was a request; the connection ends with the
 * answer. */
void admin_conn_refuse(struct admin_conn *conn, unsigned status, const char *code, const char *message);

#endif
