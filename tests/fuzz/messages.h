/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold for every message that a parser accepted, whatever the bytes were. */
#ifndef ISOBAR_FUZZ_MESSAGES_H
#define ISOBAR_FUZZ_MESSAGES_H

#include "http1/parse.h"
#include "http1/write.h"

/* Wide ones that seeds rarely reach, and narrow ones that they do. */
static const struct h1_limits fuzz_limits[] = {
    {.head_bytes = 16384, .uri_bytes = 8192, .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS},
    {.head_bytes = 96, .uri_bytes = 16, .fields = 3},
};

/* Beginnings longer than this are not all tried: their number grows with the square. */
enum { FUZZ_BEGINNINGS_MAX = 600 };

static inline bool lies_inside(struct slice s, const char *data, size_t len)
{
    return s.len == 0 || (s.ptr >= data && s.ptr + s.len <= data + len);
}

static inline bool is_clean(struct slice s)
{
    return h1_scan_value_scalar(s.ptr, s.len) == s.len;
}

static inline bool is_name(struct slice s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= 0x20 || s.ptr[i] >= 0x7f || strchr("\"(),/:;<=>?@[\\]{}", s.ptr[i]))
            return false;
    return s.len > 0;
}

/* The slices of the fields lie inside the input, hold no forbidden byte, and know their lines. */
static inline void check_fields(const struct http_message *msg, const char *data, size_t len)
{
    const char *end = NULL;
    for (uint32_t i = 0; i < msg->n_fields; i++) {
        const struct http_field *f = &msg->fields[i];
        struct slice name = http_field_name(f), value = http_field_value(f);
        iso_assert(lies_inside(slice_of(f->name, f->raw_len), data, len));
        iso_assert(value.ptr >= f->name && value.ptr + value.len <= f->name + f->raw_len - 2);
        iso_assert(memcmp(f->name + f->raw_len - 2, "\r\n", 2) == 0);
        iso_assert(f->name[f->name_len] == ':');
        iso_assert(is_name(name) && is_clean(value));
        iso_assert(slice_eq(slice_trim(value), value));
        iso_assert(f->id == http_field_lookup(name));
        iso_assert(!end || end == f->name);
        end = f->name + f->raw_len;
    }
}

/* What a backend or client may not see, and what the decision may not say. */
static inline void check_decision(struct http_message *msg)
{
    static const enum http_field_id never[] = {
        HTTP_FIELD_CONNECTION,
        HTTP_FIELD_CONTENT_LENGTH,
        HTTP_FIELD_HTTP2_SETTINGS,
        HTTP_FIELD_KEEP_ALIVE,
        HTTP_FIELD_TE,
        HTTP_FIELD_PROXY_CONNECTION,
        HTTP_FIELD_TRANSFER_ENCODING,
    };
    for (size_t i = 0; i < iso_countof(never); i++)
        iso_assert(!http_message_find(msg, never[i]));
    iso_assert(!http_message_find_name(msg, SLICE("content_length")));
    iso_assert(!http_message_find_name(msg, SLICE("Transfer_Encoding")));
    iso_assert((http_message_find(msg, HTTP_FIELD_UPGRADE) != NULL) == msg->upgrade);
    iso_assert(msg->content_length <= INT64_MAX);
    iso_assert(msg->framing != HTTP_BODY_LENGTH || msg->has_length);
    iso_assert(msg->framing != HTTP_BODY_CHUNKED || msg->version_minor == 1);
    iso_assert(msg->has_length || msg->content_length == 0);
}

/* Two parses of the same bytes in the same place said the same. */
static inline void check_same(const struct http_message *a, const struct http_message *b)
{
    iso_assert(memcmp(a, b, offsetof(struct http_message, fields)) == 0);
    for (uint32_t i = 0; i < a->n_fields; i++) {
        const struct http_field *f = &a->fields[i], *g = &b->fields[i];
        iso_assert(f->name == g->name && f->value == g->value && f->name_len == g->name_len);
        iso_assert(f->value_len == g->value_len && f->raw_len == g->raw_len);
        iso_assert(f->id == g->id && f->flags == g->flags);
    }
}

/* The kept fields of `a` are those of `b`, in order, but for those with the id `skip` in either. */
static inline void check_same_fields(const struct http_message *a, const struct http_message *b,
                                     unsigned skip)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        while (i < a->n_fields && (a->fields[i].flags & HTTP_FIELD_DROP || a->fields[i].id == skip))
            i++;
        while (j < b->n_fields && (b->fields[j].flags & HTTP_FIELD_DROP || b->fields[j].id == skip))
            j++;
        if (i == a->n_fields || j == b->n_fields)
            break;
        iso_assert(slice_eq(http_field_name(&a->fields[i]), http_field_name(&b->fields[j])));
        iso_assert(slice_eq(http_field_value(&a->fields[i]), http_field_value(&b->fields[j])));
        i++, j++;
    }
    iso_assert(i == a->n_fields && j == b->n_fields);
}

struct fuzz_outcome {
    enum h1_result result;
    enum http_reject why;
    size_t used;
};

/* A beginning of the input was read to `part` where the whole gave `whole`: it is incomplete until the whole
 * is decided, and says the same from then on. Returns whether it was decided. */
static inline bool check_beginning(const struct fuzz_outcome *whole, const struct fuzz_outcome *part,
                                   size_t len, bool decided_before)
{
    if (part->result == H1_INCOMPLETE) {
        iso_assert(!decided_before);
        iso_assert(whole->result != H1_COMPLETE || len < whole->used);
        return false;
    }
    iso_assert(part->result == whole->result);
    if (part->result == H1_REJECTED)
        iso_assert(part->why == whole->why);
    else
        iso_assert(len >= whole->used && part->used == whole->used);
    return true;
}

#endif
