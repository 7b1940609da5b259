/* SPDX-License-Identifier: Apache-2.0 */
/* The trailer section of a chunked body. Its fields arrive after routing, authentication and framing were
 * decided, so whatever could reopen one of those questions at a recipient that merges trailers into the head
 * is dropped; the rest passes (RFC 9110 6.5.1). */
#include "http/names.h"
#include "http1/fields.h"

/* Names without an id that RFC 9110 6.5.1 forbids: request modifiers, authentication, response control. */
static const struct slice forbidden[] = {
    {"age", 3},
    {"cache-control", 13},
    {"expires", 7},
    {"if-match", 8},
    {"if-modified-since", 17},
    {"if-none-match", 13},
    {"if-range", 8},
    {"if-unmodified-since", 19},
    {"location", 8},
    {"max-forwards", 12},
    {"pragma", 6},
    {"proxy-authenticate", 18},
    {"proxy-authorization", 19},
    {"range", 5},
    {"vary", 4},
    {"warning", 7},
    {"www-authenticate", 16},
};

static bool is_forbidden(const struct http_field *f)
{
    struct slice name = http_field_name(f);
    if (f->id != HTTP_FIELD_OTHER) /* each known name is one that somebody acts on */
        return true;
    for (size_t i = 0; i < iso_countof(forbidden); i++)
        if (slice_caseeq(name, forbidden[i]))
            return true;
    return http_field_lookalike(name) != HTTP_FIELD_OTHER;
}

enum h1_result h1_parse_trailers(const char *data, size_t len, const struct h1_limits *limits,
                                 struct http_message *msg, size_t *used, enum http_reject *why)
{
    const char *p = data, *end = data + len;
    iso_assert(limits->fields <= HTTP_FIELDS_MAX - HTTP_FIELDS_OURS);
    if (len > limits->head_bytes)
        end = data + limits->head_bytes;
    http_message_init(msg, false);
    enum h1_result result = h1_parse_fields(data, &p, end, limits->fields, msg, why);
    if (result == H1_INCOMPLETE && len >= limits->head_bytes) {
        *why = HTTP_REJECT_TRAILERS_TOO_LARGE;
        return H1_REJECTED;
    }
    if (result == H1_REJECTED && (*why == HTTP_REJECT_BAD_FIELD || *why == HTTP_REJECT_OBS_FOLD))
        *why = HTTP_REJECT_BAD_TRAILER;
    if (result != H1_COMPLETE)
        return result;
    for (uint32_t i = 0; i < msg->n_fields; i++)
        if (is_forbidden(&msg->fields[i]))
            msg->fields[i].flags |= HTTP_FIELD_DROP;
    *used = (size_t)(p - data);
    return H1_COMPLETE;
}
