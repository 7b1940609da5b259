/* SPDX-License-Identifier: Apache-2.0 */
/* A downstream delivers the answers of one client: over an HTTP/1 connection or a stream of an HTTP/2
 * connection (downstream/answers.h). The pipeline makes messages and body bytes; how they are put on the
 * wire, and what becomes of the connection afterwards, is the downstream's. Bytes go through client->conn
 * either way, which for a stream has no socket. */
#ifndef ISOBAR_PROXY_DOWNSTREAM_H
#define ISOBAR_PROXY_DOWNSTREAM_H

#include "core/scratch.h"
#include "http1/write.h"
#include "net/conn.h"

struct client;
struct exchange;

struct downstream {
    /* Bodies end by the protocol's own means: nothing is chunked, trailers can always follow, and a
     * connection has no last answer. */
    bool has_frames;
    const char *protocol; /* for the log; NULL: HTTP/1, by its minor version */
    /* Writes the head of an answer, interim or final, or gives it back in *head (else empty) to go out with
     * the first bytes of the body. `values` is room behind what the message refers to. False: it is too
     * large. */
    bool (*head)(struct exchange *x, struct http_message *msg, struct scratch *values, struct iovec *head);
    /* Trailers, behind the body that has been written; only with has_frames. */
    void (*trailers)(struct exchange *x, const struct http_message *trailers);
    /* The trailers of a request whose body has been read to its end; NULL: none. Only with has_frames. */
    const struct http_message *(*request_trailers)(struct client *client);
    /* Bytes of a body that a write would put on the wire at once; only with has_frames. */
    size_t (*room)(const struct client *client);
    /* Writes an answer of ours whole; `*n` are its bytes. */
    enum conn_result (*answer)(struct client *client, const struct h1_answer *how, size_t *n);
    /* The exchange has ended and is gone; its answer was written whole. */
    void (*next)(struct client *client);
    /* The same, but nothing more can be said: the client must see that the answer is not whole. `end` is an
     * enum exchange_end. */
    void (*cut)(struct client *client, unsigned end);
    /* The connection with the peer, whose TLS layer knows who that is. */
    const struct conn *(*transport)(const struct client *client);
};

#endif
