/* SPDX-License-Identifier: Apache-2.0 */
/* A client's HTTP/2 connection. It began as any other (client_h1.c), and became one by ALPN or by its first
 * bytes; the struct client stays and keeps socket, TLS and listener. What the client asks for are streams
 * (stream.c), each with an exchange of its own, so that one connection spreads over many targets. Output of
 * all streams is gathered and leaves in one write a turn. */
#ifndef ISOBAR_DOWNSTREAM_CLIENT_H2_H
#define ISOBAR_DOWNSTREAM_CLIENT_H2_H

#include "http2/server.h"
#include "proxy/exchange.h"

/* How far the connection is with its end (RFC 9113 6.8). */
enum h2_leaving { H2_STAYS, H2_GAVE_NOTICE, H2_WENT_AWAY };

struct client_h2 {
    struct client *client;       /* owns this */
    struct http2_server *server; /* owns */
    struct list streams;         /* owns: of struct stream.node */
    struct list waiting;         /* streams with output that has not gone: of struct stream.waiting */
    uint32_t n_streams;
    uint8_t leaving; /* enum h2_leaving */
    bool is_ending;  /* nothing more is read */
    bool is_in_head;
    struct buf *spent; /* owns: a list, of what was taken for output that is not written yet */
    bool is_gathering; /* output is being put together */
    bool has_failed;   /* the socket takes nothing any more: the connection ends in the next turn */
    struct loop_later flush, read_on;
    struct loop_timer leave_timer; /* the client has had the time to read the notice */
};

/* Is data[0..len) the beginning of what an HTTP/2 client sends first? `*whole`: and all of it. */
bool client_h2_is_preface(const char *data, size_t len, bool *whole);
/* The connection speaks HTTP/2 from here on; data[0..len) was read. It may have ended on return. */
void client_h2_begin(struct client *client, char *data, size_t len);
/* The socket is ready, and what was queued has been written as far as it would go. */
void client_h2_ready(struct client *client, bool was_blocked);
void client_h2_due(struct client *client);
/* The connection leaves in order: no new streams after a while, then the end with the last of them. */
void client_h2_wind_down(struct client *client);
/* The exchanges of all its streams end; the connection is closed by the caller. */
void client_h2_cut(struct client *client, enum exchange_end end);
/* Frees; part of client_close(). */
void client_h2_close(struct client *client);

/* Output is there: it goes in the next turn. */
void client_h2_flush_soon(struct client_h2 *h2);
/* Bytes of a stream that could be sent now. */
size_t client_h2_room(const struct client_h2 *h2, int32_t id);
/* Sends what is there at once, for as long as the socket takes it and `*left` (which a stream takes from) is
 * not empty. The connection does not end within this. */
void client_h2_write_now(struct client_h2 *h2, const struct slice *left);
/* The last stream has ended, or the first has begun. */
void client_h2_note_streams(struct client_h2 *h2);

#endif
