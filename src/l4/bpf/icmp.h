/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* ICMP for VIPs: echo answered here, errors steered to the real that owns the quoted flow (I4), and our own
 * "too big" when a client's packet does not fit the tunnel. Errors may quote as little as the IP header and 8
 * bytes; only the ports are needed. Everything here runs after the address was found to be a VIP. */
#ifndef ISOBAR_L4_BPF_ICMP_H
#define ISOBAR_L4_BPF_ICMP_H

#include "l4/bpf/encap.h"
#include "l4/bpf/flow.h"
#include "l4/bpf/vip.h"

/* Both versions begin alike. linux/icmp.h pulls in libc headers that a BPF target does not have. */
struct icmp_header {
    __u8 type, code;
    __u16 checksum;
    __u32 rest; /* echo: id and sequence; too big: the MTU */
};
enum {
    ICMP4_ECHO_REPLY = 0,
    ICMP4_UNREACHABLE = 3,
    ICMP4_ECHO = 8,
    ICMP4_TIME_EXCEEDED = 11,
    ICMP4_PARAMETER = 12,
    ICMP4_CODE_FRAG_NEEDED = 4,
    ICMP6_UNREACHABLE = 1,
    ICMP6_TOO_BIG = 2,
    ICMP6_TIME_EXCEEDED = 3,
    ICMP6_PARAMETER = 4,
    ICMP6_ECHO = 128,
    ICMP6_ECHO_REPLY = 129
};

enum {
    QUOTE4_BYTES = 84, /* of the offending packet in our own errors: whole answer 112 bytes, well under 576 */
    QUOTE6_BYTES = 248
};

L4_INLINE __u32 sum_bytes(const void *from, __u32 bytes, __u32 seed)
{
    return (__u32)bpf_csum_diff(NULL, 0, (__be32 *)from, bytes, seed);
}

L4_INLINE void l2_swap(void *data, __u32 l2_bytes, __u16 ethertype_be)
{
    struct l4_l2 l2;
    l2_save(data, &l2);
    l2_restore(data, &l2, l2_bytes, ethertype_be, 0);
}

L4_INLINE int icmp4_echo(struct xdp_md *ctx, struct iphdr *ip, struct icmp_header *icmp, __u32 l2_bytes)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + 24 > end || (void *)(ip + 1) > end || (void *)(icmp + 1) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    __u32 saddr = ip->saddr;
    ip->saddr = ip->daddr;
    ip->daddr = saddr;
    /* The TTL starts anew; the sum of the header changes by the TTL alone. */
    __u32 sum = (__u16)~ip->check + bpf_htons(64 << 8) + (__u16)~bpf_htons((__u16)(ip->ttl << 8));
    ip->ttl = 64;
    ip->check = fold(sum);
    icmp->type = ICMP4_ECHO_REPLY;
    /* The type alone changes, from 8 to 0. By this form of the sum an answer of nothing but zeros gets
     * 0xffff, which receivers take, not 0, which they do not (RFC 1624 3). */
    sum = icmp->checksum + bpf_htons(ICMP4_ECHO << 8);
    icmp->checksum = (__u16)((sum & 0xffff) + (sum >> 16));
    l2_swap(data, l2_bytes, bpf_htons(ETH_P_IP));
    l4_count(L4_ECHO_REPLY);
    return XDP_TX;
}

L4_INLINE int icmp6_echo(struct xdp_md *ctx, struct ipv6hdr *ip, struct icmp_header *icmp, __u32 l2_bytes)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + 24 > end || (void *)(ip + 1) > end || (void *)(icmp + 1) > end)
        return l4_drop(L4_DROP_TRUNCATED);
    struct in6_addr saddr = ip->saddr;
    ip->saddr = ip->daddr;
    ip->daddr = saddr;
    ip->hop_limit = 64;
    icmp->type = ICMP6_ECHO_REPLY;
    icmp->checksum =
        fold((__u16)~icmp->checksum + bpf_htons(ICMP6_ECHO_REPLY << 8) + (__u16)~bpf_htons(ICMP6_ECHO << 8));
    l2_swap(data, l2_bytes, bpf_htons(ETH_P_IPV6));
    l4_count(L4_ECHO_REPLY);
    return XDP_TX;
}

