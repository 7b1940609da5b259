/* SPDX-License-Identifier: Apache-2.0 */
/* One direction's message body: taken out of the sender's framing and put into ours, never copied. What comes
 * out is at most a few pieces for one sendmsg: a chunk's size line, the bytes where they were read, the line
 * end, the last chunk with its trailers. Who frames a body in another way, or later, takes it without: at
 * most one piece of bytes. Pure: bytes in, pieces out. */
#ifndef ISOBAR_TRANSFORM_TRANSFER_H
#define ISOBAR_TRANSFORM_TRANSFER_H

#include "core/buf.h"
#include "core/scratch.h"
#include "http1/parse.h"
#include "http1/write.h"

#include <sys/uio.h>

struct transfer {
    uint8_t framing;    /* enum http_framing, of the sender */
    bool is_done;       /* the whole body has passed */
    bool emit_chunked;  /* towards the receiver */
    bool in_trailers;   /* the last chunk was read */
    bool keep_trailers; /* pass trailer fields on */
    uint64_t left;      /* LENGTH: bytes still to come */
    uint64_t bytes;     /* body bytes that passed */
    struct h1_chunked chunked;
    struct buf *trailers; /* owns: the beginning of a trailer section */
};

enum { TRANSFER_PIECES = 4 };

struct transfer_pieces {
    struct iovec iov[TRANSFER_PIECES];
    int n;
    size_t body_len; /* body bytes among the pieces */
    const struct http_message
        *trailers; /* without emit_chunked: what came with the end, to be passed on; NULL: none */
    char size_line[H1_CHUNK_SIZE_MAX];
};

enum transfer_result { TRANSFER_OK, TRANSFER_REJECTED, TRANSFER_NO_MEMORY };

/* From a decided message head. */
void transfer_init(struct transfer *transfer, const struct http_message *msg, bool emit_chunked,
                   bool keep_trailers);
/* Bytes come without framing, and the end by transfer_end(): for what a protocol delimits itself, as long as
 * there is a body at all. */
void transfer_await_end(struct transfer *transfer);
void transfer_fini(struct transfer *transfer, struct buf_pool *bufs);

/* Takes body bytes at data[0..len), which are changed in place. `*used` is how many belong to this message;
 * behind them begins the next one. `pieces` refer to data, to themselves and to `scratch` (for trailers).
 * is_done is set when the end was seen. `parsed` is scratch for trailers. */
enum transfer_result transfer_feed(struct transfer *transfer, char *data, size_t len,
                                   const struct h1_limits *limits, struct buf_pool *bufs,
                                   struct scratch *scratch, struct http_message *parsed, size_t *used,
                                   struct transfer_pieces *pieces, enum http_reject *why);

/* Adds `body` as one chunk, unless it is empty, and when `is_last` the end of the body with the trailers
 * (NULL: none), which are put together in `scratch`; false when they do not fit there. */
bool transfer_put_chunked(struct transfer_pieces *pieces, struct slice body, bool is_last,
                          const struct http_message *trailers, struct scratch *scratch);

/* The sender's protocol has told the end of the body. True when that is in order (UNTIL_CLOSE); `pieces` then
 * hold what tells the receiver so, with the trailers that came (NULL: none). */
bool transfer_end(struct transfer *transfer, const struct http_message *trailers, struct scratch *scratch,
                  struct transfer_pieces *pieces);

#endif
