/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1 bytes into messages: strict, incremental, no allocation, no side effects. Lines end in CRLF and
 * nothing else; whatever two recipients could read differently is refused with a reason. A parser takes bytes
 * and returns what it found; it never logs, sends or looks at a clock. The scan for field ends uses SIMD
 * where the machine has it; its scalar twin gives the same answers for every input and both are fuzzed
 * against each other. */
#ifndef ISOBAR_HTTP1_PARSE_H
#define ISOBAR_HTTP1_PARSE_H

#include "http/message.h"

struct h1_limits {
    uint32_t head_bytes; /* start line and fields with the final CRLF */
    uint32_t uri_bytes;
    uint32_t fields; /* at most HTTP_FIELDS_MAX - HTTP_FIELDS_OURS */
};

enum h1_result {
    H1_COMPLETE,   /* the outputs are valid */
    H1_INCOMPLETE, /* a valid beginning; call again with the same bytes and more behind them */
    H1_REJECTED,   /* *why says what is wrong; also returned as early as a broken beginning shows it */
};

/* Parses the request head at data[0..len): empty lines before it are skipped (RFC 9112 2.2), fields are
 * identified, target is taken apart (origin, absolute, authority and asterisk form), Host is checked (RFC
 * 9112 3.2), and http_framing_decide() has run. `*used` is the head's length with what was skipped before it.
 * Calling it again from the start is fine: callers do so only when a new line end has arrived. */
enum h1_result h1_parse_request(const char *data, size_t len, const struct h1_limits *limits,
                                struct http_message *msg, size_t *used, enum http_reject *why);

/* The same for a response; `request_method` decides whether a body can follow (HEAD). Codes below 100 and
 * above 599 are refused (600 to 999 have no class to act on). A reason phrase may be empty or missing with
 * its space. */
enum h1_result h1_parse_response(const char *data, size_t len, const struct h1_limits *limits,
                                 enum http_method request_method, struct http_message *msg, size_t *used,
                                 enum http_reject *why);

/* Where a chunked body stands. Zeroed is the start. */
struct h1_chunked {
    uint64_t left;       /* data bytes still to come of this chunk */
    uint32_t line_bytes; /* of the size line so far: extensions have a limit */
    uint8_t state;
    uint8_t digits;
};

enum h1_chunked_result {
    H1_CHUNKED_MORE,     /* all input was used */
    H1_CHUNKED_DATA_END, /* the last chunk's size line was read: trailers follow at data + *used */
    H1_CHUNKED_REJECTED,
};

/* Decodes data[0..len) in place: body bytes are moved together at data[0..*body). `*used` is the input read.
 * Extensions are dropped. Source: RFC 9112 7.1; cases C-012 C-014. */
enum h1_chunked_result h1_chunked_decode(struct h1_chunked *state, char *data, size_t len, size_t *used,
                                         size_t *body, enum http_reject *why);

/* Parses the trailer section at data[0..len), which ends with an empty line, into msg->fields (msg is emptied
 * first); fields that must not be trailers (RFC 9110 6.5.1: framing, routing, authentication, content) are
 * marked dropped. An empty section is the two bytes CRLF. Source: RFC 9112 7.1.2; case C-018. */
enum h1_result h1_parse_trailers(const char *data, size_t len, const struct h1_limits *limits,
                                 struct http_message *msg, size_t *used, enum http_reject *why);

/* The scan that both parsers share: the index of the first byte in data[0..len) that may not stand in a field
 * value (controls but HTAB, and DEL), or len. For the fuzzer and tests: the variant chosen for this machine,
 * and the scalar twin. */
size_t h1_scan_value(const char *data, size_t len);
size_t h1_scan_value_scalar(const char *data, size_t len);

#endif
