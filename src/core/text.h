/* SPDX-License-Identifier: Apache-2.0 */
/* A growing text for the control path: metrics pages, JSON answers, generated docs. Aborts when memory ends;
 * the traffic path writes into fixed buffers instead. */
#ifndef ISOBAR_CORE_TEXT_H
#define ISOBAR_CORE_TEXT_H

#include "core/check.h"
#include "core/slice.h"

struct text {
    char *data; /* owns; NUL-terminated once anything was added */
    size_t len, cap;
};

void text_init(struct text *text);
void text_fini(struct text *text);
/* Room for that many bytes more, so that adding them does not move what is there. */
void text_reserve(struct text *text, size_t more);
void text_add(struct text *text, struct slice s);
void text_printf(struct text *text, const char *fmt, ...) ISO_PRINTF(2, 3);
/* As a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD. Source: RFC 8259 7. */
void text_json(struct text *text, struct slice s);

/* The bytes of the UTF-8 character at `s`, or 0 when there is none within `left`. Source: RFC 3629 4. */
size_t utf8_len(const char *s, size_t left);

static inline struct slice text_slice(const struct text *text)
{
    return slice_of(text->data, text->len);
}

/* Writes `s` JSON-escaped without quotes into out[0..cap) and returns the bytes written; it stops before a
 * character that does not fit. Never allocates, so a worker may use it. */
size_t json_escape(char *out, size_t cap, struct slice s);

#endif
