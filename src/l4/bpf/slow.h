/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Everything that the short parse declined: VLAN tags, IP options, extension headers, fragments, ICMP,
 * packets too large, malformed ones, and VIPs with features that most do not use. It starts from the frame's
 * first byte. What is not addressed to a VIP passes untouched whatever it looks like; what is, ends in
 * exactly one counter. */
#ifndef ISOBAR_L4_BPF_SLOW_H
#define ISOBAR_L4_BPF_SLOW_H

#include "l4/bpf/icmp.h"
#include "l4/bpf/quic.h"

enum {
    EXTENSIONS = 8,     /* IPv6 extension headers followed */
    SAMPLE_BYTES = 256, /* of each sampled packet */
    VLAN_8021Q = 0x8100,
    VLAN_8021AD = 0x88a8
};

L4_INLINE int is_vlan(__u16 ethertype_be)
{
    return ethertype_be == bpf_htons(VLAN_8021Q) || ethertype_be == bpf_htons(VLAN_8021AD);
}

/* The ethertype behind up to two tags, and where the IP header begins; 0: pass. */
L4_INLINE __u16 l2_parse(void *data, void *end, __u32 *l2_bytes)
{
    if (data + ETH_HLEN + 8 > end)
        return 0;
    __u16 type = *(__u16 *)(data + 12);
    *l2_bytes = ETH_HLEN;
    if (is_vlan(type)) {
        type = *(__u16 *)(data + 16);
        *l2_bytes = ETH_HLEN + 4;
        if (is_vlan(type)) {
            type = *(__u16 *)(data + 20);
            *l2_bytes = ETH_HLEN + 8;
            if (is_vlan(type))
                l4_count(L4_VLAN_DEEP);
        }
    }
    return type;
}

enum { WALK_FRAGMENT = 1 << 24 };

/* Walks the extension headers behind the IPv6 header at `ip_at`, of which `next` is the first. 0: too many,
 * or cut short; otherwise the bytes of header and extensions, the protocol behind them << 16, and
 * WALK_FRAGMENT when the packet is a piece of a larger one. A global function, so that its paths do not
 * multiply the callers'. Source: RFC 8200 4. */
__noinline int l4_ip6_walk(struct xdp_md *ctx, __u32 ip_at, __u32 next)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    __u32 offset = sizeof(struct ipv6hdr);
    for (int i = 0; i < EXTENSIONS; i++) {
        if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
            next != IPPROTO_FRAGMENT && next != IPPROTO_AH)
            return (int)(offset | (next & 0xff) << 16);
        __u8 *h = l4_at(data, (ip_at + offset) & L4_AT_MASK);
        if ((void *)(h + 8) > end)
            return 0;
        if (next == IPPROTO_FRAGMENT) {
            /* An atomic fragment (RFC 6946) is whole. */
            if (*(__u16 *)(h + 2) & bpf_htons(0xfff9))
                return (int)(offset | (__u32)h[0] << 16 | WALK_FRAGMENT);
            offset += 8;
        } else {
            offset += next == IPPROTO_AH ? (h[1] + 2u) * 4 : (h[1] + 1u) * 8;
        }
        next = h[0];
        if (offset > 2048)
            return 0;
    }
    return 0;
}

L4_INLINE int deliver_fragment(struct xdp_md *ctx, const struct l4_vip *address, struct l4_slow_packet *s)
{
    struct l4_packet *p = &s->p;
    __u32 serves = address->flags;
    if (!(p->protocol == IPPROTO_TCP && serves & L4_SERVES_TCP) &&
        !(p->protocol == IPPROTO_UDP && serves & L4_SERVES_UDP))
        return XDP_PASS;
    if (!(serves & L4_SERVES_FRAGMENTS))
        return l4_drop(L4_DROP_FRAGMENT);
    if (p->ip_bytes > l4_max_packet)
        return l4_drop(L4_DROP_TOO_BIG);
    /* As a whole packet of a VIP with L4_VIP_HASH_SOURCE would go, but for the flow table, which needs ports.
     */
    s->hash = l4_ring_hash(l4_ring_seed, p->src[0], p->src[1], 0, address->salt);
    __u32 slot;
    s->real = l4_ring_entry(address->ring, s->hash, &slot) & L4_SLOT_REAL;
    s->vip_id = address->id;
    l4_count(L4_FRAGMENT_STEERED);
    return l4_deliver_slow(ctx, s);
}

