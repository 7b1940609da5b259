/* SPDX-License-Identifier: Apache-2.0 */
#include "http2/fields.h"

#include "core/print.h"

#define ID_BIT(id) (1ull << HTTP_FIELD_##id)
_Static_assert(HTTP_FIELD_COUNT <= 64, "a set of field ids is one word");

/* What a message may still hold when it was decided, or had added by us, and HTTP/2 does not know. */
static const uint64_t of_connection = ID_BIT(CONNECTION) | ID_BIT(KEEP_ALIVE) | ID_BIT(PROXY_CONNECTION) |
                                      ID_BIT(TRANSFER_ENCODING) | ID_BIT(UPGRADE) | ID_BIT(HTTP2_SETTINGS) |
                                      ID_BIT(CONTENT_LENGTH) | ID_BIT(TE);

static void put_with(struct http2_fields *list, struct slice name, struct slice value, uint8_t flags)
{
    list->bytes += name.len + value.len + 4;
    list->nv[list->n++] = (nghttp2_nv){.name = (uint8_t *)name.ptr,
                                       .namelen = name.len,
                                       .value = (uint8_t *)(value.len ? value.ptr : ""),
                                       .valuelen = value.len,
                                       .flags = flags};
}

static void put(struct http2_fields *list, struct slice name, struct slice value)
{
    put_with(list, name, value, NGHTTP2_NV_FLAG_NONE);
}

static bool is_lower(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if ((unsigned char)(name.ptr[i] - 'A') < 26)
            return false;
    return true;
}

/* The name in lower case, or an empty slice when there is no room. */
static struct slice lower_name(const struct http_field *f, struct scratch *scratch)
{
    struct slice name = http_field_name(f);
    if (f->id != HTTP_FIELD_OTHER)
        return http_field_id_name((enum http_field_id)f->id);
    if (is_lower(name))
        return name;
    char *out = scratch_take(scratch, name.len);
    if (!out)
        return (struct slice){0};
    for (size_t i = 0; i < name.len; i++)
        out[i] = ascii_lower(name.ptr[i]);
    return slice_of(out, name.len);
}

static bool put_fields(struct http2_fields *list, const struct http_message *msg, uint64_t skip,
                       struct scratch *scratch)
{
    for (uint32_t i = 0; i < msg->n_fields; i++) {
        const struct http_field *f = &msg->fields[i];
        if (f->flags & HTTP_FIELD_DROP || (skip | of_connection) >> f->id & 1)
            continue;
        struct slice name = lower_name(f, scratch);
        if (!name.len)
            return false;
        /* Never the same twice: it would push out of HPACK's table what is. */
        put_with(list, name, http_field_value(f),
                 f->id == HTTP_FIELD_X_REQUEST_ID ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
    }
    return true;
}

static void put_length(struct http2_fields *list, uint64_t length)
{
    put(list, SLICE("content-length"), slice_of(list->length, print_u64(list->length, length)));
}

bool http2_fields_of_response(struct http2_fields *list, const struct http_message *msg,
                              struct scratch *scratch)
{
    list->n = list->bytes = 0;
    list->status[0] = (char)('0' + msg->status / 100);
    list->status[1] = (char)('0' + msg->status / 10 % 10);
    list->status[2] = (char)('0' + msg->status % 10);
    put(list, SLICE(":status"), slice_of(list->status, 3));
    if (!put_fields(list, msg, 0, scratch))
        return false;
    bool names_length =
        msg->framing == HTTP_BODY_NONE && msg->has_length && msg->status >= 200 && msg->status != 204;
    if (msg->framing == HTTP_BODY_LENGTH || names_length)
        put_length(list, msg->content_length);
    return true;
}

bool http2_fields_of_request(struct http2_fields *list, const struct http_message *msg, struct slice scheme,
                             struct slice protocol, struct scratch *scratch)
{
    struct slice path = msg->path;
    list->n = list->bytes = 0;
    if (msg->query.ptr) { /* the target holds both in one piece, unless it had no path */
        char *out = scratch_take(scratch, path.len + 1 + msg->query.len);
        if (!out)
            return false;
        memcpy(out, path.ptr, path.len);
        out[path.len] = '?';
        if (msg->query.len)
            memcpy(out + path.len + 1, msg->query.ptr, msg->query.len);
        path = slice_of(out, path.len + 1 + msg->query.len);
    }
    put(list, SLICE(":method"), protocol.len ? SLICE("CONNECT") : msg->method_text);
    if (protocol.len)
        put(list, SLICE(":protocol"), protocol);
    put(list, SLICE(":scheme"), scheme);
    put(list, SLICE(":authority"), msg->authority);
    put(list, SLICE(":path"), path);
    uint64_t skip = ID_BIT(HOST) | (msg->expect_continue ? 0 : ID_BIT(EXPECT));
    if (!put_fields(list, msg, skip, scratch))
        return false;
    if (msg->te_trailers)
        put(list, SLICE("te"), SLICE("trailers"));
    if (msg->framing == HTTP_BODY_LENGTH)
        put_length(list, msg->content_length);
    return true;
}

bool http2_fields_of_trailers(struct http2_fields *list, const struct http_message *msg,
                              struct scratch *scratch)
{
    list->n = list->bytes = 0;
    return put_fields(list, msg, 0, scratch);
}
