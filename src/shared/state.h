/* SPDX-License-Identifier: Apache-2.0 */
/* What nodes share through Redis (C2, H2): which target a session belongs to, and what is left of limits that
 * count for all nodes together (F1). One thread talks to the server
 * (shared/redis); workers hand it calls through its mailbox and get them back through theirs, so that no
 * worker waits for anything. A call comes back within the deadline: with nothing when the server is slow or
 * away.
 *
 * Two kinds of writes. A binding is new: it goes through the outbox, which keeps it while the server is away.
 * A renewal only prolongs what is there: it is sent once, and a script lets the server's word win, so that a
 * node with an old binding learns the new one instead of undoing it; after the server has lost its memory it
 * puts the binding back. Deletions are also announced on a channel, since other nodes keep copies.
 *
 * Keys: session:ID, client:GROUP/ADDRESS; values: the target's name. Source: C2, C5; source 001 "Redis". */
#ifndef ISOBAR_SHARED_STATE_H
#define ISOBAR_SHARED_STATE_H

#include "core/err.h"
#include "core/hash.h"
#include "core/ip.h"
#include "net/loop.h"
#include "shared/fleet.h"
#include "shared/local.h"
#include "shared/roster.h"
#include "tls/client.h"

struct shared_state;

enum { SHARED_KEY_MAX = 320, SHARED_VALUE_MAX = 256 };

enum shared_op {
    SHARED_FIND,  /* the value of the key; comes back when it is known or the deadline has come */
    SHARED_BIND,  /* stores key and value; comes back at once */
    SHARED_RENEW, /* prolongs, see above; comes back at once */
};

enum shared_answer { SHARED_FOUND, SHARED_NONE, SHARED_NO_ANSWER };

/* A worker's call; its memory is the worker's and lent to the thread from shared_state_post() until
 * `answered` runs on the worker's loop. */
struct shared_call {
    struct loop_call post;
    struct loop *home;      /* where `answered` runs */
    loop_call_fn *answered; /* its arg is the call */
    enum shared_op op;
    enum shared_answer answer;
    uint32_t ttl_s;
    /* RENEW: where the binding is in memory, to put it right */
    struct local_sessions *table; /* only compared with those of the current configuration */
    uint64_t table_key;
    uint16_t key_len, value_len;
    char key[SHARED_KEY_MAX], value[SHARED_VALUE_MAX];
};

/* Texts are copied. */
struct shared_options {
    struct slice host, user, password;
    uint16_t port;
    uint32_t db, timeout_ms;
    struct tls_client *tls; /* counted; NULL: plain */
};

/* One target group's table, for what other nodes announce. */
struct shared_table {
    struct slice group; /* borrows; copied */
    struct local_sessions *table;
    struct siphash_key salt;
};

/* Starts the thread, without a server yet. Threads: control, after signals are blocked. */
iso_err shared_state_start(struct shared_state **out) ISO_MUST_USE;
/* What the current configuration has that the store is about; arrays are copied. */
struct shared_objects {
    const struct shared_table *tables; /* of sessions */
    struct limiter *const *limiters;   /* that all nodes share */
    const struct roster_target *targets;
    struct roster_words words; /* for them */
    uint32_t n_tables, n_limiters, n_targets;
};

/* From now on this server (NULL: none) and these objects; connections stay when the options are the same.
 * When this returns, objects of before are no longer touched. Threads: control; waits for the thread, some
 * tens of microseconds. */
void shared_state_apply(struct shared_state *state, const struct shared_options *options,
                        const struct shared_objects *objects);
/* Ends the thread; calls that are under way do not come back. The loops of workers must still exist. Threads:
 * control. */
void shared_state_stop(struct shared_state **state);

/* Would a FIND be answered in time, as far as is known? Threads: any. */
bool shared_state_answers(const struct shared_state *state);
/* Hands a call in. Threads: any. */
void shared_state_post(struct shared_state *state, struct shared_call *call);

/* The key of a session or of a client's address (an IPv6 client's /64) in call->key; false: too long. */
bool shared_key_of_session(struct shared_call *call, struct slice id);
bool shared_key_of_client(struct shared_call *call, struct slice group, const struct ip_addr *ip);

/* Forgets a binding everywhere: here, in the server, on the other nodes. `id` is of a session, or an address
 * in text. Threads: any but the state's; takes a lock for an instant. */
void shared_state_forget(struct shared_state *state, struct slice group, struct slice id);

/* What has passed under a limit that all nodes share; the memory is the worker's and lent until `returned`
 * runs on the worker's loop, at once. */
struct shared_report {
    struct loop_call post;
    struct loop *home;
    loop_call_fn *returned; /* its arg is the report */
    struct fleet_bucket bucket;
};
/* Hands one in, see limiter_take_fleet(). Threads: any. */
void shared_state_report(struct shared_state *state, struct shared_report *report);

/* For metrics. Threads: any. */
struct shared_figures {
    bool is_configured, is_up;
    uint64_t found, none, unanswered; /* answers to FIND */
    uint64_t outages;                 /* times that the server became slow or went away */
    uint64_t stored, errors, lost;    /* writes; replies that were errors; writes given up */
    uint64_t waiting;                 /* writes that wait to be stored */
};
void shared_state_figures(const struct shared_state *state, struct shared_figures *figures);

#endif
