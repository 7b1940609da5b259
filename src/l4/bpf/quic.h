/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The server id in a QUIC connection id (VIPs with L4_VIP_QUIC), so that a connection keeps its real when the
 * client's address changes. Only ids that a server chose count: short headers, and long headers of the types
 * Handshake and Retry; the id of Initial and 0-RTT packets is the client's.
 *
 * The top two bits of the first byte of the id say how the server id is coded:
 *   01  16 bits in the bits behind them,
 *   10  24 bits in the next three bytes,
 *   11  32 bits in the next four,
 *   00  draft-ietf-quic-load-balancers, unencrypted, configuration rotation 0: the first byte is config id
 * and length, the next two bytes are the server id. Server ids are per real, from the configuration. Source:
 * RFC 8999, RFC 9000 17. */
#ifndef ISOBAR_L4_BPF_QUIC_H
#define ISOBAR_L4_BPF_QUIC_H

#include "l4/bpf/packet.h"

enum { QUIC_LONG = 0x80, QUIC_ID_MIN = 8, QUIC_INITIAL = 0, QUIC_ZERO_RTT = 1 };

/* The server id, or 0 when the packet carries none that counts. */
L4_INLINE __u32 quic_server_id(void *quic, void *end)
{
    __u8 *b = quic;
    if ((void *)(b + 1) > end)
        return 0;
    __u8 *id = b + 1;
    if (b[0] & QUIC_LONG) {
        if ((void *)(b + 6) > end)
            return 0;
        __u32 type = b[0] >> 4 & 3;
        if (type == QUIC_INITIAL || type == QUIC_ZERO_RTT || b[5] < QUIC_ID_MIN)
            return 0;
        id = b + 6;
    }
    if ((void *)(id + QUIC_ID_MIN) > end)
        return 0;
    switch (id[0] >> 6) {
    case 1:
        return (__u32)(id[0] & 0x3f) << 10 | (__u32)id[1] << 2 | id[2] >> 6;
    case 2:
        return (__u32)id[1] << 16 | (__u32)id[2] << 8 | id[3];
    case 3:
        return (__u32)id[1] << 24 | (__u32)id[2] << 16 | (__u32)id[3] << 8 | id[4];
    }
    return (__u32)id[1] << 8 | id[2];
}

/* The real that the connection id names, or 0. */
L4_INLINE __u32 l4_quic_real(void *quic, void *end)
{
    __u32 id = quic_server_id(quic, end);
    if (!id)
        return 0;
    __u32 *real = bpf_map_lookup_elem(&l4_server_ids, &id);
    if (!real) {
        l4_count(L4_QUIC_UNKNOWN_ID);
        return 0;
    }
    return *real;
}

#endif
