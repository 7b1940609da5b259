/* SPDX-License-Identifier: Apache-2.0 */
/* Chunked bodies: decoded at once, in pieces and byte by byte, with the same data, the same end and the same
 * verdict; what was decoded is coded again by our writer and decoded to the same data. The first byte of the
 * input is the length of the pieces. */
#include "http1/parse.h"
#include "http1/write.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct decoded {
    enum h1_chunked_result result;
    size_t used, body;
};

/* Decodes text[0..len) in pieces of `step` into out. Each piece stands in a block of its own. */
static struct decoded decode(const char *text, size_t len, size_t step, char *out)
{
    struct h1_chunked chunk = {0};
    struct decoded d = {.result = H1_CHUNKED_MORE};
    while (d.used < len && d.result == H1_CHUNKED_MORE) {
        size_t piece = len - d.used < step ? len - d.used : step, used = 0, body = 0;
        enum http_reject why = HTTP_REJECT_NONE;
        char *copy = malloc(piece);
        memcpy(copy, text + d.used, piece);
        d.result = h1_chunked_decode(&chunk, copy, piece, &used, &body, &why);
        iso_assert(used <= piece && body <= used);
        iso_assert(d.result != H1_CHUNKED_MORE || used == piece);
        iso_assert((why == HTTP_REJECT_BAD_CHUNK) == (d.result == H1_CHUNKED_REJECTED));
        memcpy(out + d.body, copy, body);
        free(copy);
        d.used += used;
        d.body += body;
    }
    return d;
}

static void check_same(struct decoded a, const char *a_body, struct decoded b, const char *b_body)
{
    iso_assert(a.result == b.result && a.used == b.used && a.body == b.body);
    iso_assert(memcmp(a_body, b_body, a.body) == 0);
}

/* Our own coding of the body, in chunks of `step`. */
static void check_written(const char *body, size_t len, size_t step, char *scratch)
{
    char *coded = malloc(len * (H1_CHUNK_SIZE_MAX + 3) + 16);
    size_t at = 0;
    for (size_t done = 0; done < len;) {
        size_t piece = len - done < step ? len - done : step;
        at += h1_write_chunk_size(coded + at, piece);
        memcpy(coded + at, body + done, piece);
        memcpy(coded + at + piece, "\r\n", 2);
        at += piece + 2;
        done += piece;
    }
    at += h1_write_last_chunk(coded + at, 16, NULL);
    struct decoded d = decode(coded, at, at, scratch);
    iso_assert(d.result == H1_CHUNKED_DATA_END && d.used == at - 2 && d.body == len);
    iso_assert(memcmp(scratch, body, len) == 0);
    free(coded);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len < 2)
        return 0;
    const char *text = (const char *)bytes + 1;
    size_t step = (size_t)bytes[0] % 64 + 1;
    len--;
    char *whole_body = malloc(len), *body = malloc(len);
    struct decoded whole = decode(text, len, len, whole_body);
    check_same(whole, whole_body, decode(text, len, step, body), body);
    check_same(whole, whole_body, decode(text, len, 1, body), body);
    check_written(whole_body, whole.body, step, body);
    free(whole_body);
    free(body);
    return 0;
}
