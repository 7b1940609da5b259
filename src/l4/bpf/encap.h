/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The outer header: IP-in-IP (4-in-4, 4-in-6, 6-in-4, 6-in-6) or GUE variant 1 (UDP, then the packet itself).
 * TOS is copied whole, TTL is 64, the UDP checksum is zero (legal for tunnels: RFC 6935, 6936; computing it
 * would cost more than everything else here). The source varies by flow, so that the real's NIC spreads
 * tunnel packets over its queues. The frame goes back to where it came from unless a gateway is configured.
 */
#ifndef ISOBAR_L4_BPF_ENCAP_H
#define ISOBAR_L4_BPF_ENCAP_H

#include "l4/bpf/packet.h"

struct l4_l2 {
    __u32 mac[3], tag[2];
};

/* The caller has checked that 14 + 20 bytes are there. */
L4_INLINE void l2_save(void *data, struct l4_l2 *l2)
{
    l2->mac[0] = ((__u32 *)data)[0];
    l2->mac[1] = ((__u32 *)data)[1];
    l2->mac[2] = ((__u32 *)data)[2];
    l2->tag[0] = ((__u32 *)data)[3];
    l2->tag[1] = ((__u32 *)data)[4];
}

/* Puts the gateway in front, or swaps the MACs, as for every answer of our own; keeps the tags. The caller
 * has checked 24 bytes: the verifier does not carry a check at a variable offset over to fixed ones. */
L4_INLINE void l2_restore(void *data, const struct l4_l2 *l2, __u32 l2_bytes, __u16 ethertype_be, int gateway)
{
    __u32 *w = data;
    if (gateway) {
        w[0] = l4_gateway[0];
        w[1] = l4_gateway[1] | l2->mac[0] << 16;
    } else {
        w[0] = l2->mac[1] >> 16 | l2->mac[2] << 16;
        w[1] = l2->mac[2] >> 16 | l2->mac[0] << 16;
    }
    w[2] = l2->mac[0] >> 16 | l2->mac[1] << 16;
    if (l2_bytes == ETH_HLEN) {
        *(__u16 *)(data + 12) = ethertype_be;
        return;
    }
    w[3] = l2->tag[0];
    if (l2_bytes == ETH_HLEN + 4) {
        *(__u16 *)(data + 16) = ethertype_be;
    } else {
        w[4] = l2->tag[1];
        *(__u16 *)(data + 20) = ethertype_be;
    }
}

L4_INLINE __u16 fold(__u32 sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (__u16)~sum;
}

L4_INLINE void udp_header(__u32 *w, __u32 bytes, __u32 hash)
{
    w[0] = bpf_htons((__u16)(0xc000 | (hash & 0x3fff))) | l4_gue_port << 16;
    w[1] = bpf_htons((__u16)bytes);
}

L4_INLINE int encap4(struct xdp_md *ctx, const struct l4_packet *p, const struct l4_real *real, __u32 hash,
                     __u32 number, int gue)
{
    const int outer = sizeof(struct iphdr) + (gue ? sizeof(struct udphdr) : 0);
    struct l4_l2 l2;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + ETH_HLEN + sizeof(struct iphdr) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    l2_save(data, &l2);
    if (bpf_xdp_adjust_head(ctx, -outer))
        return l4_drop(L4_DROP_HEADROOM);
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    __u32 *w = l4_at(data, l4_l2(p));
    if ((void *)w + outer > end || data + 24 > end)
        return l4_drop(L4_DROP_TRUNCATED);
    l2_restore(data, &l2, l4_l2(p), bpf_htons(ETH_P_IP), l4_gateway_set);

    __u32 protocol = gue ? IPPROTO_UDP : p->family == L4_V6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
    __u32 source = gue ? l4_gue_source4 : l4_source4 | (hash & l4_source4_mask);
    __u32 first = 0x45 | (__u32)p->tos << 8, bytes = bpf_htons((__u16)(p->ip_bytes + outer));
    __u32 ttl = 64 | protocol << 8;
    __u32 hint = bpf_htons((__u16)number);
    __u32 sum = first + bytes + hint + ttl + (source & 0xffff) + (source >> 16) + real->addr_sum;
    w[0] = first | bytes << 16;
    w[1] = hint;
    w[2] = ttl | (__u32)fold(sum) << 16;
    w[3] = source;
    w[4] = real->addr[0];
    if (gue)
        udp_header(w + 5, p->ip_bytes + sizeof(struct udphdr), hash);
    return XDP_TX;
}

