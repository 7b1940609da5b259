/* SPDX-License-Identifier: Apache-2.0 */
/* The server's side of one HTTP/2 connection: bytes in, requests and their bodies out; answers in, bytes out.
 * It knows no socket, no clock and no target: the owner feeds it what was read, is called back for what that
 * means, and takes output in pieces of its own choosing. Frames, HPACK, flow control and the order of output
 * are libnghttp2's; what a client may do how often is decided here. Windows open only as far as the owner
 * says that bytes have been taken, so a body waits at the client while its target is slow.
 *
 * Callbacks come from within http2_server_receive() and http2_server_send() only. Answers, resets and the
 * like may be given from within callbacks. Source: RFC 9113; RFC 8441; RFC 9218; A7. */
#ifndef ISOBAR_HTTP2_SERVER_H
#define ISOBAR_HTTP2_SERVER_H

#include "core/scratch.h"
#include "core/pieces.h"
#include "http2/head.h"
#include "http2/window.h"

#include <sys/uio.h>

#define HTTP2_PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

/* Error codes of RFC 9113 7 that the owner uses. */
enum http2_code {
    HTTP2_NO_ERROR = 0,
    HTTP2_PROTOCOL_ERROR = 1,
    HTTP2_INTERNAL_ERROR = 2,
    HTTP2_REFUSED_STREAM = 7,
    HTTP2_CANCEL = 8,
    HTTP2_ENHANCE_YOUR_CALM = 11,
};

/* What a client did too often; its connection has been told ENHANCE_YOUR_CALM. */
enum http2_flood {
    HTTP2_FLOOD_RESETS,        /* streams that it reset, or made us reset */
    HTTP2_FLOOD_PINGS,         /* or acknowledgements that it does not read */
    HTTP2_FLOOD_SETTINGS,      /* frames, or too many in one */
    HTTP2_FLOOD_PRIORITIES,    /* PRIORITY frames */
    HTTP2_FLOOD_EMPTY,         /* DATA frames without a byte or an end */
    HTTP2_FLOOD_CONTINUATIONS, /* frames of one header list */
    HTTP2_FLOOD_HEADERS,       /* bytes that header lists came to once they were unpacked */
    HTTP2_FLOODS
};

enum http2_refusal {
    HTTP2_REFUSAL_MALFORMED, /* a request, or a frame of its stream, against the rules */
    HTTP2_REFUSAL_TOO_MANY,  /* beyond max_streams */
};

struct http2_server_handler {
    /* A request's head, valid during the call. `ends`: without body. `protocol` is that of an extended
     * CONNECT, else empty. Returns what the stream is called from now on; NULL refuses it. */
    void *(*request)(void *owner, int32_t id, struct http_message *msg, size_t head_bytes, bool ends,
                     struct slice protocol);
    /* A head that is well formed but not taken: the owner answers, or not. The rest as above. */
    void *(*refused)(void *owner, int32_t id, enum http_reject why, bool ends);
    /* Bytes of a body, which may be changed. */
    void (*data)(void *owner, void *stream, char *data, size_t len);
    /* The body has ended, with trailers (NULL: none). */
    void (*ended)(void *owner, void *stream, const struct http_message *trailers);
    /* The stream is over: both sides have ended, or either has reset it. Nothing follows. */
    void (*closed)(void *owner, void *stream, bool by_client, uint32_t code);
    /* The bytes that are ready to be sent; `*is_last`: the answer ends with them, `*stays`: they stay where
     * they are until the output has been written, though they were taken. Nothing is taken yet. */
    struct slice (*peek)(void *owner, void *stream, bool *is_last, bool *stays);
    /* The first `n` of them have been taken. */
    void (*took)(void *owner, void *stream, size_t n);
    /* The answer has been sent to its end, but the request has not come to its own. */
    void (*answered)(void *owner, void *stream);
    /* The trailers to end with, or NULL; asked once, with the last bytes. */
    const struct http_message *(*trailers)(void *owner, void *stream);
    /* Counted, nothing to be done: a stream was reset for what the client did. */
    void (*refusal)(void *owner, enum http2_refusal what);
    void (*flood)(void *owner, enum http2_flood what);
    /* The acknowledgement of http2_server_ping(). */
    void (*pong)(void *owner);
};

