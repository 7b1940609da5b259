/* SPDX-License-Identifier: Apache-2.0 */
/* The header of the PROXY protocol: a verdict never changes when more bytes come, every shorter beginning of
 * a whole header asks for more, and what was read can be written and read again. */
#include "net/proxyproto.h"

#include "core/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool same(const struct proxyproto *a, const struct proxyproto *b)
{
    return a->has_addresses == b->has_addresses && ip_eq(&a->src, &b->src) && ip_eq(&a->dst, &b->dst) &&
           a->src_port == b->src_port && a->dst_port == b->dst_port;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static char out[PROXYPROTO_WRITE_BYTES];
    const char *data = (const char *)bytes;
    struct proxyproto header, again;
    enum proxyproto_result result = proxyproto_read(data, len, &header);
    for (size_t n = 0; n < len && n < 600; n++) {
        enum proxyproto_result early = proxyproto_read(data, n, &again);
        iso_assert(early == PROXYPROTO_INCOMPLETE || early == result);
        iso_assert(early != PROXYPROTO_COMPLETE || n >= header.len);
    }
    if (result != PROXYPROTO_COMPLETE)
        return 0;
    iso_assert(header.len <= len && header.len <= PROXYPROTO_BYTES);
    struct slice rest = header.tlvs, value;
    uint8_t type;
    bool has_checksum = false;
    while (proxyproto_next_tlv(&rest, &type, &value))
        has_checksum |= type == PROXYPROTO_CRC32C;
    iso_assert(rest.len == 0);
    if (has_checksum)
        header.tlvs = (struct slice){0}; /* it is of the header as it was */
    size_t n = proxyproto_write(&header, out, sizeof(out));
    iso_assert(n > 0 && proxyproto_read(out, n, &again) == PROXYPROTO_COMPLETE && again.len == n);
    iso_assert(same(&header, &again) || (header.has_addresses && !header.src.family));
    return 0;
}
