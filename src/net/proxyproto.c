/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxyproto.h"

#include "core/check.h"

#include <stdio.h>

/* Version 2 begins with what no line of text and no request does. */
static const char SIGNATURE[12] = "\r\n\r\n\0\r\nQUIT\n";

enum { HEAD_BYTES = 16, COMMAND_LOCAL = 0, COMMAND_PROXY = 1 };
enum { FAMILY_UNSPEC = 0, FAMILY_IPV4 = 1, FAMILY_IPV6 = 2, FAMILY_UNIX = 3 };
enum { TRANSPORT_UNSPEC = 0, TRANSPORT_STREAM = 1, TRANSPORT_DGRAM = 2 };

/* Of src and dst with their ports, by family. */
static const uint8_t ADDRESS_BYTES[] = {
    [FAMILY_UNSPEC] = 0, [FAMILY_IPV4] = 12, [FAMILY_IPV6] = 36, [FAMILY_UNIX] = 216};

static unsigned u16(const char *at)
{
    return (unsigned)(unsigned char)at[0] << 8 | (unsigned char)at[1];
}

static void put_u16(char *at, unsigned value)
{
    at[0] = (char)(value >> 8);
    at[1] = (char)value;
}

static const uint8_t MAPPED[12] = {[10] = 0xff, [11] = 0xff};

static struct ip_addr ip_of(const char *at, unsigned family)
{
    struct ip_addr ip = {.family = 4};
    if (family == FAMILY_IPV4) {
        memcpy(ip.bytes, at, 4);
    } else if (memcmp(at, MAPPED, sizeof(MAPPED)) == 0) {
        memcpy(ip.bytes, at + sizeof(MAPPED), 4);
    } else {
        ip.family = 6;
        memcpy(ip.bytes, at, 16);
    }
    return ip;
}

/* A port as the text form has it: no leading zeros, no sign. */
static bool parse_port(struct slice text, uint16_t *out)
{
    uint64_t port;
    if (text.len == 0 || text.len > 5 || (text.len > 1 && text.ptr[0] == '0') || !slice_u64(text, &port) ||
        port > 65535)
        return false;
    *out = (uint16_t)port;
    return true;
}

/* In the family that the line names, though a mapped address becomes IPv4 on the way in. */
static bool parse_ip(struct slice text, bool is_v6, struct ip_addr *out)
{
    bool has_colon = memchr(text.ptr, ':', text.len) != NULL;
    return has_colon == is_v6 && text.ptr[0] != '[' && ip_parse(text, out);
}

/* "PROXY TCP4 SRC DST PORT PORT", without its CRLF. */
static bool parse_line(struct slice line, struct proxyproto *out)
{
    struct slice rest = slice_of(line.ptr + 6, line.len - 6), words[5];
    if (slice_eq(rest, SLICE("UNKNOWN")) ||
        (rest.len > 8 && memcmp(rest.ptr, "UNKNOWN ", 8) == 0)) /* what follows is to be ignored */
        return true;
    for (size_t i = 0; i < iso_countof(words); i++) {
        size_t n = slice_find(rest, ' ');
        words[i] = slice_of(rest.ptr, n);
        if (n == 0 || (n == rest.len) != (i == iso_countof(words) - 1))
            return false;
        if (n < rest.len)
            rest = slice_of(rest.ptr + n + 1, rest.len - n - 1);
    }
    bool is_v6 = slice_eq(words[0], SLICE("TCP6"));
    out->has_addresses = true;
    return (is_v6 || slice_eq(words[0], SLICE("TCP4"))) && parse_ip(words[1], is_v6, &out->src) &&
           parse_ip(words[2], is_v6, &out->dst) && parse_port(words[3], &out->src_port) &&
           parse_port(words[4], &out->dst_port);
}

static enum proxyproto_result read_v1(const char *data, size_t len, struct proxyproto *out)
{
    const char *cr = memchr(data, '\r', len < PROXYPROTO_V1_BYTES ? len : PROXYPROTO_V1_BYTES);
    size_t n = cr ? (size_t)(cr - data) : 0;
    struct proxyproto header = {.version = 1, .len = n + 2};
    if (memchr(data, '\n', cr ? n : len) || (!cr && len >= PROXYPROTO_V1_BYTES) ||
        header.len > PROXYPROTO_V1_BYTES)
        return PROXYPROTO_INVALID;
    if (!cr || len < header.len)
        return PROXYPROTO_INCOMPLETE;
    if (data[n + 1] != '\n' || !parse_line(slice_of(data, n), &header))
        return PROXYPROTO_INVALID;
    *out = header;
    return PROXYPROTO_COMPLETE;
}

