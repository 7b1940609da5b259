/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/clienthello.h"

enum {
    RECORD_HEADER = 5,
    MESSAGE_HEADER = 4,
    RECORD_HANDSHAKE = 22,
    MESSAGE_CLIENT_HELLO = 1,
    RANDOM_BYTES = 32,
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ALPN = 16,
    EXTENSION_VERSIONS = 43,
    NAME_HOST = 0,
    NAME_BYTES_MAX = 255,
    TLS_1_3 = 0x0304,
};

static uint32_t byte_at(const char *data)
{
    return (unsigned char)*data;
}

/* Each of these takes something off the front of `*rest`; false when it is not there. */

static bool take_number(struct slice *rest, unsigned n_bytes, uint32_t *out)
{
    if (rest->len < n_bytes)
        return false;
    *out = 0;
    for (unsigned i = 0; i < n_bytes; i++)
        *out = *out << 8 | byte_at(rest->ptr + i);
    *rest = slice_of(rest->ptr + n_bytes, rest->len - n_bytes);
    return true;
}

static bool take_bytes(struct slice *rest, size_t n, struct slice *out)
{
    if (rest->len < n)
        return false;
    *out = slice_of(rest->ptr, n);
    *rest = slice_of(rest->ptr + n, rest->len - n);
    return true;
}

/* A vector behind its length of `n_bytes` bytes. */
static bool take_vector(struct slice *rest, unsigned n_bytes, struct slice *out)
{
    uint32_t len;
    return take_number(rest, n_bytes, &len) && take_bytes(rest, len, out);
}

static bool read_server_name(struct slice body, struct client_hello *hello)
{
    struct slice list;
    if (hello->server_name.ptr || !take_vector(&body, 2, &list) || body.len || list.len == 0)
        return false;
    while (list.len) {
        struct slice name;
        uint32_t type;
        if (!take_number(&list, 1, &type) || !take_vector(&list, 2, &name))
            return false;
        if (type != NAME_HOST)
            continue;
        if (hello->server_name.ptr || name.len == 0 || name.len > NAME_BYTES_MAX ||
            memchr(name.ptr, '\0', name.len))
            return false;
        hello->server_name = name;
    }
    return true;
}

static bool read_alpn(struct slice body, struct client_hello *hello)
{
    struct slice list, rest, name;
    if (hello->alpn.ptr || !take_vector(&body, 2, &list) || body.len || list.len == 0)
        return false;
    for (rest = list; rest.len;)
        if (!take_vector(&rest, 1, &name) || name.len == 0)
            return false;
    hello->alpn = list;
    return true;
}

static bool read_versions(struct slice body, struct client_hello *hello)
{
    struct slice list;
    uint32_t version;
    if (!take_vector(&body, 1, &list) || body.len || list.len == 0)
        return false;
    while (list.len) {
        if (!take_number(&list, 2, &version))
            return false;
        hello->offers_tls_1_3 |= version == TLS_1_3;
    }
    return true;
}

static bool read_extension(uint32_t type, struct slice body, struct client_hello *hello)
{
    switch (type) {
    case EXTENSION_SERVER_NAME:
        return read_server_name(body, hello);
    case EXTENSION_ALPN:
        return read_alpn(body, hello);
    case EXTENSION_VERSIONS:
        return read_versions(body, hello);
    default:
        return true; /* GREASE too (RFC 8701) */
    }
}

static bool read_hello(struct slice body, struct client_hello *out)
{
    struct client_hello hello = {.offers_tls_1_3 = false};
    struct slice ignored, extensions, extension;
    uint32_t version, type;
    if (!take_number(&body, 2, &version) || version >> 8 != 3 || !take_bytes(&body, RANDOM_BYTES, &ignored) ||
        !take_vector(&body, 1, &ignored) || ignored.len > 32 || !take_vector(&body, 2, &ignored) ||
        ignored.len < 2 || ignored.len % 2 || !take_vector(&body, 1, &ignored) || ignored.len == 0)
        return false;
    if (body.len) { /* without extensions the message ends here */
        if (!take_vector(&body, 2, &extensions) || body.len)
            return false;
        while (extensions.len)
            if (!take_number(&extensions, 2, &type) || !take_vector(&extensions, 2, &extension) ||
                !read_extension(type, extension, &hello))
                return false;
    }
    *out = hello;
    return true;
}

/* The header of the message, as soon as it is there. */
static bool is_hello(const char *message, uint32_t *len)
{
    *len = byte_at(message + 1) << 16 | byte_at(message + 2) << 8 | byte_at(message + 3);
    return byte_at(message) == MESSAGE_CLIENT_HELLO && *len <= CLIENT_HELLO_BYTES;
}

enum client_hello_result client_hello_peek(const char *data, size_t len, char *scratch,
                                           struct client_hello *out)
{
    const char *message = NULL;
    size_t have = 0; /* bytes of the message, in `data` while it is in one record, else in `scratch` */
    for (unsigned records = 0; len > 0; records++) {
        static const unsigned char begin[] = {RECORD_HANDSHAKE, 3};
        if (memcmp(data, begin, len < 2 ? len : 2) != 0 || records == CLIENT_HELLO_RECORDS)
            return CLIENT_HELLO_INVALID;
        if (len < RECORD_HEADER)
            return CLIENT_HELLO_INCOMPLETE;
        size_t record = byte_at(data + 3) << 8 | byte_at(data + 4);
        if (record == 0 || record > CLIENT_HELLO_BYTES)
            return CLIENT_HELLO_INVALID;
        data += RECORD_HEADER;
        len -= RECORD_HEADER;
        if (len == 0)
            return CLIENT_HELLO_INCOMPLETE;
        size_t part = record < len ? record : len, room = CLIENT_HELLO_BYTES + MESSAGE_HEADER - have;
        size_t taken = part < room ? part : room;
        if (have == 0) {
            message = data;
        } else {
            if (message != scratch)
                memcpy(scratch, message, have);
            memcpy(scratch + have, data, taken);
            message = scratch;
        }
        have += taken;
        uint32_t body;
        if (byte_at(message) != MESSAGE_CLIENT_HELLO)
            return CLIENT_HELLO_INVALID;
        if (have >= MESSAGE_HEADER) {
            if (!is_hello(message, &body))
                return CLIENT_HELLO_INVALID;
            if (have - MESSAGE_HEADER >= body)
                return read_hello(slice_of(message + MESSAGE_HEADER, body), out) ? CLIENT_HELLO_COMPLETE
                                                                                 : CLIENT_HELLO_INVALID;
        }
        data += part;
        len -= part;
        if (part < record)
            return CLIENT_HELLO_INCOMPLETE;
    }
    return CLIENT_HELLO_INCOMPLETE;
}

bool client_hello_next_alpn(struct slice *rest, struct slice *name)
{
    return rest->len > 0 && take_vector(rest, 1, name);
}
