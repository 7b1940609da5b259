/* SPDX-License-Identifier: Apache-2.0 */
/* RESP2, the protocol of Redis and Valkey: commands into bytes, bytes into replies. A parser of our own: what
 * hiredis of Debian 12 (0.14) allocates is what a reply announces, and it cannot speak TLS. Here nothing is
 * allocated, a reply is a view of the buffer, and whatever is larger or deeper than our commands can be
 * answered with is refused. Pure. Source: the RESP2 specification of Redis. */
#ifndef ISOBAR_SHARED_RESP_H
#define ISOBAR_SHARED_RESP_H

#include "core/slice.h"
#include "core/text.h"

enum { RESP_ELEMENTS_MAX = 16, RESP_BULK_MAX = 16 << 10, RESP_LINE_MAX = 1024 };

enum resp_type { RESP_SIMPLE, RESP_ERROR, RESP_INTEGER, RESP_BULK, RESP_NIL, RESP_ARRAY };

/* One reply; all texts borrow from the buffer that was parsed. */
struct resp_value {
    enum resp_type type;
    struct slice text; /* of SIMPLE, ERROR, BULK */
    int64_t integer;   /* of INTEGER */
    uint32_t n;        /* of ARRAY: elements, none of them an array */
    struct resp_element {
        enum resp_type type;
        struct slice text;
        int64_t integer;
    } elements[RESP_ELEMENTS_MAX];
};

enum resp_result { RESP_COMPLETE, RESP_NEED_MORE, RESP_BAD };

/* The reply at the beginning of `data`. `*used` bytes of it with RESP_COMPLETE. */
enum resp_result resp_parse(struct slice data, struct resp_value *value, size_t *used);

/* Appends a command of n arguments. */
void resp_command(struct text *out, const struct slice *args, size_t n);

/* The first word of an error: "READONLY". */
struct slice resp_error_word(const struct resp_value *value);

#endif