/* CRC32c (Castagnoli), reflected. A header is some hundred bytes and comes once a connection. */
static uint32_t crc32c(uint32_t crc, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return crc;
}

/* All TLVs are whole, and the checksum among them, if any, is that of the header with itself as zeros. */
static bool check_tlvs(const char *data, struct slice tlvs, size_t len)
{
    static const char zeros[4];
    struct slice rest = tlvs, value;
    uint8_t type;
    while (proxyproto_next_tlv(&rest, &type, &value)) {
        if (type != PROXYPROTO_CRC32C)
            continue;
        if (value.len != sizeof(zeros))
            return false;
        size_t at = (size_t)(value.ptr - data);
        uint32_t crc = crc32c(~0u, data, at);
        crc = crc32c(crc, zeros, sizeof(zeros));
        crc = ~crc32c(crc, data + at + sizeof(zeros), len - at - sizeof(zeros));
        if (crc != ((uint32_t)u16(value.ptr) << 16 | u16(value.ptr + 2)))
            return false;
    }
    return rest.len == 0;
}

static enum proxyproto_result read_v2(const char *data, size_t len, struct proxyproto *out)
{
    if (len < HEAD_BYTES)
        return len > sizeof(SIGNATURE) && (unsigned char)data[12] >> 4 != 2 ? PROXYPROTO_INVALID
                                                                            : PROXYPROTO_INCOMPLETE;
    unsigned version = (unsigned char)data[12] >> 4, command = data[12] & 15,
             family = (unsigned char)data[13] >> 4, transport = data[13] & 15, body = u16(data + 14);
    struct proxyproto header = {.version = 2, .is_local = command == COMMAND_LOCAL, .len = HEAD_BYTES + body};
    if (version != 2 || command > COMMAND_PROXY || family > FAMILY_UNIX || transport > TRANSPORT_DGRAM ||
        header.len > PROXYPROTO_BYTES)
        return PROXYPROTO_INVALID;
    bool is_skipped = header.is_local || family == FAMILY_UNSPEC || transport == TRANSPORT_UNSPEC;
    if (!is_skipped && body < ADDRESS_BYTES[family])
        return PROXYPROTO_INVALID;
    if (len < header.len)
        return PROXYPROTO_INCOMPLETE;
    if (!is_skipped) {
        const char *at = data + HEAD_BYTES;
        size_t ip_bytes = family == FAMILY_IPV4 ? 4 : 16;
        header.has_addresses = true;
        header.tlvs = slice_of(at + ADDRESS_BYTES[family], body - ADDRESS_BYTES[family]);
        if (!check_tlvs(data, header.tlvs, header.len))
            return PROXYPROTO_INVALID;
        if (family != FAMILY_UNIX) {
            header.src = ip_of(at, family);
            header.dst = ip_of(at + ip_bytes, family);
            header.src_port = (uint16_t)u16(at + 2 * ip_bytes);
            header.dst_port = (uint16_t)u16(at + 2 * ip_bytes + 2);
        }
    }
    *out = header;
    return PROXYPROTO_COMPLETE;
}

static bool begins_with(const char *data, size_t len, const char *start, size_t start_len)
{
    return memcmp(data, start, len < start_len ? len : start_len) == 0;
}

enum proxyproto_result proxyproto_read(const char *data, size_t len, struct proxyproto *out)
{
    if (len == 0)
        return PROXYPROTO_INCOMPLETE;
    if (begins_with(data, len, SIGNATURE, sizeof(SIGNATURE)))
        return read_v2(data, len, out);
    if (begins_with(data, len, "PROXY ", 6))
        return len < 6 ? PROXYPROTO_INCOMPLETE : read_v1(data, len, out);
    return PROXYPROTO_INVALID;
}

