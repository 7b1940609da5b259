/* SPDX-License-Identifier: Apache-2.0 */
/* What server.c (bytes in, and what they mean) and server_send.c (answers, and bytes out) share. */
#ifndef ISOBAR_HTTP2_SERVER_INTERNAL_H
#define ISOBAR_HTTP2_SERVER_INTERNAL_H

#include "http2/budget.h"
#include "http2/closed.h"
#include "http2/fields.h"
#include "http2/server.h"
#include "http2/walk.h"

struct http2_server {
    nghttp2_session *session; /* owns */
    const struct http2_server_handler *handler;
    void *owner;
    const struct h1_limits *limits;
    struct buf_pool *bufs;
    struct http_message *msg, *trailers;
    struct http2_head head; /* owns; the list that is coming in, of head_id */
    int32_t head_id;        /* 0: none */
    uint64_t now_ns;
    struct http2_output *output; /* while sending */
    char *out_at, *out_end;      /* the same: room for frames */
    char *run;                   /* what of it is in no piece yet begins here */
    bool is_receiving;
    uint32_t n_streams, max_streams;
    uint32_t n_blamed; /* resets on their way that have been counted */
    bool has_flooded, has_sent_settings;
    int32_t last_id; /* the newest stream of the client */
    struct http2_closed closed;
    struct http2_walk walk;
    counter *growth;
    struct http2_window window; /* of the connection */
    struct http2_pace pace;
    struct http2_known known, known_of_streams;
    struct http2_budget budgets[HTTP2_FLOODS];
};

/* Of the PINGs that measure a round trip; others of ours are zeros. */
extern const uint8_t server_pace_ping[8];

static inline void *server_stream(struct http2_server *server, int32_t id)
{
    return nghttp2_session_get_stream_user_data(server->session, id);
}

/* A DATA frame into the output. */
int server_put_body(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *header, size_t length,
                    nghttp2_data_source *source, void *user);

#endif
