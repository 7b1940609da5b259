/* SPDX-License-Identifier: Apache-2.0 */
/* Request heads: what is accepted is clean and lies inside the input, a beginning never says something else
 * than the whole, and what the writer makes of a request is read back as the same request. */
#include "messages.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static struct http_message message, other;
static char written[65536];

static struct fuzz_outcome parse(const char *data, size_t len, const struct h1_limits *limits,
                                 struct http_message *msg)
{
    struct fuzz_outcome out = {.why = HTTP_REJECT_NONE};
    out.result = h1_parse_request(data, len, limits, msg, &out.used, &out.why);
    iso_assert(out.result != H1_COMPLETE || out.used <= len);
    iso_assert(out.result != H1_REJECTED || out.why != HTTP_REJECT_NONE);
    return out;
}

static void check_request(struct http_message *msg, const char *data, size_t used,
                          const struct h1_limits *limits)
{
    check_fields(msg, data, used);
    check_decision(msg);
    iso_assert(used <= limits->head_bytes + 8 && msg->n_fields <= limits->fields);
    iso_assert(msg->target.len <= limits->uri_bytes && lies_inside(msg->target, data, used));
    iso_assert(is_name(msg->method_text) && lies_inside(msg->method_text, data, used));
    iso_assert(msg->method != HTTP_CONNECT && msg->framing != HTTP_BODY_UNTIL_CLOSE);
    iso_assert(lies_inside(msg->scheme, data, used) && lies_inside(msg->authority, data, used));
    iso_assert(lies_inside(msg->query, data, used));
    iso_assert(lies_inside(msg->path, data, used) || slice_eq(msg->path, SLICE("/")) ||
               slice_eq(msg->path, SLICE("*")));
    iso_assert(msg->path.ptr[0] == '/' || (slice_eq(msg->path, SLICE("*")) && msg->method == HTTP_OPTIONS));
    iso_assert(slice_find(msg->path, '?') == msg->path.len &&
               slice_find(msg->target, '#') == msg->target.len);
    for (size_t i = 0; i < msg->target.len; i++)
        iso_assert(msg->target.ptr[i] > 0x20 && msg->target.ptr[i] < 0x7f);
    struct slice host;
    uint16_t port;
    iso_assert(msg->authority.len ? http_host_parse(msg->authority, &host, &port) : msg->version_minor == 0);
    struct http_field *field = http_message_find(msg, HTTP_FIELD_HOST);
    iso_assert((http_message_find(msg, HTTP_FIELD_EXPECT) != NULL) == msg->expect_continue);
    iso_assert(!field || slice_eq(http_field_value(field), msg->authority));
}

static void check_written(struct http_message *msg)
{
    if (!msg->authority.len)
        msg->authority = SLICE("none.example");
    size_t len = h1_write_request(written, sizeof(written), msg);
    iso_assert(len > 0);
    static const struct h1_limits limits = {.head_bytes = sizeof(written),
                                            .uri_bytes = sizeof(written),
                                            .fields = HTTP_FIELDS_MAX - HTTP_FIELDS_OURS};
    if (msg->n_fields > limits.fields - 4) /* the writer adds up to four */
        return;
    struct fuzz_outcome out = parse(written, len, &limits, &other);
    iso_assert(out.result == H1_COMPLETE && out.used == len);
    iso_assert(other.version_minor == 1 && other.method == msg->method);
    iso_assert(slice_eq(other.method_text, msg->method_text) && slice_eq(other.path, msg->path));
    iso_assert(slice_eq(other.query, msg->query) && !other.query.ptr == !msg->query.ptr);
    iso_assert(slice_eq(other.authority, msg->authority) && other.scheme.len == 0);
    iso_assert(other.framing == msg->framing && other.content_length == msg->content_length);
    iso_assert(other.upgrade == msg->upgrade && other.te_trailers == msg->te_trailers);
    iso_assert(other.expect_continue == msg->expect_continue && other.keep_alive);
    check_same_fields(msg, &other, HTTP_FIELD_HOST);
}

static void try_limits(const char *data, size_t len, const struct h1_limits *limits)
{
    struct fuzz_outcome whole = parse(data, len, limits, &message);
    if (whole.result == H1_COMPLETE)
        check_request(&message, data, whole.used, limits);
    bool decided = false;
    for (size_t part = 0; part <= len && len <= FUZZ_BEGINNINGS_MAX; part++) {
        struct fuzz_outcome out = parse(data, part, limits, &other);
        decided = check_beginning(&whole, &out, part, decided);
        if (decided && whole.result == H1_COMPLETE)
            check_same(&message, &other);
    }
    if (whole.result == H1_COMPLETE)
        check_written(&message);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    for (size_t i = 0; i < iso_countof(fuzz_limits); i++)
        try_limits((const char *)bytes, len, &fuzz_limits[i]);
    return 0;
}
