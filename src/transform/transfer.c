/* SPDX-License-Identifier: Apache-2.0 */
#include "transform/transfer.h"

void transfer_init(struct transfer *transfer, const struct http_message *msg, bool emit_chunked,
                   bool keep_trailers)
{
    *transfer = (struct transfer){
        .framing = msg->framing, .emit_chunked = emit_chunked, .keep_trailers = keep_trailers};
    if (msg->framing == HTTP_BODY_LENGTH)
        transfer->left = msg->content_length;
    transfer->is_done =
        msg->framing == HTTP_BODY_NONE || (msg->framing == HTTP_BODY_LENGTH && transfer->left == 0);
}

void transfer_await_end(struct transfer *transfer)
{
    if (transfer->framing == HTTP_BODY_NONE)
        return;
    transfer->framing = HTTP_BODY_UNTIL_CLOSE;
    transfer->is_done = false;
}

void transfer_fini(struct transfer *transfer, struct buf_pool *bufs)
{
    buf_give(bufs, &transfer->trailers);
}

static void add_piece(struct transfer_pieces *pieces, const void *data, size_t len)
{
    iso_assert(pieces->n < TRANSFER_PIECES);
    pieces->iov[pieces->n++] = (struct iovec){(void *)data, len};
}

/* The end of a chunked message of ours; false when the trailers do not fit. */
static bool add_last_chunk(struct transfer_pieces *pieces, struct scratch *scratch,
                           const struct http_message *trailers)
{
    if (!trailers) {
        add_piece(pieces, "0\r\n\r\n", 5);
        return true;
    }
    size_t n = h1_write_last_chunk(scratch->at, (size_t)(scratch->end - scratch->at), trailers);
    if (n == 0)
        return false;
    add_piece(pieces, scratch->at, n);
    scratch->at += n;
    return true;
}

bool transfer_put_chunked(struct transfer_pieces *pieces, struct slice body, bool is_last,
                          const struct http_message *trailers, struct scratch *scratch)
{
    if (body.len) {
        add_piece(pieces, pieces->size_line, h1_write_chunk_size(pieces->size_line, body.len));
        add_piece(pieces, body.ptr, body.len);
        add_piece(pieces, "\r\n", 2);
        pieces->body_len += body.len;
    }
    return !is_last || add_last_chunk(pieces, scratch, trailers);
}

static void add_body(struct transfer *transfer, struct transfer_pieces *pieces, const char *data, size_t len)
{
    if (len == 0)
        return;
    transfer->bytes += len;
    if (transfer->emit_chunked) {
        transfer_put_chunked(pieces, slice_of(data, len), false, NULL, NULL);
        return;
    }
    pieces->body_len = len;
    add_piece(pieces, data, len);
}

static enum transfer_result feed_trailers(struct transfer *transfer, const char *data, size_t len,
                                          const struct h1_limits *limits, struct buf_pool *bufs,
                                          struct scratch *scratch, struct http_message *parsed, size_t *used,
                                          struct transfer_pieces *pieces, enum http_reject *why)
{
    size_t before = 0, n;
    *used = len;
    if (len == 0)
        return TRANSFER_OK;
    if (transfer->trailers) {
        before = buf_len(transfer->trailers);
        if (!buf_append(bufs, &transfer->trailers, slice_of(data, len)))
            return TRANSFER_NO_MEMORY;
        data = transfer->trailers->data;
        len += before;
    }
    switch (h1_parse_trailers(data, len, limits, parsed, &n, why)) {
    case H1_INCOMPLETE:
        if (!transfer->trailers && !buf_append(bufs, &transfer->trailers, slice_of(data, len)))
            return TRANSFER_NO_MEMORY;
        return TRANSFER_OK;
    case H1_REJECTED:
        return TRANSFER_REJECTED;
    case H1_COMPLETE:
        break;
    }
    *used = n - before;
    transfer->is_done = true;
    const struct http_message *trailers = transfer->keep_trailers && parsed->n_fields ? parsed : NULL;
    if (transfer->emit_chunked)
        return add_last_chunk(pieces, scratch, trailers) ? TRANSFER_OK : TRANSFER_NO_MEMORY;
    pieces->trailers = trailers;
    return TRANSFER_OK;
}

enum transfer_result transfer_feed(struct transfer *transfer, char *data, size_t len,
                                   const struct h1_limits *limits, struct buf_pool *bufs,
                                   struct scratch *scratch, struct http_message *parsed, size_t *used,
                                   struct transfer_pieces *pieces, enum http_reject *why)
{
    size_t body = 0, trailer_used = 0;
    pieces->n = 0;
    pieces->body_len = 0;
    pieces->trailers = NULL;
    *used = 0;
    if (transfer->is_done)
        return TRANSFER_OK;
    switch ((enum http_framing)transfer->framing) {
    case HTTP_BODY_NONE:
        return TRANSFER_OK;
    case HTTP_BODY_LENGTH:
        *used = len < transfer->left ? len : (size_t)transfer->left;
        transfer->left -= *used;
        add_body(transfer, pieces, data, *used);
        if (transfer->left == 0) {
            transfer->is_done = true;
            if (transfer->emit_chunked)
                add_last_chunk(pieces, scratch, NULL);
        }
        return TRANSFER_OK;
    case HTTP_BODY_UNTIL_CLOSE:
        *used = len;
        add_body(transfer, pieces, data, len);
        return TRANSFER_OK;
    case HTTP_BODY_CHUNKED:
        break;
    }
    if (!transfer->in_trailers) {
        enum h1_chunked_result result = h1_chunked_decode(&transfer->chunked, data, len, used, &body, why);
        if (result == H1_CHUNKED_REJECTED)
            return TRANSFER_REJECTED;
        add_body(transfer, pieces, data, body);
        if (result == H1_CHUNKED_MORE)
            return TRANSFER_OK;
        transfer->in_trailers = true;
    }
    enum transfer_result result = feed_trailers(transfer, data + *used, len - *used, limits, bufs, scratch,
                                                parsed, &trailer_used, pieces, why);
    *used += trailer_used;
    return result;
}

bool transfer_end(struct transfer *transfer, const struct http_message *trailers, struct scratch *scratch,
                  struct transfer_pieces *pieces)
{
    pieces->n = 0;
    pieces->body_len = 0;
    pieces->trailers = NULL;
    if (transfer->is_done || transfer->framing != HTTP_BODY_UNTIL_CLOSE)
        return transfer->is_done;
    transfer->is_done = true;
    if (!transfer->keep_trailers)
        trailers = NULL;
    if (transfer->emit_chunked)
        return add_last_chunk(pieces, scratch, trailers);
    pieces->trailers = trailers;
    return true;
}
