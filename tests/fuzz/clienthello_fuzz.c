/* SPDX-License-Identifier: Apache-2.0 */
/* The peek at a ClientHello: a verdict never changes when more bytes come, every shorter beginning of a whole
 * hello asks for more, and the same message cut into other records says the same. */
#include "tls/clienthello.h"

#include "core/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static char scratch[2][CLIENT_HELLO_BYTES + 4];

/* The message in the first record, cut into records of `piece` bytes; 0: it does not fit. */
static size_t recut(const char *data, size_t len, size_t piece, char *out, size_t cap)
{
    size_t body = len < 5 ? 0 : (size_t)(unsigned char)data[3] << 8 | (unsigned char)data[4], n = 0;
    if (body == 0 || body > len - 5)
        return 0;
    for (size_t at = 0; at < body; at += piece) {
        size_t part = body - at < piece ? body - at : piece;
        if (cap - n < part + 5)
            return 0;
        memcpy(out + n, (char[]){22, 3, 1, (char)(part >> 8), (char)part}, 5);
        memcpy(out + n + 5, data + 5 + at, part);
        n += 5 + part;
    }
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    const char *data = (const char *)bytes;
    struct client_hello hello, again;
    static char cut[2 * CLIENT_HELLO_PEEK_BYTES];
    enum client_hello_result result = client_hello_peek(data, len, scratch[0], &hello);
    for (size_t n = 0; n < len && n < 600; n++) {
        enum client_hello_result early = client_hello_peek(data, n, scratch[1], &again);
        iso_assert(early == CLIENT_HELLO_INCOMPLETE || early == result);
    }
    if (result != CLIENT_HELLO_COMPLETE)
        return 0;
    struct slice rest = hello.alpn, name;
    while (client_hello_next_alpn(&rest, &name))
        iso_assert(name.len > 0);
    iso_assert(rest.len == 0);
    iso_assert(!hello.server_name.ptr || (hello.server_name.len > 0 && hello.server_name.len <= 255));
    size_t n = recut(data, len, len / CLIENT_HELLO_RECORDS + 1 + len % 7, cut, sizeof(cut));
    if (n && client_hello_peek(cut, n, scratch[1], &again) == CLIENT_HELLO_COMPLETE)
        iso_assert(slice_eq(hello.server_name, again.server_name) && slice_eq(hello.alpn, again.alpn) &&
                   hello.offers_tls_1_3 == again.offers_tls_1_3);
    return 0;
}
