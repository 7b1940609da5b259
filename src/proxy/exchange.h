/* SPDX-License-Identifier: Apache-2.0 */
/* One request and its answer: from a parsed head to the last byte and the access log line. The exchange
 * borrows the client connection that it came on and, while an attempt is under way, has a carrier for it; it
 * pins the snapshot under which it began. It ends in exchange_release() and nowhere else.
 *
 *   exchange.c  begin, end                        select.c   which target, affinity.c the bound one
 *   access.c    may it come in
 *   answer.c    answers of our own                account.c  counters and the access log
 *   forward.c   attempts, retries, waiting        request.c  the request's body to the target
 *   retry.c     whether another attempt is made, and when
 *   carrier_h1.c  an attempt over a connection    carrier_h2.c  over a stream
 *   splice.c    long bodies through a pipe
 *   response.c  the answer to the client          tunnel.c   what follows a 101 */
#ifndef ISOBAR_PROXY_EXCHANGE_H
#define ISOBAR_PROXY_EXCHANGE_H

#include "observe/ends.h"
#include "proxy/carrier.h"
#include "proxy/client.h"
#include "proxy/select.h"
#include "transform/grpc.h"
#include "transform/transfer.h"
#include "transform/websocket.h"

enum { EXCHANGE_INTERIM_MAX = 32 };

struct exchange {
    struct worker *worker;
    struct client *client;
    struct snapshot *snapshot;            /* pinned: worker_corner use count */
    const struct snap_listener *listener; /* borrows from the snapshot, like the four below */
    const struct config_rule *rule;       /* NULL: the listener's default */
    struct snap_group *group;             /* NULL: answered by us */
    struct backend *backend;              /* NULL: no attempt is under way */
    const struct carrier *carrier;        /* of the attempt under way; NULL with `backend` */
    struct upstream *upstream;            /* lent, while the carrier is carrier_h1 */
    struct http2_stream *stream;          /* owns, while it is carrier_h2 */
    struct conn *far_end;                 /* borrows from the carrier: of a tunnel, at the target */

    struct transfer request, response;

    uint64_t begun_ns, begun_wall_ns; /* the head was complete */
    uint64_t attempt_ns;              /* the current attempt began */
    uint64_t answer_ns;               /* the answer's head came */
    uint64_t received_bytes, sent_bytes;
    uint64_t rate_checked_ns, rate_bytes; /* progress of the request body at the last check */
    uint64_t hash;
    uint64_t session_key;  /* affinity by session or address: of the table */
    uint32_t bound_target; /* affinity: the target this client is bound to, or BALANCE_NONE */

    struct auth_call *auth;   /* that a password is compared by; NULL: none is */
    uint32_t limit_told;      /* what remains of the client's rate limit, plus 1; 0: it is not told */
    uint32_t limit_reset_s;   /* until all of it does */
    struct share_call *share; /* holds: affinity's, for the shared store; NULL: none */
    struct buf
        *head; /* owns: the head as forwarded, kept while it may have to be sent again; then log texts */
    uint32_t head_len;
    struct buf *unsent;   /* owns: the body so far, and its trailers, that may have to be sent (again) */
    uint32_t unsent_body; /* bytes of it before the trailers */

    uint8_t method;       /* enum http_method */
    uint8_t client_minor; /* HTTP/1.x of the client */
    uint8_t attempts, max_attempts;
    uint8_t n_tried;
    uint8_t n_interim;
    uint8_t end;     /* enum exchange_end */
    uint8_t reject;  /* enum http_reject, when end is REJECTED or BAD_BODY */
    uint8_t unfit;   /* enum exchange_end: why the head cannot be sent over the carrier; NORMAL: it can */
    uint16_t status; /* sent to the client; 0: none yet */

    bool keep_alive; /* the client's wish */
    bool wants_json;
    bool wants_upgrade;
    bool te_trailers;
    bool expects_continue; /* and no 100 was sent yet */
    bool answer_begun;     /* bytes of a final answer went to the client */
    bool answer_done;
    bool discard; /* the rest of the request's body goes nowhere */
    bool is_tunnel;
    bool is_websocket;
    bool is_going_away;            /* close frames are sent as soon as they may be */
    bool client_told, target_told; /* our close frame went there: nothing may follow it */
    bool is_pending;               /* waits in worker->pending */
    bool is_backing_off;           /* waits in worker->backing_off, until pending_until_ns */
    bool request_is_chunked;       /* its length is not known: chunked for HTTP/1 */
    bool is_connecting;            /* the attempt waits for its connection: nothing was sent */
    bool is_reused;                /* the attempt's connection had requests before */
    bool upstream_reusable;
    bool reused_retry; /* the one free retry after a stale pooled connection is spent */
    bool wants_fresh;  /* the next attempt opens a new connection */
    bool upstream_write_failed;
    bool has_session; /* the client sent a session cookie */
    bool is_accounted;
    bool is_spliced;
    bool is_grpc;         /* a call: failures are told by grpc-status */
    bool has_deadline;    /* of the caller, by grpc-timeout */
    uint8_t grpc_status;  /* enum grpc_status, as answered */
    bool has_answer_head; /* the final answer's head was read */
    bool answer_has_end;  /* the end of its body comes by response_end() whatever the head says */
    uint16_t tried[SELECT_TRIED_MAX];

    struct pipe_pair pipe; /* while spliced */
    uint32_t in_pipe;

    uint64_t drain_due_ns;                       /* 0: its target is not leaving */
    struct list draining;                        /* in worker->draining */
    struct websocket_track to_client, to_target; /* of a WebSocket tunnel */
    struct list pending;                         /* in worker->pending while it waits for a connection */
    uint64_t pending_until_ns;
    struct loop_later resume;
    struct loop_timer stream_timer; /* carrier_h2: the attempt's deadline */
    struct loop_timer deadline;     /* with has_deadline */

    struct ip_addr client_ip;
    struct slice log_method, log_host, log_path, log_query, log_request_id, log_user_agent, log_referer;
};

/* Takes over a complete, accepted head (w->msg) and the bytes behind it; returns how many of these belong to
 * this request. The client's exchange is set, unless it already ended. */
size_t exchange_begin(struct client *client, struct http_message *msg, size_t head_bytes, char *data,
                      size_t len);
/* The client is gone: everything ends at once. */
void exchange_abort(struct exchange *x, enum exchange_end end);
/* The answer is complete: accounts, gives the upstream connection back; ends the exchange, or discards the
 * rest of the request's body first. */
void exchange_answered(struct exchange *x);
/* The answer is complete but the request's body is not, and no more of it is read: the connection lingers
 * until the client has seen the answer (case C-048). */
void exchange_stop_discarding(struct exchange *x);
/* Goes on with reading, both ways, in the next turn. */
void exchange_resume(struct exchange *x);
/* Ends the attempt under way: the connection is pooled when `reuse`, else closed. */
void exchange_drop_upstream(struct exchange *x, bool reuse);
/* Frees. The client must have been told (client_next or client_close). */
void exchange_release(struct exchange *x);

/* Body bytes in x->unsent. */
static inline uint32_t exchange_kept_body(const struct exchange *x)
{
    return x->unsent ? x->unsent_body : 0;
}

#endif
