/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of a client's HTTP/2 connection: what its exchange sees as the client. Its conn has no socket but
 * a layer: reading takes body bytes that came in DATA frames, writing leaves bytes for DATA frames to come,
 * so tunnels and everything else that moves bytes work over it unchanged. A body that its target does not
 * take at once waits here, bounded by the stream's window; an answer that the client does not take, by one
 * read from the target. */
#ifndef ISOBAR_DOWNSTREAM_STREAM_H
#define ISOBAR_DOWNSTREAM_STREAM_H

#include "downstream/client_h2.h"

struct stream {
    struct client client;
    struct client_h2 *connection; /* borrows: outlives it */
    int32_t id;
    bool in_ended;              /* the request's END_STREAM has come */
    bool is_over;               /* the answer is written whole */
    bool is_closed;             /* HTTP/2 knows it no more: nothing can be sent */
    struct http2_window window; /* what `in` may come to */
    struct slice through;       /* borrows: of the answer, being written from where it is */
    struct buf *in;             /* owns: body bytes that the target did not take yet */
    struct buf *in_trailers;    /* owns: what follows them, as lines */
    struct buf *trailers;       /* owns: of the answer, as lines */
    uint64_t taken_bytes;       /* of the answer, by the connection */
    uint64_t unwanted_bytes;    /* of the request, that came when its answer was complete */
    struct list node;           /* in connection->streams */
    struct list waiting;        /* in connection->waiting while conn.out is set */
};

extern const struct http2_server_handler stream_handler;

/* Watches the progress of a client that does not open its window. */
void stream_watch(struct stream *stream);
/* The answer has been written whole: it ends where its output does. */
void stream_finish(struct stream *stream);
/* What is not sent yet never will be. */
void stream_reset(struct stream *stream, enum http2_code code);
/* Fields of a trailer section, kept as lines until their time has come; NULL: no memory. And the message that
 * they are, in the worker's scratch; NULL: none. */
struct buf *stream_keep_lines(struct worker *worker, const struct http_message *trailers);
const struct http_message *stream_parse_lines(struct stream *stream, const struct buf *lines);
/* Its exchange, if any, ends with `end`, and so does it; nothing is sent. */
void stream_end(struct stream *stream, enum exchange_end end);

#endif
