/* SPDX-License-Identifier: Apache-2.0 */
/* Messages into HTTP/1 bytes. A writer copies the kept fields as they were received, in runs, adds what the
 * connection needs, and emits framing from msg->framing only: no field of the sender decides where a message
 * ends. The caller's buffer is the limit; 0 means that the head did not fit and nothing usable was written.
 * Pure: no clock, no allocation, no state. */
#ifndef ISOBAR_HTTP1_WRITE_H
#define ISOBAR_HTTP1_WRITE_H

#include "http/message.h"

/* A request head for an HTTP/1.1 target. The request target is msg->target, except for a request in
 * absolute-form (msg->scheme is set), where path and query are written in origin-form and Host comes from
 * msg->authority; whoever changes the target sets target, path and query. Host comes from msg->authority also
 * when no Host field is kept. Source: RFC 9112 3.2; RFC 9110 7.2, 7.6.1, 7.8, 10.1.4. */
size_t h1_write_request(char *out, size_t cap, const struct http_message *msg);

/* A response head for a client that speaks HTTP/1.`client_minor`; 1xx too. `close` announces that the
 * connection ends after this message; an HTTP/1.0 client is told keep-alive otherwise. Chunked framing needs
 * client_minor 1: for an older client the caller has chosen HTTP_BODY_UNTIL_CLOSE. Content-Length of a
 * response without a body (HEAD, 304) is kept. Source: RFC 9110 8.6, 15; RFC 9112 6, 9.3, C.2.2. */
size_t h1_write_response(char *out, size_t cap, const struct http_message *msg, unsigned client_minor,
                         bool close);

enum { H1_CHUNK_SIZE_MAX = 18 };

/* The size line of a chunk of n > 0 bytes into out[H1_CHUNK_SIZE_MAX]; CRLF follows the chunk's bytes. */
size_t h1_write_chunk_size(char *out, uint64_t n);
/* The last chunk, the kept fields of `trailers` (NULL: none), and the empty line. */
size_t h1_write_last_chunk(char *out, size_t cap, const struct http_message *trailers);

struct h1_pair {
    struct slice name, value;
};

/* An answer of our own: an error, a redirect, a rule's fixed response. Empty slices and 0 leave a field out.
 */
struct h1_answer {
    unsigned status;
    struct slice reason_word;  /* "no-target": the code of a JSON body */
    struct slice body;         /* as it is, or the message of a JSON body */
    struct slice content_type; /* of a body that is not JSON; text/plain when empty and not in `fields` */
    struct slice location;
    struct slice date; /* RFC 9110 6.6.1: IMF-fixdate; the worker makes it anew each second */
    const struct h1_pair *fields;
    uint32_t n_fields;
    const struct h1_pair *more; /* [n_more]; fields that are added where `fields` has none of the name */
    uint32_t n_more;
    uint32_t retry_after_s;
    bool head; /* answers HEAD: the head that GET would have, no body */
    bool json; /* {"error":{"code":REASON_WORD,"message":BODY}} */
    bool close;
    unsigned client_minor;
};

/* What an answer's body is, for whoever writes it in another way: empty where there is none; JSON is made in
 * `json`. And its type, empty when `fields` names one or there is no body. */
enum { H1_ANSWER_JSON_MAX = 1024 };
/* Does the answer name a field itself? Then that of `more` is left out. */
bool h1_answer_names(const struct h1_answer *answer, struct slice field);
struct slice h1_answer_body(const struct h1_answer *answer, char json[H1_ANSWER_JSON_MAX]);
struct slice h1_answer_content_type(const struct h1_answer *answer, struct slice body);

/* Head and body in one piece. A status that cannot have a body (1xx, 204, 304) gets none. */
size_t h1_write_answer(char *out, size_t cap, const struct h1_answer *answer);

/* Would the sender of this Accept value rather read JSON than text or HTML? Source: RFC 9110 12.5.1. */
bool h1_prefers_json(struct slice accept);

#endif