bool proxyproto_next_tlv(struct slice *rest, uint8_t *type, struct slice *value)
{
    if (rest->len < 3 || u16(rest->ptr + 1) > rest->len - 3)
        return false;
    *type = (uint8_t)rest->ptr[0];
    *value = slice_of(rest->ptr + 3, u16(rest->ptr + 1));
    *rest = slice_of(value->ptr + value->len, rest->len - 3 - value->len);
    return true;
}

struct slice proxyproto_find_tlv(struct slice tlvs, uint8_t wanted)
{
    struct slice value;
    uint8_t type;
    while (proxyproto_next_tlv(&tlvs, &type, &value))
        if (type == wanted)
            return value;
    return (struct slice){0};
}

size_t proxyproto_add_tlv(char *out, size_t at, size_t cap, uint8_t type, struct slice value)
{
    if (value.len > 0xffff || cap - at < 3 + value.len)
        return at;
    out[at] = (char)type;
    put_u16(out + at + 1, (unsigned)value.len);
    if (value.len)
        memcpy(out + at + 3, value.ptr, value.len);
    return at + 3 + value.len;
}

static void put_ip6(char *at, const struct ip_addr *ip)
{
    bool is_v4 = ip->family == 4;
    if (is_v4)
        memcpy(at, MAPPED, sizeof(MAPPED));
    memcpy(at + (is_v4 ? sizeof(MAPPED) : 0), ip->bytes, is_v4 ? 4 : 16);
}

static size_t write_v1(const struct proxyproto *header, char *out, size_t cap)
{
    const struct ip_addr *ips[2] = {&header->src, &header->dst};
    char text[2][IP_TEXT_MAX + 8], line[PROXYPROTO_V1_BYTES + 1];
    bool is_v6 = header->src.family == 6 || header->dst.family == 6;
    for (int i = 0; i < 2; i++) {
        size_t at = is_v6 && ips[i]->family == 4 ? 7 : 0;
        memcpy(text[i], "::ffff:", at);
        at += ip_print(ips[i], text[i] + at);
        text[i][at] = '\0';
    }
    int n = header->has_addresses && header->src.family && header->dst.family
                ? snprintf(line, sizeof(line), "PROXY TCP%c %s %s %u %u\r\n", is_v6 ? '6' : '4', text[0],
                           text[1], header->src_port, header->dst_port)
                : snprintf(line, sizeof(line), "PROXY UNKNOWN\r\n");
    if ((size_t)n > cap || (size_t)n >= sizeof(line))
        return 0;
    memcpy(out, line, (size_t)n);
    return (size_t)n;
}

size_t proxyproto_write(const struct proxyproto *header, char *out, size_t cap)
{
    if (header->version == 1)
        return write_v1(header, out, cap);
    bool is_known = header->has_addresses && header->src.family && header->dst.family;
    bool is_v6 = header->src.family == 6 || header->dst.family == 6;
    unsigned family = !is_known ? FAMILY_UNSPEC : is_v6 ? FAMILY_IPV6 : FAMILY_IPV4;
    size_t ip_bytes = is_v6 ? 16 : 4, len = HEAD_BYTES + ADDRESS_BYTES[family] + header->tlvs.len;
    if (len > cap || len - HEAD_BYTES > 0xffff)
        return 0;
    memcpy(out, SIGNATURE, sizeof(SIGNATURE));
    out[12] = (char)(0x20 | (header->is_local ? COMMAND_LOCAL : COMMAND_PROXY));
    out[13] = (char)(family << 4 | (is_known ? TRANSPORT_STREAM : TRANSPORT_UNSPEC));
    put_u16(out + 14, (unsigned)(len - HEAD_BYTES));
    char *at = out + HEAD_BYTES;
    if (is_known) {
        if (is_v6) {
            put_ip6(at, &header->src);
            put_ip6(at + 16, &header->dst);
        } else {
            memcpy(at, header->src.bytes, 4);
            memcpy(at + 4, header->dst.bytes, 4);
        }
        put_u16(at + 2 * ip_bytes, header->src_port);
        put_u16(at + 2 * ip_bytes + 2, header->dst_port);
    }
    if (header->tlvs.len)
        memcpy(at + ADDRESS_BYTES[family], header->tlvs.ptr, header->tlvs.len);
    return len;
}
