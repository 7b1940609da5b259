/* SPDX-License-Identifier: Apache-2.0 */
/* Our side of HTTP/2 connections to servers, on libnghttp2: one connection carries many requests, each a
 * stream with an owner. Bytes of the connection come in by http2_client_feed() and go out by
 * http2_client_flush(); who owns the connection decides when. What came for a stream is handed to its owner
 * when all of a read has been taken apart, so that a head, the body behind it and its end are one call or
 * two.
 *
 * Back-pressure: an owner that cannot take more leaves it here, at most what the stream's window was, and the
 * server gets no more credit for it; other streams of the connection go on. Windows follow http2/window.h. In
 * the other direction what the server gives no credit for stays with the stream, and the owner adds nothing
 * before it has gone.
 *
 * One thread's; nothing is called before or after the calls below. Source: RFC 9113. */
#ifndef ISOBAR_HTTP2_CLIENT_H
#define ISOBAR_HTTP2_CLIENT_H

#include "core/list.h"
#include "core/slab.h"
#include "http2/head.h"
#include "http2/window.h"
#include "net/conn.h"

struct http2_client;
struct http2_client_thread;
struct pieces;
struct http2_stream;
struct nghttp2_session;

enum {
    HTTP2_CLIENT_WINDOW_BYTES = 256 * 1024, /* of a stream's body that may wait here for its owner */
    HTTP2_CLIENT_WINDOW_MOST = BUF_LARGEST, /* the same of a stream whose owner has never kept it waiting */
    HTTP2_CLIENT_CONN_WINDOW_BYTES = 16 * 1024 * 1024, /* of a connection, on its way: nothing waits by it */
    HTTP2_CLIENT_HEAD_BYTES = 64 * 1024,               /* of an answer's head or trailers */
};

enum http2_fail {
    HTTP2_FAIL_NONE,
    HTTP2_FAIL_REFUSED, /* nobody has worked on the request: REFUSED_STREAM, or behind the last one of a
                           GOAWAY */
    HTTP2_FAIL_RESET,   /* RST_STREAM */
    HTTP2_FAIL_BROKEN,  /* the connection has ended */
    HTTP2_FAIL_INVALID, /* the answer is not valid */
};

/* What an owner is told. It may release its stream in each of these. */
struct http2_stream_events {
    /* Is there room for what would come next? If not, http2_stream_deliver() goes on later. */
    bool (*can_take)(struct http2_stream *stream);
    /* The head of an interim answer, in the thread's message. */
    void (*on_interim)(struct http2_stream *stream, struct http_message *msg);
    /* The head of the answer, and of its body what came with it, which may be changed in place. Framing
     * HTTP_BODY_CHUNKED means: to on_end(). */
    void (*on_head)(struct http2_stream *stream, struct http_message *msg, char *data, size_t len);
    void (*on_body)(struct http2_stream *stream, char *data, size_t len);
    /* The answer is complete. `trailers`: NULL: none. */
    void (*on_end)(struct http2_stream *stream, struct http_message *trailers);
    /* It will not be complete; nothing follows. `why` counts for INVALID. */
    void (*on_fail)(struct http2_stream *stream, enum http2_fail fail, enum http_reject why);
    /* What was sent has left: more may follow. */
    void (*on_room)(struct http2_stream *stream);
    /* Of a stream that is pulled: there is something to be taken. */
    void (*on_ready)(struct http2_stream *stream);
};

struct http2_stream {
    struct http2_client *client;
    const struct http2_stream_events *events;
    void *owner;         /* NULL: released */
    struct list node;    /* in client->streams */
    struct list touched; /* in client->touched: something is to be delivered */
    int32_t id;          /* 0: not requested yet */
    uint8_t method;      /* enum http_method */
    uint8_t fail;        /* enum http2_fail */
    uint8_t reject;      /* enum http_reject, for HTTP2_FAIL_INVALID */
    bool was_told;       /* by http2_client_next_waiting() */
    bool has_head;       /* the final head was received, and is in `head` until it is delivered */
    bool head_ends;      /* without a body */
    bool head_delivered;
    bool has_trailers; /* they were received, and are in `trailers` */
    bool in_ended;     /* the answer was received whole */
    bool out_ends;     /* the end of the request's body follows `out` */
    bool is_waiting;   /* for more of the request's body: nghttp2 is told when it comes */
    bool got_room;     /* on_room is due */
    bool peer_reset;   /* RST_STREAM came */
    bool is_closed;    /* nghttp2 has forgotten it */
    bool is_delivering;
    bool wants_settings; /* it is not told of an open connection before the server's SETTINGS have come */
    bool is_pulled;      /* the owner takes the body by http2_stream_take() */
    struct http2_head head, trailers;
    struct slice held;          /* borrows from the read under way: body bytes not delivered yet */
    struct http2_window window; /* what `held` and `in` may come to */
    struct buf *in;             /* owns: body bytes that the owner had no room for */
    struct buf *out;            /* owns: body bytes to be sent */
    struct buf *out_trailers;   /* owns: lines, as HTTP/1 has them; NULL: none */
};