struct http2_server_options {
    const struct http2_server_handler *handler;
    void *owner;
    const struct h1_limits *limits; /* borrows: of the listener, for as long as the connection */
    struct buf_pool *bufs;          /* borrows: the worker's, like the two below */
    struct http_message *msg, *trailers;
    struct pieces *memory; /* borrows: the worker's; NULL: malloc()'s */
    counter *growth;       /* borrows: of http2/window.h; NULL: windows are bounded by connection only */
    uint32_t max_streams;
    uint64_t now_ns;
};

enum {
    /* What of one request's body may wait for its target, and of all requests of a connection together; as
     * far as they grow (http2/window.h). */
    HTTP2_STREAM_WINDOW = 65535,
    HTTP2_STREAM_WINDOW_MOST = BUF_LARGEST, /* all that a window lets in waits in one buffer */
    HTTP2_CONNECTION_WINDOW = 1024 * 1024,
    HTTP2_CONNECTION_WINDOW_MOST = 4 * 1024 * 1024,
};

struct http2_server;

/* NULL: no memory. Our SETTINGS are the first output. */
struct http2_server *http2_server_new(const struct http2_server_options *options);
/* No callback comes any more, for none of its streams. */
void http2_server_free(struct http2_server **server);

/* What the client sent, which is changed. False: a connection error; what is still to be said is output. */
bool http2_server_receive(struct http2_server *server, char *data, size_t len, uint64_t now_ns);
/* What is to be written at a time, as pieces: frames are in out[0..cap), at least HTTP2_OUT_BYTES, which the
 * caller brings, as it does `pieces`, `most` of them; bodies may be in pieces of their own. */
enum {
    HTTP2_OUT_BYTES = 20 * 1024,
    HTTP2_HEADS_BYTES = 1024 /* on top, for heads of DATA frames in pieces */
};
struct http2_output {
    char *out;
    size_t cap;
    struct iovec *pieces;
    int n, most; /* n 0: there is nothing to send now; most 1: all of it is copied into one */
};
void http2_server_gather(struct http2_server *server, struct http2_output *output);
/* How many bytes of a stream would be sent if they were there now: nothing else waits, and its windows are
 * open. 0 also from within callbacks. */
size_t http2_server_room(const struct http2_server *server, int32_t id);
/* The connection has nothing more to say or to hear. */
bool http2_server_is_over(const struct http2_server *server);
/* A header list has begun and not ended. */
bool http2_server_is_in_head(const struct http2_server *server);

/* An answer's head, interim or final; `ends`: there is no body. Else the body is asked for by peek() when
 * there is room, and again after http2_server_resume(). Returns the bytes of its fields as HTTP/1 would have
 * them, or 0: no memory, or `scratch` is too small. */
size_t http2_server_answer(struct http2_server *server, int32_t id, const struct http_message *msg, bool ends,
                           struct scratch *scratch);
/* peek() has something new to say. */
void http2_server_resume(struct http2_server *server, int32_t id);
void http2_server_reset(struct http2_server *server, int32_t id, enum http2_code code);
/* For each stream, kept by its owner. */
void http2_server_window_init(struct http2_window *window);
/* The target has taken bytes of the body: the client may send as many more. `at_once`: without having waited,
 * so that a larger window might be used. */
void http2_server_consume(struct http2_server *server, int32_t id, struct http2_window *window, size_t n,
                          bool at_once);

/* Bytes of a stream that is over, and that nobody will take. */
void http2_server_discard(struct http2_server *server, size_t n);

/* The connection will end (RFC 9113 6.8): first a notice that refuses nothing, together with a PING whose
 * answer tells that the client has read it, then the last stream that will be served. */
void http2_server_give_notice(struct http2_server *server);
void http2_server_go_away(struct http2_server *server);
/* At once, with what is open. */
void http2_server_terminate(struct http2_server *server, enum http2_code code);

#endif