L4_INLINE int deliver_icmp4(struct xdp_md *ctx, struct l4_slow_packet *s)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct icmp_header *icmp = l4_at(data, s->l4_at & L4_AT_MASK);
    if ((void *)(icmp + 1) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    switch (icmp->type) {
    case ICMP4_ECHO:
        return icmp4_echo(ctx, l4_at(data, l4_l2(&s->p)), icmp, l4_l2(&s->p));
    case ICMP4_UNREACHABLE:
    case ICMP4_TIME_EXCEEDED:
    case ICMP4_PARAMETER:
        return l4_icmp_steer(ctx, s);
    }
    return XDP_PASS;
}

L4_INLINE int deliver_icmp6(struct xdp_md *ctx, struct l4_slow_packet *s)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct icmp_header *icmp = l4_at(data, s->l4_at & L4_AT_MASK);
    if ((void *)(icmp + 1) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    switch (icmp->type) {
    case ICMP6_ECHO:
        return icmp6_echo(ctx, l4_at(data, l4_l2(&s->p)), icmp, l4_l2(&s->p));
    case ICMP6_UNREACHABLE:
    case ICMP6_TOO_BIG:
    case ICMP6_TIME_EXCEEDED:
    case ICMP6_PARAMETER:
        return l4_icmp_steer(ctx, s);
    }
    return XDP_PASS;
}

L4_INLINE void sample(struct xdp_md *ctx, struct l4_control *control, const struct l4_vip *vip, __u32 real)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct l4_cpu *mine = bpf_map_lookup_elem(&l4_cpus, &cpu);
    if (!mine || ++mine->sample_count < control->sample_every)
        return;
    mine->sample_count = 0;
    __u64 frame = l4_frame_bytes((void *)(long)ctx->data, (void *)(long)ctx->data_end),
          copy = frame < SAMPLE_BYTES ? frame : SAMPLE_BYTES;
    struct l4_sample head = {.frame_bytes = (__u32)frame, .real = (__u16)real, .vip = vip->id};
    if (!bpf_perf_event_output(ctx, &l4_samples, BPF_F_CURRENT_CPU | copy << 32, &head, sizeof(head)))
        mine->events[L4_SAMPLED]++;
}

L4_INLINE int too_big(struct xdp_md *ctx, const struct l4_packet *p, int may_fragment)
{
    if (!l4_reply_too_big || may_fragment || !reply_in_budget())
        return l4_drop(L4_DROP_TOO_BIG);
    return p->family == L4_V4 ? l4_icmp4_too_big(ctx, l4_l2(p)) : l4_icmp6_too_big(ctx, l4_l2(p));
}

L4_INLINE __u32 real_by_quic(const struct l4_packet *p, const struct l4_vip *vip, void *quic, void *end)
{
    __u32 real = l4_quic_real(quic, end);
    if (!real || !l4_real_usable(real))
        return 0;
    l4_count(L4_QUIC_BY_ID);
    if (vip->flags & L4_VIP_TRACK)
        l4_flow_set_real(p, real);
    return real;
}

/* A TCP or UDP packet. */
__noinline int l4_slow_transport(struct xdp_md *ctx, struct l4_slow_packet *s)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct l4_control *control = l4_get_control();
    if (!s || !control)
        return XDP_ABORTED;
    __u32 number = s->bank;
    struct l4_packet *p = &s->p;
    struct l4_vip_bank *bank = bpf_map_lookup_elem(&l4_vips, &number);
    void *l4 = l4_at(data, s->l4_at & L4_AT_MASK);
    __u32 header = p->protocol == IPPROTO_TCP ? sizeof(struct tcphdr) : sizeof(struct udphdr);
    if (!bank || l4 + sizeof(struct udphdr) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    p->ports = *(__u32 *)l4;
    struct l4_vip *vip = l4_vip_slow(bank, number, p->dst, l4_vip_key(l4_dport(p), p->protocol, p->family));
    if (!vip)
        return XDP_PASS;
    if (p->ip_bytes < s->ip_header + header)
        return l4_drop(L4_DROP_TRUNCATED);
    if (p->protocol == IPPROTO_TCP) {
        struct tcphdr *tcp = l4;
        if ((void *)(tcp + 1) > end)
            return l4_drop(L4_DROP_TRUNCATED);
        p->tcp_flags = ((__u8 *)tcp)[13];
        if (tcp->doff < 5)
            return l4_drop(L4_DROP_TCP_HEADER);
        if (l4_tcp_flags_bad(p->tcp_flags))
            return l4_drop(L4_DROP_TCP_FLAGS);
    }
    s->hash = l4_hash(vip, p);
    s->vip_id = vip->id;
    s->real = 0;
    if (vip->flags & L4_VIP_QUIC && p->protocol == IPPROTO_UDP)
        s->real = real_by_quic(p, vip, l4 + sizeof(struct udphdr), end);
    if (!s->real)
        s->real = l4_pick(vip, p, s->hash, 1);
    if (control->sample_every)
        sample(ctx, control, vip, s->real);
    if (p->ip_bytes > l4_max_packet)
        return too_big(ctx, p, s->may_fragment);
    return l4_deliver_slow(ctx, s);
}

