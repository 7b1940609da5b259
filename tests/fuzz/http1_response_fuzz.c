/* SPDX-License-Identifier: Apache-2.0 */
/* Response heads, as answers to GET and to HEAD: what is accepted is clean and lies inside the input, a
 * beginning never says something else than the whole, and what the writer makes of a response is read back as
 * the same response. The bytes are also tried as a trailer section. */
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static struct http_message message, other;
static char written[65536];

static struct fuzz_outcome parse(const char *data, size_t len, const struct h1_limits *limits,
                                 enum http_method method, struct http_message *msg)
{
    struct fuzz_outcome out = {.why = HTTP_REJECT_NONE};
    out.result = h1_parse_response(data, len, limits, method, msg, &out.used, &out.why);
    iso_assert(out.result != H1_COMPLETE || out.used <= len);
    iso_assert(out.result != H1_REJECTED || out.why != HTTP_REJECT_NONE);
    return out;
}

static void check_response(struct http_message *msg, const char *data, size_t used, enum http_method method)
{
    check_fields(msg, data, used);
    check_decision(msg);
    iso_assert(msg->status >= 100 && msg->status < 600);
    iso_assert(lies_inside(msg->reason, data, used) && is_clean(msg->reason));
    if (msg->status < 200 || msg->status == 204 || msg->status == 304 || method == HTTP_HEAD)
        iso_assert(msg->framing == HTTP_BODY_NONE);
    else
        iso_assert(msg->framing != HTTP_BODY_NONE);
    iso_assert(msg->framing != HTTP_BODY_UNTIL_CLOSE || !msg->keep_alive);
}

static void check_written(struct http_message *msg, enum http_method method)
{
    static const struct h1_limits limits = {.head_bytes = sizeof(written),
                                            .uri_bytes = sizeof(written),
                                            .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};
    size_t len = h1_write_response(written, sizeof(written), msg, 1, !msg->keep_alive);
    iso_assert(len > 0);
    if (msg->n_fields > limits.fields - 4)
        return;
    struct fuzz_outcome out = parse(written, len, &limits, method, &other);
    iso_assert(out.result == H1_COMPLETE && out.used == len);
    iso_assert(other.status == msg->status && other.framing == msg->framing);
    iso_assert(other.has_length == msg->has_length && other.content_length == msg->content_length);
    iso_assert(other.upgrade == msg->upgrade);
    iso_assert(other.keep_alive == msg->keep_alive || msg->status < 200);
    check_same_fields(msg, &other, HTTP_FIELD_COUNT);
}

static void try_response(const char *data, size_t len, const struct h1_limits *limits,
                         enum http_method method)
{
    struct fuzz_outcome whole = parse(data, len, limits, method, &message);
    if (whole.result == H1_COMPLETE)
        check_response(&message, data, whole.used, method);
    bool decided = false;
    for (size_t part = 0; part <= len && len <= FUZZ_BEGINNINGS_MAX; part++) {
        struct fuzz_outcome out = parse(data, part, limits, method, &other);
        decided = check_beginning(&whole, &out, part, decided);
        if (decided && whole.result == H1_COMPLETE)
            check_same(&message, &other);
    }
    if (whole.result == H1_COMPLETE)
        check_written(&message, method);
}

static void try_trailers(const char *data, size_t len, const struct h1_limits *limits)
{
    struct fuzz_outcome whole = {0};
    whole.result = h1_parse_trailers(data, len, limits, &message, &whole.used, &whole.why);
    if (whole.result == H1_COMPLETE) {
        iso_assert(whole.used <= len && whole.used <= limits->head_bytes &&
                   message.n_fields <= limits->fields);
        check_fields(&message, data, whole.used);
        iso_assert(!http_message_find(&message, HTTP_FIELD_CONTENT_LENGTH));
        iso_assert(!http_message_find(&message, HTTP_FIELD_HOST));
    }
    bool decided = false;
    for (size_t part = 0; part <= len && len <= FUZZ_BEGINNINGS_MAX; part++) {
        struct fuzz_outcome out = {0};
        out.result = h1_parse_trailers(data, part, limits, &other, &out.used, &out.why);
        decided = check_beginning(&whole, &out, part, decided);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < iso_countof(fuzz_limits); i++) {
        try_response((const char *)bytes, len, &fuzz_limits[i], HTTP_GET);
        try_response((const char *)bytes, len, &fuzz_limits[i], HTTP_HEAD);
        try_trailers((const char *)bytes, len, &fuzz_limits[i]);
    }
    return 0;
}
