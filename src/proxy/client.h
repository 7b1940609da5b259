/* SPDX-License-Identifier: Apache-2.0 */
/* A client as its exchanges see it: the connection that requests come on and answers go to, HTTP/1's own or a
 * stream of HTTP/2's, and the moving of its bytes. How a connection is opened, read and ended, and how
 * answers are put on its wire, is downstream/. */
#ifndef ISOBAR_PROXY_CLIENT_H
#define ISOBAR_PROXY_CLIENT_H

#include "net/conn.h"
#include "proxy/downstream.h"
#include "worker/worker.h"

struct client_h2;
struct exchange;

enum client_state {
    CLIENT_HANDSHAKE, /* TLS is being set up */
    CLIENT_IDLE,      /* between requests: no byte of the next head has come */
    CLIENT_HEAD,      /* a head is on its way */
    CLIENT_EXCHANGE,  /* an exchange has it */
    CLIENT_H2,        /* it speaks HTTP/2 (downstream/client_h2.c) */
    CLIENT_LINGER, /* our last answer is sent: discard what still comes until the peer closes (RFC 9112 9.6)
                    */
    CLIENT_CLOSED,
};

struct client {
    struct conn conn;
    const struct downstream *downstream; /* how answers get to it */
    struct worker_listener *listener;    /* lives as long as its clients */
    struct exchange *exchange;           /* owns; NULL between requests */
    struct client_h2 *h2;                /* owns; NULL unless it speaks HTTP/2 */
    struct buf *in;                /* owns: the beginning of a head, or bytes behind the current request */
    struct buf *proxied;           /* owns: the PROXY header it came with, see announce.h */
    struct upstream *own_upstream; /* the pool's: idle, and only for this client, see announce.h */
    struct loop_later resume;      /* go on with the next request */
    struct list node;              /* in listener->clients */
    struct ip_addr peer;
    uint16_t peer_port;
    uint8_t state;       /* enum client_state */
    bool close_after;    /* close once the current answer is sent */
    bool is_stalled;     /* the socket took no more: its progress is watched */
    bool unread_request; /* the peer may still be sending: closing at once could destroy our answer */
    uint32_t requests;
    union {
        uint64_t stalled_at_ns;   /* is_stalled: when the last check of its progress was */
        uint64_t lingers_from_ns; /* CLIENT_LINGER, and all output sent */
        struct loop_deferred deferred;
    };
    uint64_t stalled_left; /* bytes that were still to go at that check */
};

static inline struct loop *client_loop(const struct client *client)
{
    return &client->listener->worker->loop;
}

static inline const struct config_listener *client_config(const struct client *client)
{
    return client->listener->current->config;
}

/* The connection's one timer; what is due then, its state says. */
void client_set_deadline(struct client *client, uint32_t ms);
/* Keeps the bytes from which no head can be made yet, in place of what was kept. False: no memory. */
bool client_keep(struct client *client, const char *data, size_t len);
/* Keeps bytes that were read behind the current request; they are the beginning of the next one. False: no
 * memory. */
bool client_keep_rest(struct client *client, const char *data, size_t len);
/* Arms the connection in epoll; false when the system refuses (then it must be closed). */
bool client_arm(struct client *client);
/* Sends pieces to the client; counts bytes; starts watching progress when the socket is full. CONN_FAILED:
 * the client is gone, the caller ends the exchange. */
enum conn_result client_write(struct client *client, const struct iovec *pieces, int n);
/* The socket is full: watches progress until client_took_output(); goes on with a watch under way. False: the
 * connection is of no more use. */
bool client_wait_writable(struct client *client);
/* The socket took all that was queued. */
void client_took_output(struct client *client);
/* While output is queued a full socket must make progress (limits.min_rate_bytes_per_s, timeouts.body_ms). */
bool client_made_progress(struct client *client);

/* Where bytes of a client are counted: those of a stream pass its connection first, framed, and count there.
 */
static inline counter *client_received(struct client *client)
{
    struct worker_listener *listener = client->listener;
    return client->conn.io.fd < 0 ? &listener->worker->counted_elsewhere
                                  : &listener->counters->received_bytes;
}
static inline counter *client_sent(struct client *client)
{
    struct worker_listener *listener = client->listener;
    return client->conn.io.fd < 0 ? &listener->worker->counted_elsewhere : &listener->counters->sent_bytes;
}

/* Progress of a client that sends a body or takes an answer is looked at so often, and found too slow only
 * after so long below limits.min_rate_bytes_per_s. What fits into the peer's buffers goes fast at first: each
 * look that finds enough begins the wait anew, so frequent looks keep the end within 15 s (slowhttptest, slow
 * read). */
enum { CLIENT_CHECK_MS = 2500, CLIENT_SLOW_AFTER_MS = 10000 };

static inline uint32_t client_check_ms(const struct config_listener *config)
{
    return config->timeouts.body_ms < CLIENT_CHECK_MS ? config->timeouts.body_ms : CLIENT_CHECK_MS;
}

/* Of a body that nobody wants this much is read and thrown away, so that the connection can be used again;
 * when more comes, the connection ends. */
enum { CLIENT_DISCARD_BYTES = 1024 * 1024 };

#endif