L4_INLINE int slow4(struct xdp_md *ctx, struct l4_vip_bank *bank, struct l4_slow_packet *s)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct l4_packet *p = &s->p;
    struct iphdr *ip = l4_at(data, l4_l2(p));
    if ((void *)(ip + 1) > end)
        return XDP_PASS;
    p->src[0] = ip->saddr;
    p->dst[0] = ip->daddr;
    p->family = L4_V4;
    p->protocol = ip->protocol;
    p->tos = ip->tos;
    p->ip_bytes = bpf_ntohs(ip->tot_len);
    struct l4_vip *address = l4_vip_slow(bank, s->bank, p->dst, l4_vip_key(0, 0, L4_V4));
    if (!address)
        return XDP_PASS;
    l4_count(L4_SLOW_PATH);
    __u32 header = ip->ihl * 4u;
    if (ip->version != 4 || header < sizeof(*ip) || p->ip_bytes < header)
        return l4_drop(L4_DROP_IP_HEADER);
    if (p->ip_bytes > l4_frame_bytes(data, end) - l4_l2(p))
        return l4_drop(L4_DROP_TRUNCATED);
    if (ip->frag_off & bpf_htons(0x3fff))
        return deliver_fragment(ctx, address, s);
    s->ip_header = header;
    s->l4_at = l4_l2(p) + header;
    s->may_fragment = !(ip->frag_off & bpf_htons(0x4000));
    if (p->protocol == IPPROTO_ICMP)
        return deliver_icmp4(ctx, s);
    if (p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP)
        return XDP_PASS;
    return l4_slow_transport(ctx, s);
}

L4_INLINE int slow6(struct xdp_md *ctx, struct l4_vip_bank *bank, struct l4_slow_packet *s)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct l4_packet *p = &s->p;
    struct ipv6hdr *ip = l4_at(data, l4_l2(p));
    if ((void *)(ip + 1) > end)
        return XDP_PASS;
    p->src[0] = ((__u64 *)&ip->saddr)[0];
    p->src[1] = ((__u64 *)&ip->saddr)[1];
    p->dst[0] = ((__u64 *)&ip->daddr)[0];
    p->dst[1] = ((__u64 *)&ip->daddr)[1];
    p->family = L4_V6;
    p->tos = (__u8)(bpf_ntohl(*(__u32 *)ip) >> 20);
    p->ip_bytes = bpf_ntohs(ip->payload_len) + sizeof(*ip);
    struct l4_vip *address = l4_vip_slow(bank, s->bank, p->dst, l4_vip_key(0, 0, L4_V6));
    if (!address)
        return XDP_PASS;
    l4_count(L4_SLOW_PATH);
    if (ip->version != 6)
        return l4_drop(L4_DROP_IP_HEADER);
    if (p->ip_bytes > l4_frame_bytes(data, end) - l4_l2(p))
        return l4_drop(L4_DROP_TRUNCATED);
    __u32 walked = (__u32)l4_ip6_walk(ctx, l4_l2(p), ip->nexthdr);
    if (!walked)
        return l4_drop(L4_DROP_EXTENSIONS);
    p->protocol = walked >> 16 & 0xff;
    if (walked & WALK_FRAGMENT)
        return deliver_fragment(ctx, address, s);
    s->ip_header = walked & 0xffff;
    s->l4_at = l4_l2(p) + s->ip_header;
    if (p->protocol == IPPROTO_ICMPV6)
        return deliver_icmp6(ctx, s);
    if (p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP)
        return XDP_PASS;
    return l4_slow_transport(ctx, s);
}

__noinline int l4_slow(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct l4_slow_packet s = {};
    struct l4_control *control = l4_get_control();
    struct l4_vip_bank *bank = control ? l4_get_bank(control, &s.bank) : NULL;
    if (!bank)
        return XDP_PASS;
    __u16 type = l2_parse(data, end, &s.p.l2_bytes);
    if (type == bpf_htons(ETH_P_IP))
        return slow4(ctx, bank, &s);
    if (type == bpf_htons(ETH_P_IPV6))
        return slow6(ctx, bank, &s);
    return XDP_PASS;
}

#endif
