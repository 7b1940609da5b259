/* SPDX-License-Identifier: Apache-2.0 */
/* The PROXY protocol: the first bytes of a connection, in which a proxy says whom it speaks for. Versions 1
 * (one line of text) and 2 (binary, with TLVs) are read and written. Pure: bytes in, a header out, and back.
 * Whom to believe is decided elsewhere. Source: A12; haproxy.org, proxy-protocol.txt; cases C-086 C-089. */
#ifndef ISOBAR_NET_PROXYPROTO_H
#define ISOBAR_NET_PROXYPROTO_H

#include "core/ip.h"

enum {
    PROXYPROTO_V1_BYTES = 107,    /* the longest line, its CRLF included */
    PROXYPROTO_BYTES = 16 * 1024, /* the longest header that is read; the format would allow 64 KiB */
    PROXYPROTO_WRITE_BYTES = 16 * 1024 + 256, /* enough for what is written with TLVs that were read */
};

enum proxyproto_result {
    PROXYPROTO_COMPLETE,
    PROXYPROTO_INCOMPLETE, /* call again with these bytes and more */
    PROXYPROTO_INVALID,    /* no header, or one that breaks its rules, our limit or its checksum */
};

/* Types of TLVs. */
enum {
    PROXYPROTO_ALPN = 0x01,
    PROXYPROTO_AUTHORITY = 0x02,
    PROXYPROTO_CRC32C = 0x03,
    PROXYPROTO_NOOP = 0x04,
    PROXYPROTO_UNIQUE_ID = 0x05,
    PROXYPROTO_SSL = 0x20,
    PROXYPROTO_SSL_VERSION = 0x21, /* within SSL */
};

struct proxyproto {
    uint8_t version;         /* 1 or 2 */
    bool is_local;           /* the proxy speaks for itself (a health check): v2 LOCAL */
    bool has_addresses;      /* false: LOCAL, UNKNOWN, UNSPEC; who connected is who it is */
    struct ip_addr src, dst; /* with has_addresses; family 0: unix sockets */
    uint16_t src_port, dst_port;
    struct slice tlvs; /* of v2 with addresses, well-formed; borrows from what was read */
    size_t len;        /* of the whole header */
};

/* Looks at everything that has come so far. `*out` is written with COMPLETE only. */
enum proxyproto_result proxyproto_read(const char *data, size_t len, struct proxyproto *out);

/* Takes the next TLV off; false at the end (or where one is cut). */
bool proxyproto_next_tlv(struct slice *rest, uint8_t *type, struct slice *value);
/* The value of the first TLV of a type; ptr NULL: none. */
struct slice proxyproto_find_tlv(struct slice tlvs, uint8_t type);

/* Writes a header in its version; v1 has no TLVs. Addresses of two families become IPv6. Returns its length;
 * 0: it does not fit. `len` is ignored. */
size_t proxyproto_write(const struct proxyproto *header, char *out, size_t cap);
/* Appends a TLV at out[at..cap); returns the new end, which is `at` when it does not fit. */
size_t proxyproto_add_tlv(char *out, size_t at, size_t cap, uint8_t type, struct slice value);

#endif
