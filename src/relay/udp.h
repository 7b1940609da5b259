/* SPDX-License-Identifier: Apache-2.0 */
/* UDP listeners (A9): datagrams of one client port are a session, which keeps one target, with a socket of
 * its own to it, so that answers find their way back and the kernel tells of targets that refuse. A session
 * ends after timeouts.idle_ms without a datagram, or when the answers it waits for have come
 * (limits.replies).
 *
 * Their number is bounded by limits.connections. When it is reached, the session that has waited longest
 * without any answer makes room; when all have been answered, new clients are not served until one ends.
 *
 * A session follows the configuration: when its target is no longer served or usable, or refuses, the next
 * datagram goes to another one. Cases C-137 C-139.
 *
 *   udp.c          a listener's socket, its table of sessions and their end
 *   udp_session.c  one session: its target, datagrams both ways */
#ifndef ISOBAR_RELAY_UDP_H
#define ISOBAR_RELAY_UDP_H

#include "core/hash.h"
#include "net/datagram.h"
#include "observe/ends.h"
#include "worker/worker.h"

enum { UDP_SESSIONS_DEFAULT = 65536 };

/* A worker's memory for datagrams: made with its first UDP listener. */
struct udp_memory {
    struct datagram_batch received; /* from clients, and forwarded at once */
    struct datagram_batch replies;  /* from targets, sent together at the end of the turn */
    struct udp_port *replies_of;    /* the one port that they go through; NULL: there are none */
    struct slab sessions;           /* of struct udp_session */
};

struct udp_key {
    struct ip_addr peer, local;
    uint16_t peer_port;
};

/* One UDP listener of a worker. */
struct udp_port {
    struct worker_listener *listener;
    struct siphash_key hash_key;  /* clients choose their ports: they must not choose their bucket too */
    struct udp_session **buckets; /* owns; lists through session->next */
    uint32_t mask;
    uint32_t n;                    /* sessions */
    struct list answered, waiting; /* sessions in the order in which they were last moved to the end */
    struct loop_timer timer;       /* the first of them may be over */
    struct loop_deferred flush;    /* sends the replies at the end of the turn */
    bool is_flush_due;
    bool is_closing;    /* no datagrams of clients are read any more, only answers are awaited */
    uint64_t closed_ns; /* is_closing: when the wait for answers is over */
};

struct udp_session {
    struct loop_io io; /* connected to the target */
    struct udp_port *port;
    struct udp_session *next; /* in its bucket */
    struct list order;        /* in port->answered or ->waiting */
    struct udp_key key;
    struct datagram_addr peer; /* the client */
    struct snapshot *snapshot; /* pinned */
    struct snap_group *group;  /* borrows from the snapshot */
    struct backend *backend;   /* counted in flight */
    uint32_t target;           /* its index in the group */
    uint32_t epoch;            /* of the group's health when the target was last found usable */
    uint64_t begun_ns, begun_wall_ns;
    uint64_t active_ns; /* the last datagram either way */
    uint64_t moved_ns;  /* to the end of its list */
    uint64_t received_bytes, sent_bytes;
    uint64_t requests, replies; /* datagrams */
    uint8_t burst;              /* to read at once */
    uint8_t attempts;           /* targets so far */
    bool is_answered;
    bool is_refused; /* the target refused a datagram: the next goes elsewhere */
    struct loop_deferred deferred;
};

/* A listener begins to serve; its socket is armed. Aborts when memory ends. */
void udp_open(struct worker_listener *listener);
/* Reads no more of clients; sessions that await an answer get it within two seconds, the others end. The
 * socket closes with the last of them. */
void udp_close(struct worker_listener *listener);
/* Ends every session at once. */
void udp_cut_all(struct worker_listener *listener);
/* The listener's memory; it has no session left. NULL does nothing. */
void udp_free(struct udp_port *port);
/* The worker's; every listener is gone. NULL does nothing. */
void udp_memory_free(struct udp_memory *memory);

/* For the two files. Is there, or can be made, room for one more? */
bool udp_make_room(struct udp_port *port);
/* The session has had a datagram, from the client or back. */
void udp_touch(struct udp_session *session, bool is_reply);
void udp_end(struct udp_session *session, enum exchange_end end);
/* Where replies through this port are put, with room for `n` (at most DATAGRAM_BATCH); they are sent at the
 * end of the turn. */
struct datagram_batch *udp_replies(struct udp_port *port, uint32_t n);

/* The first datagram of a client that has no session: one with a target, or NULL. */
struct udp_session *udp_session_open(struct udp_port *port, const struct udp_key *key,
                                     const struct datagram *first);
void udp_session_forward(struct udp_session *session, const struct datagram *datagram);
/* Ends what it holds; the session has been taken out of the port's lists. */
void udp_session_close(struct udp_session *session, enum exchange_end end);

#endif
