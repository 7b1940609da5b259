/* SPDX-License-Identifier: Apache-2.0 */
#include "core/ip.h"

#include <arpa/inet.h>

bool ip_parse(struct slice text, struct ip_addr *out)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    char copy[IP_TEXT_MAX];
    bool bracketed = text.len > 2 && text.ptr[0] == '[' && text.ptr[text.len - 1] == ']';
    if (bracketed)
        text = slice_of(text.ptr + 1, text.len - 2);
    if (text.len == 0 || text.len >= sizeof(copy))
        return false;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    if (strlen(copy) != text.len)
        return false;
    struct ip_addr addr = {0};
    if (!bracketed && inet_pton(AF_INET, copy, addr.bytes) == 1) {
        addr.family = 4;
    } else if (inet_pton(AF_INET6, copy, addr.bytes) == 1) {
        addr.family = 6;
        if (memcmp(addr.bytes, mapped, sizeof(mapped)) == 0) {
            struct ip_addr v4 = {.family = 4};
            memcpy(v4.bytes, addr.bytes + 12, 4);
            addr = v4;
        }
    } else {
        return false;
    }
    *out = addr;
    return true;
}

bool ip_prefix_parse(struct slice text, struct ip_prefix *out)
{
    size_t slash = slice_find(text, '/');
    struct ip_prefix prefix = {0};
    if (!ip_parse(slice_of(text.ptr, slash), &prefix.addr))
        return false;
    uint64_t most = prefix.addr.family == 4 ? 32 : 128, bits = most;
    if (slash < text.len &&
        (!slice_u64(slice_of(text.ptr + slash + 1, text.len - slash - 1), &bits) || bits > most))
        return false;
    prefix.bits = (uint8_t)bits;
    for (uint64_t i = bits; i < most; i++)
        if (prefix.addr.bytes[i / 8] & 0x80 >> i % 8)
            return false;
    *out = prefix;
    return true;
}

bool ip_prefix_has(const struct ip_prefix *prefix, const struct ip_addr *addr)
{
    if (prefix->addr.family != addr->family)
        return false;
    unsigned whole = prefix->bits / 8, rest = prefix->bits % 8;
    if (memcmp(prefix->addr.bytes, addr->bytes, whole) != 0)
        return false;
    return rest == 0 || ((prefix->addr.bytes[whole] ^ addr->bytes[whole]) >> (8 - rest)) == 0;
}

bool ip_eq(const struct ip_addr *a, const struct ip_addr *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, a->family == 4 ? 4 : 16) == 0;
}

static size_t print_decimal(unsigned v, char *out)
{
    size_t n = 0;
    if (v >= 100)
        out[n++] = (char)('0' + v / 100);
    if (v >= 10)
        out[n++] = (char)('0' + v / 10 % 10);
    out[n++] = (char)('0' + v % 10);
    return n;
}

size_t ip_print(const struct ip_addr *addr, char out[IP_TEXT_MAX])
{
    if (addr->family == 4) { /* on the request path (X-Forwarded-For), hence by hand */
        size_t n = 0;
        for (int i = 0; i < 4; i++) {
            if (i)
                out[n++] = '.';
            n += print_decimal(addr->bytes[i], out + n);
        }
        return n;
    }
    if (addr->family == 6 && inet_ntop(AF_INET6, addr->bytes, out, IP_TEXT_MAX))
        return strlen(out);
    memcpy(out, "unknown", 7); /* RFC 7239 6.3 has this word for it */
    return 7;
}
