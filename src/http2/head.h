/* SPDX-License-Identifier: Apache-2.0 */
/* A header list on its way in, field by field as HPACK yields it, put together as the HTTP/1.1 head that it
 * stands for; the strict HTTP/1 parser then reads that. So a message of either protocol has passed the same
 * rules before anything else sees it, and nothing can mean one thing here and another at an HTTP/1.1 peer.
 * What only HTTP/2 can say wrongly is refused before: a byte that would end a line, upper case, pseudo fields
 * twice or behind others, fields of the connection, two hosts. A list may come in several reads: what came is
 * in a buffer of its own. Pure but for that buffer. Source: RFC 9113 8.1 to 8.5, 10.3; cases C-062 C-063
 * C-064. */
#ifndef ISOBAR_HTTP2_HEAD_H
#define ISOBAR_HTTP2_HEAD_H

#include "core/buf.h"
#include "http1/parse.h"

enum http2_kind { HTTP2_REQUEST, HTTP2_RESPONSE, HTTP2_TRAILERS };

enum http2_head_result {
    HTTP2_HEAD_OK,
    HTTP2_HEAD_MALFORMED, /* a stream error PROTOCOL_ERROR (RFC 9113 8.1.1) */
    HTTP2_HEAD_REFUSED,   /* well formed, but not taken: *why has the status to answer with */
    HTTP2_HEAD_NO_MEMORY,
};

enum http2_pseudo {
    HTTP2_METHOD,
    HTTP2_SCHEME,
    HTTP2_AUTHORITY,
    HTTP2_PATH,
    HTTP2_PROTOCOL, /* RFC 8441: an extended CONNECT */
    HTTP2_STATUS,
    HTTP2_PSEUDOS
};

struct http2_head {
    struct buf *text;    /* owns: values of pseudo fields, then from `begins` on the head */
    uint32_t begins;     /* 0: the start line is not written yet */
    uint32_t max_bytes;  /* of the head */
    uint64_t seen_bytes; /* of all names and values, kept or not: a small block can stand for much */
    uint32_t cookie_end; /* where the Cookie line's CRLF stands; 0: none yet */
    struct {
        uint32_t at, len;
    } pseudo[HTTP2_PSEUDOS];
    uint8_t kind;  /* enum http2_kind */
    uint8_t fault; /* enum http2_head_result; the first one counts */
    bool is_too_large;
    bool has_length, has_host;
    bool seen[HTTP2_PSEUDOS];
};

void http2_head_init(struct http2_head *head, enum http2_kind kind, uint32_t max_bytes);
void http2_head_fini(struct http2_head *head, struct buf_pool *bufs);

/* The next field. What is wrong with it is remembered for http2_head_finish(). */
void http2_head_add(struct http2_head *head, struct buf_pool *bufs, struct slice name, struct slice value);

/* The list is malformed for a reason of the caller's. */
void http2_head_spoil(struct http2_head *head);

/* The list is complete; `ends`: no body follows. With OK `msg` is as from h1_parse_request() (and so on), its
 * bytes are those of head->text, and a body of unknown length has the framing HTTP_BODY_CHUNKED, which means
 * "to the end of the stream". Of an extended CONNECT comes the GET that it stands for, without body and
 * without its Upgrade (http2_head_protocol() has it). `*why` is written with REFUSED only. `request_method`
 * counts for a response. */
enum http2_head_result http2_head_finish(struct http2_head *head, struct buf_pool *bufs, bool ends,
                                         const struct h1_limits *limits, enum http_method request_method,
                                         struct http_message *msg, enum http_reject *why);

/* The protocol that an extended CONNECT asks for, empty for any other request. Borrows from head->text. */
struct slice http2_head_protocol(const struct http2_head *head);

#endif
