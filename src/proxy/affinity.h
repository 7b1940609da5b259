/* SPDX-License-Identifier: Apache-2.0 */
/* Session affinity (C1 to C3): a client stays with the target that served it first, as long as that target
 * can serve. Three ways: a cookie that names the target (no lookup anywhere), a session cookie mapped in a
 * table, or the client's address mapped in the table. A target that drains keeps its sessions until its
 * deadline and gets no new ones; when it fails or leaves, the next request is routed by the algorithm and
 * bound anew. */
#ifndef ISOBAR_PROXY_AFFINITY_H
#define ISOBAR_PROXY_AFFINITY_H

#include "core/scratch.h"
#include "http/message.h"

struct exchange;
struct ip_addr;
struct iso_diag;
struct snap_group;
struct snapshot;

/* What a group knows of a client. */
struct affinity_view {
    bool has_cookie;      /* the client sent one that could bind it */
    bool may_serve;       /* the target may, so that the request would go there */
    struct slice session; /* borrows from the request: the cookie's value; ptr NULL: it sent none */
    uint64_t key;         /* in the table; 0: the cookie itself names the target */
    uint32_t target;      /* that the client is bound to; BALANCE_NONE: to none of the group's */
    uint32_t age_s;       /* since it was bound to that target */
    uint32_t left_s;      /* until the entry ends, unless it is used; 0: there is none */
};

/* Computes what a group with affinity needs: the ids of its targets. Threads: control. */
void affinity_build(struct snapshot *snapshot, struct snap_group *group);

/* Reads the client's cookie while the request's head is at hand. */
void affinity_note_request(struct exchange *x, struct http_message *msg);
/* The shared store says that the client belongs to the target of this name. */
void affinity_adopt(struct exchange *x, struct slice name);
/* The target that the request is bound to, if it may still serve; BALANCE_NONE otherwise. */
uint32_t affinity_target(struct exchange *x);
/* The same for a request that is not made: renews nothing, gives nothing up, counts nothing. The group has
 * affinity. Units: `now_ns` monotonic, as the workers'. Threads: any. */
void affinity_peek(const struct snap_group *group, struct http_message *msg, const struct ip_addr *client,
                   uint64_t now_ns, uint64_t wall_ns, struct affinity_view *view);
/* A session of the table by its id: what the session cookie says, or the client's address. False when there
 * is none that names a target of the group. Threads: any. */
bool affinity_session_find(const struct snap_group *group, struct slice id, uint64_t now_ns,
                           struct affinity_view *view);
/* Forgets it, in the shared store and on the other nodes too: the next request is routed by the algorithm.
 * False when there was none in this process. Threads: any. */
bool affinity_session_end(const struct snap_group *group, struct slice id);
/* The target has answered: binds the client to it where that is new, and tells it by Set-Cookie. False: no
 * room. */
bool affinity_note_answer(struct exchange *x, struct http_message *msg, struct scratch *scratch);

#endif
