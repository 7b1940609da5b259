/* SPDX-License-Identifier: Apache-2.0 */
/* What client.c and client_stream.c share. */
#ifndef ISOBAR_HTTP2_CLIENT_INTERNAL_H
#define ISOBAR_HTTP2_CLIENT_INTERNAL_H

#include "http2/client.h"
#include "http2/memory.h"

#include <nghttp2/nghttp2.h>

enum { GATHER_BYTES = 128 * 1024, FRAME_BYTES = 16 * 1024, FRAME_HEAD_BYTES = 9 };

struct http2_client_thread {
    struct buf_pool *bufs; /* borrows */
    struct slab streams;
    nghttp2_session_callbacks *callbacks; /* owns */
    nghttp2_option *option;               /* owns */
    struct pieces memory;                 /* of the sessions */
    counter *growth;                      /* borrows: of their windows */
    struct http_message msg, trailers;    /* being handled */
    size_t gathered;
    char gather[GATHER_BYTES]; /* frames for one write */
};

/* Of a stream's window. */
extern const struct http2_window_limits stream_window_limits;

/* Something is to be delivered to the stream's owner. */
void stream_touch(struct http2_stream *stream);
/* Frees it when neither its owner nor nghttp2 has it any more. */
void stream_settle(struct http2_stream *stream);
/* nghttp2 has forgotten it; `fail` NONE: all was in order. */
void stream_closed(struct http2_stream *stream, enum http2_fail fail);
/* Body bytes of the read under way. */
void stream_take_body(struct http2_stream *stream, char *data, size_t len);
/* The read is over: what its owner did not take is kept. */
void stream_keep_held(struct http2_stream *stream);

/* The body as nghttp2 asks for it. */
ssize_t stream_read_body(nghttp2_session *session, int32_t id, uint8_t *out, size_t cap, uint32_t *flags,
                         nghttp2_data_source *source, void *arg);
int stream_put_body(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t len,
                    nghttp2_data_source *source, void *arg);

#endif
