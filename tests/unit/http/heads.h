/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing one head in one line of a test. The bytes stand at the end of a heap block of their own size, so
 * that a read behind them is seen by a sanitizer. */
#ifndef ISOBAR_TESTS_HEADS_H
#define ISOBAR_TESTS_HEADS_H

#include "http1/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static const struct h1_limits test_limits = {.head_bytes = 16384, .uri_bytes = 8192, .fields = 100};

struct head {
    struct http_message msg;
    enum h1_result result;
    enum http_reject why;
    size_t used;
    char *data; /* owns; the message borrows from it */
};

static struct head last_head;

static inline struct head *begin_head(const char *text, size_t len)
{
    free(last_head.data);
    last_head.data = malloc(len ? len : 1);
    memcpy(last_head.data, text, len);
    last_head.why = HTTP_REJECT_NONE;
    last_head.used = 0;
    return &last_head;
}

static inline struct head *request_bytes(const char *text, size_t len)
{
    struct head *h = begin_head(text, len);
    h->result = h1_parse_request(h->data, len, &test_limits, &h->msg, &h->used, &h->why);
    return h;
}

static inline struct head *response_bytes(const char *text, size_t len, enum http_method method)
{
    struct head *h = begin_head(text, len);
    h->result = h1_parse_response(h->data, len, &test_limits, method, &h->msg, &h->used, &h->why);
    return h;
}

#define request(text)          request_bytes(text, sizeof(text) - 1)
#define response(text, method) response_bytes(text, sizeof(text) - 1, method)
/* A request whose fields are a valid Host and `fields`. */
#define get(fields)  request("GET / HTTP/1.1\r\nHost: t.example\r\n" fields "\r\n")
#define post(fields) request("POST / HTTP/1.1\r\nHost: t.example\r\n" fields "\r\n")

static inline struct http_message *accepted(struct head *h)
{
    if (h->result != H1_COMPLETE)
        fail_msg("%s: %s", h->result == H1_REJECTED ? "rejected" : "incomplete", http_reject_word(h->why));
    return &h->msg;
}

static inline void rejected(struct head *h, enum http_reject why)
{
    if (h->result != H1_REJECTED)
        fail_msg("not rejected (expected %s)", http_reject_word(why));
    if (h->why != why)
        fail_msg("rejected as %s, expected %s", http_reject_word(h->why), http_reject_word(why));
}

static inline void is(struct slice got, const char *want)
{
    if (!slice_eq(got, slice_str(want)))
        fail_msg("is \"%.*s\", expected \"%s\"", SLICE_ARG(got), want);
}

/* Is the field there and kept? */
static inline bool kept(struct http_message *msg, const char *name)
{
    return http_message_find_name(msg, slice_str(name)) != NULL;
}

#endif