L4_INLINE int encap6(struct xdp_md *ctx, const struct l4_packet *p, const struct l4_real *real, __u32 hash,
                     __u32 number, int gue)
{
    const int outer = sizeof(struct ipv6hdr) + (gue ? sizeof(struct udphdr) : 0);
    struct l4_l2 l2;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + ETH_HLEN + sizeof(struct iphdr) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    l2_save(data, &l2);
    if (bpf_xdp_adjust_head(ctx, -outer))
        return l4_drop(L4_DROP_HEADROOM);
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    __u32 *w = l4_at(data, l4_l2(p));
    if ((void *)w + outer > end || data + 24 > end)
        return l4_drop(L4_DROP_TRUNCATED);
    l2_restore(data, &l2, l4_l2(p), bpf_htons(ETH_P_IPV6), l4_gateway_set);

    __u32 payload = p->ip_bytes + (gue ? sizeof(struct udphdr) : 0);
    __u32 protocol = gue ? IPPROTO_UDP : p->family == L4_V6 ? IPPROTO_IPV6 : IPPROTO_IPIP;
    w[0] = bpf_htonl(0x60000000 | (__u32)p->tos << 20 | number);
    w[1] = bpf_htons((__u16)payload) | protocol << 16 | 64u << 24;
    w[2] = gue ? l4_gue_source6[0] : l4_source6[0];
    w[3] = gue ? l4_gue_source6[1] : l4_source6[1];
    w[4] = gue ? l4_gue_source6[2] : l4_source6[2];
    w[5] = gue ? l4_gue_source6[3] : l4_source6_vary ? hash : l4_source6[3];
    w[6] = real->addr[0];
    w[7] = real->addr[1];
    w[8] = real->addr[2];
    w[9] = real->addr[3];
    if (gue)
        udp_header(w + 10, payload, hash);
    return XDP_TX;
}

L4_INLINE int l4_encapsulate(struct xdp_md *ctx, const struct l4_packet *p, const struct l4_real *real,
                             __u32 hash, __u32 number)
{
    if (l4_gue && real->flags & L4_REAL_GUE)
        return real->flags & L4_REAL_V6 ? encap6(ctx, p, real, hash, number, 1)
                                        : encap4(ctx, p, real, hash, number, 1);
    return real->flags & L4_REAL_V6 ? encap6(ctx, p, real, hash, number, 0)
                                    : encap4(ctx, p, real, hash, number, 0);
}

L4_INLINE void traffic_add(void *map, __u32 row, __u32 bytes)
{
    struct l4_traffic *t = bpf_map_lookup_elem(map, &row);
    if (t) {
        t->packets++;
        t->bytes += bytes;
    }
}

/* What the nodes know the hint of a pick by. */
L4_INLINE __u32 hint_number(__u32 pick)
{
    __u32 id = pick >> L4_HINT_SHIFT;
    if (likely(!id))
        return 0;
    struct l4_real *second = bpf_map_lookup_elem(&l4_reals, &id);
    return second ? second->number & 0xffff : 0;
}

/* Counts the packet for its VIP and its real and sends it. `pick`: as l4_pick() says. */
L4_INLINE int l4_deliver(struct xdp_md *ctx, __u32 vip_id, const struct l4_packet *p, __u32 pick, __u64 hash)
{
    __u32 real_id = pick & L4_PICK_REAL;
    struct l4_real *real = bpf_map_lookup_elem(&l4_reals, &real_id);
    if (!real || !(real->flags & L4_REAL_USABLE))
        return l4_drop(L4_DROP_NO_REAL);
    __u32 cpu = bpf_get_smp_processor_id();
    traffic_add(&l4_vip_count, cpu * L4_VIPS + vip_id, p->ip_bytes);
    traffic_add(&l4_real_count, cpu * L4_REALS + real_id, p->ip_bytes);
    return l4_encapsulate(ctx, p, real, (__u32)hash, hint_number(pick));
}

/* What slow.h found out about a packet, for the functions that end its way. */
struct l4_slow_packet {
    struct l4_packet p;
    __u64 hash;
    __u32 vip_id, real;
    __u32 bank;
    __u32 l4_at;        /* where the transport header begins in the frame */
    __u32 ip_header;    /* bytes of IP header and extensions */
    __u32 may_fragment; /* IPv4 without DF */
};

/* l4_deliver() for slow.h, once for all its callers. */
__noinline int l4_deliver_slow(struct xdp_md *ctx, const struct l4_slow_packet *s)
{
    return s ? l4_deliver(ctx, s->vip_id, &s->p, s->real, s->hash) : XDP_ABORTED;
}

#endif