/* Reads the quoted packet into `q`, turned round so that it looks like the client's. False: not ours. */
L4_INLINE int icmp_quote4(void *quote, void *end, struct l4_packet *q)
{
    struct iphdr *ip = quote;
    if ((void *)(ip + 1) > end || ip->version != 4 || ip->ihl < 5)
        return 0;
    q->src[0] = ip->daddr;
    q->src[1] = 0;
    q->dst[0] = ip->saddr;
    q->dst[1] = 0;
    q->protocol = ip->protocol;
    q->family = L4_V4;
    if (ip->frag_off & bpf_htons(0x1fff))
        return 0;
    __u32 header = ip->ihl * 4u;
    __u32 *ports = l4_at(quote, header & 60);
    if ((void *)(ports + 1) > end)
        return 0;
    q->ports = *ports >> 16 | *ports << 16;
    return q->protocol == IPPROTO_TCP || q->protocol == IPPROTO_UDP;
}

L4_INLINE int icmp_quote6(void *quote, void *end, struct l4_packet *q)
{
    struct ipv6hdr *ip = quote;
    if ((void *)(ip + 1) + sizeof(__u32) > end || ip->version != 6)
        return 0;
    q->src[0] = ((__u64 *)&ip->daddr)[0];
    q->src[1] = ((__u64 *)&ip->daddr)[1];
    q->dst[0] = ((__u64 *)&ip->saddr)[0];
    q->dst[1] = ((__u64 *)&ip->saddr)[1];
    q->protocol = ip->nexthdr;
    q->family = L4_V6;
    __u32 ports = *(__u32 *)(ip + 1);
    q->ports = ports >> 16 | ports << 16;
    return q->protocol == IPPROTO_TCP || q->protocol == IPPROTO_UDP;
}

/* Sends the whole error to the owner of the flow it quotes; XDP_PASS when it quotes none of ours. */
__noinline int l4_icmp_steer(struct xdp_md *ctx, struct l4_slow_packet *s)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct l4_packet q = {};
    if (!s)
        return XDP_ABORTED;
    __u32 number = s->bank;
    struct l4_vip_bank *bank = bpf_map_lookup_elem(&l4_vips, &number);
    void *quote = l4_at(data, (s->l4_at & L4_AT_MASK) + sizeof(struct icmp_header));
    if (!bank)
        return XDP_PASS;
    int ours = s->p.family == L4_V4 ? icmp_quote4(quote, end, &q) : icmp_quote6(quote, end, &q);
    if (!ours || q.dst[0] != s->p.dst[0] || q.dst[1] != s->p.dst[1])
        return XDP_PASS;
    struct l4_vip *vip = l4_vip_slow(bank, number, q.dst, l4_vip_key(l4_dport(&q), q.protocol, q.family));
    if (!vip)
        return XDP_PASS;
    if (s->p.ip_bytes > l4_max_packet)
        return l4_drop(L4_DROP_TOO_BIG);
    s->hash = l4_hash(vip, &q);
    s->real = l4_pick(vip, &q, s->hash, 0);
    s->vip_id = vip->id;
    l4_count(L4_ICMP_STEERED);
    return l4_deliver_slow(ctx, s);
}

L4_INLINE int reply_in_budget(void)
{
    __u32 cpu = bpf_get_smp_processor_id(), now = l4_now();
    struct l4_cpu *mine = bpf_map_lookup_elem(&l4_cpus, &cpu);
    if (!mine)
        return 0;
    if (mine->reply_tick != now) {
        mine->reply_tick = now;
        mine->replies = 0;
    }
    return mine->replies++ < l4_max_replies;
}

/* Turns the frame into an ICMP error from the VIP to the client. The packet is longer than what is quoted, so
 * the tail goes first. Source: RFC 1191, RFC 4443 3.2. */
