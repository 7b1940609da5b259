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

/* Walks the extension headers. Sets p->protocol and returns the offset of what follows them, 0 when there are
 * too many or they are cut short; `*fragment` when the packet is a piece of a larger one. Source: RFC 8200 4.
 */
L4_INLINE __u32 ip6_extensions(void *ip, void *end, struct l4_packet *p, int *fragment)
{
    __u32 offset = sizeof(struct ipv6hdr);
    __u8 next = p->protocol;
    for (int i = 0; i < EXTENSIONS; i++) {
        if (next != IPPROTO_HOPOPTS && next != IPPROTO_ROUTING && next != IPPROTO_DSTOPTS &&
            next != IPPROTO_FRAGMENT && next != IPPROTO_AH) {
            p->protocol = next;
            return offset;
        }
        __u8 *h = l4_at(ip, offset);
        if ((void *)(h + 8) > end)
            return 0;
        if (next == IPPROTO_FRAGMENT) {
            /* An atomic fragment (RFC 6946) is whole. */
            if (*(__u16 *)(h + 2) & bpf_htons(0xfff9)) {
                *fragment = 1;
                p->protocol = h[0];
                return offset;
            }
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

L4_INLINE int deliver_fragment(struct xdp_md *ctx, const struct l4_vip *address, struct l4_packet *p)
{
    __u32 serves = address->flags;
    if (!(p->protocol == IPPROTO_TCP && serves & L4_SERVES_TCP) &&
        !(p->protocol == IPPROTO_UDP && serves & L4_SERVES_UDP))
        return XDP_PASS;
    if (!(serves & L4_SERVES_FRAGMENTS))
        return l4_drop(L4_DROP_FRAGMENT);
    if (p->ip_bytes > l4_max_packet)
        return l4_drop(L4_DROP_TOO_BIG);
    struct l4_vip vip = *address;
    vip.flags = L4_VIP_HASH_SOURCE | L4_VIP_NO_TABLE;
    __u64 hash = l4_hash(&vip, p);
    l4_count(L4_FRAGMENT_STEERED);
    return l4_deliver_slow(ctx, &vip, p, l4_pick(&vip, p, hash, 0), hash);
}

L4_INLINE int deliver_icmp4(struct xdp_md *ctx, struct l4_vip_bank *bank, __u32 number, struct l4_packet *p,
                            void *l4)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct icmp_header *icmp = l4;
    if ((void *)(icmp + 1) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    switch (icmp->type) {
    case ICMP4_ECHO:
        return icmp4_echo(ctx, l4_at(data, l4_l2(p)), icmp, l4_l2(p));
    case ICMP4_UNREACHABLE:
    case ICMP4_TIME_EXCEEDED:
    case ICMP4_PARAMETER:
        return icmp_steer(ctx, bank, number, p, icmp + 1);
    }
    return XDP_PASS;
}

L4_INLINE int deliver_icmp6(struct xdp_md *ctx, struct l4_vip_bank *bank, __u32 number, struct l4_packet *p,
                            void *l4)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct icmp_header *icmp = l4;
    if ((void *)(icmp + 1) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    switch (icmp->type) {
    case ICMP6_ECHO:
        return icmp6_echo(ctx, l4_at(data, l4_l2(p)), icmp, l4_l2(p));
    case ICMP6_UNREACHABLE:
    case ICMP6_TOO_BIG:
    case ICMP6_TIME_EXCEEDED:
    case ICMP6_PARAMETER:
        return icmp_steer(ctx, bank, number, p, icmp + 1);
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

/* A TCP or UDP packet whose transport header begins at `l4`, `ip_header` bytes into the packet. */
L4_INLINE int deliver_transport(struct xdp_md *ctx, struct l4_control *control, struct l4_vip_bank *bank,
                                __u32 number, struct l4_packet *p, void *l4, __u32 ip_header,
                                int may_fragment)
{
    void *end = (void *)(long)ctx->data_end;
    __u32 header = p->protocol == IPPROTO_TCP ? sizeof(struct tcphdr) : sizeof(struct udphdr);
    if (l4 + sizeof(__u32) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    p->ports = *(__u32 *)l4;
    struct l4_vip *vip = l4_vip_slow(bank, number, p->dst, l4_vip_key(l4_dport(p), p->protocol, p->family));
    if (!vip)
        return XDP_PASS;
    if (l4 + header > end || p->ip_bytes < ip_header + header)
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
    __u64 hash = l4_hash(vip, p);
    __u32 real = 0;
    if (vip->flags & L4_VIP_QUIC && p->protocol == IPPROTO_UDP) {
        real = l4_quic_real(l4 + sizeof(struct udphdr), end);
        if (real && l4_real_usable(real))
            l4_count(L4_QUIC_BY_ID);
        else
            real = 0;
        if (real && vip->flags & L4_VIP_TRACK)
            l4_flow_set_real(p, real);
    }
    if (!real)
        real = l4_pick(vip, p, hash, 1);
    if (control->sample_every)
        sample(ctx, control, vip, real);
    if (p->ip_bytes > l4_max_packet)
        return too_big(ctx, p, may_fragment);
    return l4_deliver_slow(ctx, vip, p, real, hash);
}

L4_INLINE int slow4(struct xdp_md *ctx, struct l4_control *control, struct l4_vip_bank *bank, __u32 number,
                    struct l4_packet *p)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct iphdr *ip = l4_at(data, l4_l2(p));
    if ((void *)(ip + 1) > end)
        return XDP_PASS;
    p->src[0] = ip->saddr;
    p->dst[0] = ip->daddr;
    p->family = L4_V4;
    p->protocol = ip->protocol;
    p->tos = ip->tos;
    p->ip_bytes = bpf_ntohs(ip->tot_len);
    struct l4_vip *address = l4_vip_slow(bank, number, p->dst, l4_vip_key(0, 0, L4_V4));
    if (!address)
        return XDP_PASS;
    l4_count(L4_SLOW_PATH);
    __u32 header = ip->ihl * 4u;
    if (ip->version != 4 || header < sizeof(*ip) || p->ip_bytes < header)
        return l4_drop(L4_DROP_IP_HEADER);
    if (p->ip_bytes > l4_frame_bytes(data, end) - l4_l2(p))
        return l4_drop(L4_DROP_TRUNCATED);
    if (ip->frag_off & bpf_htons(0x3fff))
        return deliver_fragment(ctx, address, p);
    void *l4 = l4_at(ip, header & 60);
    if (p->protocol == IPPROTO_ICMP)
        return deliver_icmp4(ctx, bank, number, p, l4);
    if (p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP)
        return XDP_PASS;
    return deliver_transport(ctx, control, bank, number, p, l4, header, !(ip->frag_off & bpf_htons(0x4000)));
}

L4_INLINE int slow6(struct xdp_md *ctx, struct l4_control *control, struct l4_vip_bank *bank, __u32 number,
                    struct l4_packet *p)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct ipv6hdr *ip = l4_at(data, l4_l2(p));
    int fragment = 0;
    if ((void *)(ip + 1) > end)
        return XDP_PASS;
    p->src[0] = ((__u64 *)&ip->saddr)[0];
    p->src[1] = ((__u64 *)&ip->saddr)[1];
    p->dst[0] = ((__u64 *)&ip->daddr)[0];
    p->dst[1] = ((__u64 *)&ip->daddr)[1];
    p->family = L4_V6;
    p->protocol = ip->nexthdr;
    p->tos = (__u8)(bpf_ntohl(*(__u32 *)ip) >> 20);
    p->ip_bytes = bpf_ntohs(ip->payload_len) + sizeof(*ip);
    struct l4_vip *address = l4_vip_slow(bank, number, p->dst, l4_vip_key(0, 0, L4_V6));
    if (!address)
        return XDP_PASS;
    l4_count(L4_SLOW_PATH);
    if (ip->version != 6)
        return l4_drop(L4_DROP_IP_HEADER);
    if (p->ip_bytes > l4_frame_bytes(data, end) - l4_l2(p))
        return l4_drop(L4_DROP_TRUNCATED);
    __u32 offset = ip6_extensions(ip, end, p, &fragment);
    if (!offset)
        return l4_drop(L4_DROP_EXTENSIONS);
    if (fragment)
        return deliver_fragment(ctx, address, p);
    void *l4 = l4_at(ip, offset);
    if (p->protocol == IPPROTO_ICMPV6)
        return deliver_icmp6(ctx, bank, number, p, l4);
    if (p->protocol != IPPROTO_TCP && p->protocol != IPPROTO_UDP)
        return XDP_PASS;
    return deliver_transport(ctx, control, bank, number, p, l4, offset, 0);
}

__noinline int l4_slow(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct l4_packet p = {};
    __u32 number;
    struct l4_control *control = l4_get_control();
    struct l4_vip_bank *bank = control ? l4_get_bank(control, &number) : NULL;
    if (!bank)
        return XDP_PASS;
    __u16 type = l2_parse(data, end, &p.l2_bytes);
    if (type == bpf_htons(ETH_P_IP))
        return slow4(ctx, control, bank, number, &p);
    if (type == bpf_htons(ETH_P_IPV6))
        return slow6(ctx, control, bank, number, &p);
    return XDP_PASS;
}

#endif