struct http2_client {
    struct http2_client_thread *thread; /* borrows */
    struct conn *conn;                  /* borrows */
    struct nghttp2_session *session;    /* owns */
    struct list streams, touched;
    struct http2_pace pace;
    struct http2_known known;
    uint64_t now_ns;             /* of the last read */
    struct http2_stream *holder; /* whose `held` is the last one of this read */
    uint32_t n_streams;          /* with an owner, requested or not */
    uint64_t sent_bytes;         /* so far */
    uint32_t max_streams;        /* that the server wants at most */
    int32_t last_id;             /* of a GOAWAY, with is_leaving */
    bool has_settings;           /* the server's first SETTINGS have come */
    bool takes_connect;          /* and say that it takes extended CONNECTs (RFC 8441) */
    bool is_leaving;             /* GOAWAY came, or the connection is worn out: no new requests */
    bool is_broken;
    bool awaits_pong;
    bool got_settings; /* set by each SETTINGS; for the owner to clear */
    bool had_answers;  /* set when something of an answer comes; for the owner to clear */
    bool had_requests;
};

/* What the clients of one thread share. `bufs` outlives it, and so does `growth`, the gauge of http2/window.h
 * (NULL: windows are bounded by stream only). Aborts when memory ends. */
struct http2_client_thread *http2_client_thread_new(struct buf_pool *bufs, counter *growth);
/* For other sessions of the thread. */
struct pieces *http2_client_thread_memory(struct http2_client_thread *thread);
counter *http2_client_thread_growth(struct http2_client_thread *thread);
/* Every client must have ended. */
void http2_client_thread_free(struct http2_client_thread *thread);

/* Begins on an open connection: the preface is due at the next flush. False: no memory. */
bool http2_client_open(struct http2_client *client, struct http2_client_thread *thread,
                       struct conn *conn) ISO_MUST_USE;
/* Before that: streams may be made, which wait. */
void http2_client_init(struct http2_client *client, struct http2_client_thread *thread);
/* Streams whose answer has not come whole fail with BROKEN; the others live on until their owners have taken
 * it (n_streams). The session's memory goes. Not within a call of the events. */
void http2_client_close(struct http2_client *client);

/* Takes bytes that were read, which may be changed in place, and delivers what came of them. False: the
 * connection is of no more use (and `is_broken`). Units: `now_ns` monotonic. */
bool http2_client_feed(struct http2_client *client, char *data, size_t len, uint64_t now_ns);
/* Sends what is due as long as the connection takes it. False as above. Not within a call of the events. */
bool http2_client_flush(struct http2_client *client);
/* Asks for a sign of life; `awaits_pong` until it comes. */
void http2_client_ping(struct http2_client *client);
/* Says that we leave (GOAWAY), at the next flush. */
void http2_client_say_goodbye(struct http2_client *client);

/* Of the streams that were made before the connection was open, or before SETTINGS that they want had come,
 * the next that has not been returned, or NULL. */
struct http2_stream *http2_client_next_waiting(struct http2_client *client);

/* Makes a stream; NULL: no memory. `owner` not NULL. */
struct http2_stream *http2_stream_new(struct http2_client *client, const struct http2_stream_events *events,
                                      void *owner);
/* Sends the head of a request; more follows by http2_stream_send() unless `is_whole`. With `protocol` (empty:
 * none) it is an extended CONNECT. False: no memory, or the connection takes no more requests. */
bool http2_stream_request(struct http2_stream *stream, const struct http_message *msg, struct slice scheme,
                          struct slice protocol, bool is_whole);
/* Sends body bytes, and the end with `trailers` (NULL: none) when `is_last`. False: no memory. */
bool http2_stream_send(struct http2_stream *stream, struct slice body, bool is_last,
                       const struct http_message *trailers);
/* Is something queued that the server has no room for yet? */
static inline bool http2_stream_is_full(const struct http2_stream *stream)
{
    return stream->out != NULL;
}
/* Hands what is here to the owner, as far as it can take it. */
void http2_stream_deliver(struct http2_stream *stream);
/* From on_head() on: the owner takes what comes by itself, when on_ready() says that there is something. */
void http2_stream_pull(struct http2_stream *stream);
/* Takes up to `cap` bytes of the body; 0: there are none now, or with in_ended none will come. */
size_t http2_stream_take(struct http2_stream *stream, char *data, size_t cap);
/* The owner is through with it: what is not complete is reset. Takes *stream. */
void http2_stream_release(struct http2_stream **stream);

#endif