__noinline int l4_icmp4_too_big(struct xdp_md *ctx, __u32 l2_bytes)
{
    const int extra = sizeof(struct iphdr) + sizeof(struct icmp_header);
    struct l4_l2 l2;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    l2_bytes &= 31; /* a bound for the verifier */
    if (data + 24 + QUOTE4_BYTES > end)
        return l4_drop(L4_DROP_TOO_BIG);
    l2_save(data, &l2);
    int tail = (int)(l2_bytes + QUOTE4_BYTES) - (int)l4_frame_bytes(data, end);
    if (bpf_xdp_adjust_tail(ctx, tail) || bpf_xdp_adjust_head(ctx, -extra))
        return l4_drop(L4_DROP_HEADROOM);
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    struct iphdr *ip = l4_at(data, l2_bytes), *quoted = (void *)ip + extra;
    if ((void *)quoted + QUOTE4_BYTES > end || data + 24 > end)
        return l4_drop(L4_DROP_TRUNCATED);
    l2_restore(data, &l2, l2_bytes, bpf_htons(ETH_P_IP), 0);
    struct icmp_header *icmp = (void *)(ip + 1);
    *ip = (struct iphdr){.version = 4,
                         .ihl = 5,
                         .tot_len = bpf_htons(extra + QUOTE4_BYTES),
                         .ttl = 64,
                         .protocol = IPPROTO_ICMP,
                         .saddr = quoted->daddr,
                         .daddr = quoted->saddr};
    ip->check = fold(sum_bytes(ip, sizeof(*ip), 0));
    *icmp = (struct icmp_header){.type = ICMP4_UNREACHABLE, .code = ICMP4_CODE_FRAG_NEEDED};
    icmp->rest = bpf_htonl(l4_max_packet);
    icmp->checksum = fold(sum_bytes(icmp, sizeof(*icmp) + QUOTE4_BYTES, 0));
    l4_count(L4_TOO_BIG_REPLY);
    return XDP_TX;
}

__noinline int l4_icmp6_too_big(struct xdp_md *ctx, __u32 l2_bytes)
{
    const int extra = sizeof(struct ipv6hdr) + sizeof(struct icmp_header);
    struct l4_l2 l2;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    l2_bytes &= 31; /* a bound for the verifier */
    if (data + 24 + QUOTE6_BYTES > end)
        return l4_drop(L4_DROP_TOO_BIG);
    l2_save(data, &l2);
    int tail = (int)(l2_bytes + QUOTE6_BYTES) - (int)l4_frame_bytes(data, end);
    if (bpf_xdp_adjust_tail(ctx, tail) || bpf_xdp_adjust_head(ctx, -extra))
        return l4_drop(L4_DROP_HEADROOM);
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    struct ipv6hdr *ip = l4_at(data, l2_bytes), *quoted = (void *)ip + extra;
    if ((void *)quoted + QUOTE6_BYTES > end || data + 24 > end)
        return l4_drop(L4_DROP_TRUNCATED);
    l2_restore(data, &l2, l2_bytes, bpf_htons(ETH_P_IPV6), 0);
    struct icmp_header *icmp = (void *)(ip + 1);
    ip->version = 6;
    ip->priority = 0;
    ip->flow_lbl[0] = ip->flow_lbl[1] = ip->flow_lbl[2] = 0;
    ip->payload_len = bpf_htons(sizeof(*icmp) + QUOTE6_BYTES);
    ip->nexthdr = IPPROTO_ICMPV6;
    ip->hop_limit = 64;
    ip->saddr = quoted->daddr;
    ip->daddr = quoted->saddr;
    icmp->type = ICMP6_TOO_BIG;
    icmp->code = 0;
    icmp->checksum = 0;
    icmp->rest = bpf_htonl(l4_max_packet);
    __u32 sum = sum_bytes(icmp, sizeof(*icmp) + QUOTE6_BYTES, 0);
    sum = sum_bytes(&ip->saddr, 32, sum);
    __u32 pseudo[2] = {bpf_htonl(sizeof(*icmp) + QUOTE6_BYTES), bpf_htonl(IPPROTO_ICMPV6)};
    icmp->checksum = fold(sum_bytes(pseudo, sizeof(pseudo), sum));
    l4_count(L4_TOO_BIG_REPLY);
    return XDP_TX;
}

#endif
