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
#include "transform/grpc.h"
#include "transform/transfer.h"
#include "transform/websocket.h"

enum { EXCHANGE_TRIED_MAX = 8, EXCHANGE_INTERIM_MAX = 32 };

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
    bool is_unfit;                 /* the head cannot be sent over the carrier */
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
    uint16_t tried[EXCHANGE_TRIED_MAX];

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
/* Answers with our own words if nothing was sent yet, else cuts the client off; the attempt under way ends.
 */
void exchange_fail(struct exchange *x, enum exchange_end end);
/* The request's body cannot be read on: answers with the parser's word and ends the connection. */
void exchange_reject_body(struct exchange *x, enum http_reject why);
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
/* Counts and logs, once. */
void exchange_account(struct exchange *x);
/* Ends the attempt under way: the connection is pooled when `reuse`, else closed. */
void exchange_drop_upstream(struct exchange *x, bool reuse);
/* Frees. The client must have been told (client_next or client_close). */
void exchange_release(struct exchange *x);
/* An answer to a request that no exchange began for (a refused head, a timeout). */
void exchange_answer_bare(struct client *client, unsigned status, const char *word, const char *text,
                          bool json, bool head, unsigned client_minor);

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

/* Answers as a rule or the listener says; false: it is to be forwarded, and x->group is set. */
bool exchange_answer_by_rule(struct exchange *x, const struct http_message *msg);
/* Answers 429; `fields` beside Retry-After. */
void exchange_answer_limited(struct exchange *x, uint32_t retry_after_s, const struct h1_pair *fields,
                             uint32_t n_fields);
/* Answers 401 with a WWW-Authenticate field (another status without it). */
void exchange_answer_challenge(struct exchange *x, enum exchange_end end, struct slice challenge);
/* One line of the access log; a full ring is counted. */
void exchange_write_log(struct worker *worker, const struct snapshot_log *log,
                        const struct accesslog_entry *entry);

/* The target to try next, never one that was tried while another is usable; BALANCE_NONE when there is none.
 */
uint32_t select_target(struct exchange *x);
/* The hash of what the group's hash_key names. */
uint64_t select_hash(const struct snap_group *group, struct http_message *msg, const struct ip_addr *client);
/* The same for whatever else is balanced: not one of tried[0..n_tried) while another is usable. */
uint32_t select_from(struct snap_group *group, struct worker *worker, uint64_t hash, const uint16_t *tried,
                     uint32_t n_tried);
/* The same over moving state, a clock and random numbers that are not a worker's: for whoever asks what would
 * be chosen. Threads: the owner of `mine`. */
uint32_t select_in(const struct snap_group *group, struct snap_group_worker *mine, uint64_t now_ns,
                   struct rng *rng, uint64_t hash, const uint16_t *tried, uint32_t n_tried);
/* May this target of the group take work now, health and weight considered? */
bool select_may_take(struct snap_group *group, struct worker *worker, uint32_t target);
uint64_t select_hash_address(const struct ip_addr *ip);
/* Why select_target() found none. */
enum exchange_end select_why_none(const struct exchange *x);

/* How the attempt under way ended, as far as that tells something about its target (D2). Before the attempt
 * is dropped. */
void forward_note(struct exchange *x, enum passive_sign sign);
/* The same of any attempt. */
void forward_note_target(const struct worker *worker, const struct snap_group *group, struct backend *backend,
                         enum passive_sign sign);
/* Starts the first attempt; the head is in x->head, `pieces` hold the body bytes that came with it. */
void forward_start(struct exchange *x, const struct transfer_pieces *pieces);
/* Another attempt; the last one has been dropped. */
void forward_again(struct exchange *x);
/* The attempt has failed before any byte of an answer: tries again where that is allowed, else fails with
 * `end`. */
void forward_attempt_failed(struct exchange *x, enum exchange_end end);
/* More of the body, and its end, as of carrier->send(). */
enum conn_result forward_send(struct exchange *x, struct slice body, const struct http_message *trailers);
/* The carrier's connection is open: the request is sent. */
void forward_opened(struct exchange *x);
/* It could not be opened; `err` is an errno value. */
void forward_connect_failed(struct exchange *x, int err);
void forward_tls_failed(struct exchange *x);
/* The attempt begins anew, since its target speaks another protocol than it was taken for; nothing was sent.
 */
void forward_otherwise(struct exchange *x);
/* Sets or moves the attempt's deadline. */
void forward_set_deadline(struct exchange *x, uint32_t ms);
/* It has come. */
void forward_due(struct exchange *x);
/* No longer waits for a connection, if it did. */
void forward_leave_pending(struct exchange *x);
void forward_pending_init(struct worker *worker);
/* A connection was given back or closed: exchanges that wait may go on. */
void forward_wake_pending(struct worker *worker);

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

/* Takes body bytes that were read: framing off and on again, limits. False: the request was refused, x has
 * ended or its answer is on the way. */
bool request_take(struct exchange *x, char *data, size_t len, size_t *used, struct transfer_pieces *pieces);
/* The same and hands them to the target, or throws them away; returns how many belong to the request. */
size_t request_feed(struct exchange *x, char *data, size_t len);
/* Body bytes of a stream, to be handed on at once. False: the target is not ready, they have to wait. x may
 * have ended. */
bool request_push(struct exchange *x, char *data, size_t len);
/* The same of the body's end, with trailers (NULL: none). */
bool request_push_end(struct exchange *x, const struct http_message *trailers);
/* Reads the request's body from the client as long as the target takes it. */
void request_pump(struct exchange *x);
/* The client's deadline has come while its body was awaited. */
void request_due(struct exchange *x);

/* Of heads and trailers that targets send. */
extern const struct h1_limits response_limits;
/* Reads the answer as long as the client takes it. */
void response_pump(struct exchange *x);
/* The carrier has read the head of an interim answer (1xx without 101). False: x has ended. */
bool response_interim(struct exchange *x, struct http_message *msg);
/* The same of the final answer, or a 101, and of the bytes that came with it. False: x has ended or its
 * attempt has. */
bool response_head(struct exchange *x, struct http_message *msg, char *data, size_t len);
/* Then what follows, in the target's framing; changed in place. False: x has ended. */
bool response_body(struct exchange *x, char *data, size_t len);
/* The target's side has ended, or broken, before the answer was complete as far as its framing tells; with
 * answer_has_end in any case. `trailers` (NULL: none) came with an end in order. */
void response_end(struct exchange *x, bool in_order, const struct http_message *trailers);
/* The head is not valid HTTP. */
void response_reject(struct exchange *x, enum http_reject why);
void response_due(struct exchange *x);
/* How long the answer may stop, once it has begun or not. */
uint32_t response_patience_ms(const struct exchange *x);

/* The body may go through a pipe from here on, if it is worth it: x->is_spliced. All sent so far has gone. */
void splice_begin(struct exchange *x);
void splice_pump(struct exchange *x);
/* Gives the pipe of a spliced answer back, or closes it when bytes are left in it. */
void splice_drop(struct exchange *x);

/* The 101 has been sent: both connections become one tunnel. */
void tunnel_start(struct exchange *x, struct slice from_upstream);
void tunnel_pump(struct exchange *x);
void tunnel_due(struct exchange *x);

/* A WebSocket tunnel that will be cut says so: a close frame (1001) to each side, between two frames. */
void tunnel_say_going_away(struct exchange *x);

/* Body bytes in x->unsent. */
static inline uint32_t exchange_kept_body(const struct exchange *x)
{
    return x->unsent ? x->unsent_body : 0;
}

#endif
