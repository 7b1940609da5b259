/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the balancer needs to know about a packet, and the short parse of the packets that make up nearly all
 * traffic: untagged, no options, no fragment, whole. Anything else is left to slow.h, which starts over. */
#ifndef ISOBAR_L4_BPF_PACKET_H
#define ISOBAR_L4_BPF_PACKET_H

#include "l4/bpf/maps.h"
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_ACK = 16 };

struct l4_packet {
    __u64 src[2], dst[2]; /* as in struct l4_vip */
    __u32 ports;          /* as on the wire, source first */
    __u32 ip_bytes;       /* by the IP header: padding behind it does not count */
    __u32 l2_bytes;       /* 14, 18 or 22 */
    __u8 family, protocol, tos, tcp_flags;
};

L4_INLINE __u16 l4_dport(const struct l4_packet *p)
{
    return (__u16)(p->ports >> 16);
}

/* The verifier needs a bound that it can see; the value is 14, 18 or 22. */
L4_INLINE __u32 l4_l2(const struct l4_packet *p)
{
    return p->l2_bytes & 31;
}

/* `data` + `offset` as one pointer: clang 14 would add again behind the bounds check, and Linux 6.18 then
 * does not know that the two sums are the same. */
L4_INLINE void *l4_at(void *data, __u32 offset)
{
    void *at = data + offset;
    asm volatile("" : "+r"(at));
    return at;
}

enum { L4_AT_MASK = 0xfff }; /* a bound for offsets from the frame's start that the verifier can see */

L4_INLINE int l4_tcp_flags_bad(__u8 flags)
{
    return (flags & TCP_SYN) && (flags & (TCP_ACK | TCP_RST | TCP_FIN));
}

L4_INLINE __u32 l4_frame_bytes(void *data, void *end)
{
    __u64 bytes = end - data;
    /* clang 14 turns the subtraction into 32-bit arithmetic on pointers, which Linux 6.18 prohibits. */
    asm volatile("" : "+r"(bytes));
    return (__u32)bytes;
}

/* False: not simple. The last three checks read the header only after its bounds were checked. */
L4_INLINE int l4_parse_transport(void *l4, void *end, struct l4_packet *p, __u32 ip_header)
{
    if (p->protocol == IPPROTO_TCP) {
        struct tcphdr *tcp = l4;
        if ((void *)(tcp + 1) > end || p->ip_bytes < ip_header + sizeof(*tcp))
            return 0;
        p->ports = *(__u32 *)tcp;
        p->tcp_flags = ((__u8 *)tcp)[13];
        return tcp->doff >= 5 && !l4_tcp_flags_bad(p->tcp_flags);
    }
    if (p->protocol != IPPROTO_UDP || l4 + sizeof(struct udphdr) > end ||
        p->ip_bytes < ip_header + sizeof(struct udphdr))
        return 0;
    p->ports = *(__u32 *)l4;
    p->tcp_flags = 0;
    return 1;
}

L4_INLINE int l4_parse_simple4(void *data, void *end, struct l4_packet *p)
{
    struct iphdr *ip = data + ETH_HLEN;
    if ((void *)(ip + 1) > end)
        return 0;
    if (*(__u8 *)ip != 0x45 || ip->frag_off & bpf_htons(0x3fff))
        return 0;
    p->src[0] = ip->saddr;
    p->src[1] = 0;
    p->dst[0] = ip->daddr;
    p->dst[1] = 0;
    p->protocol = ip->protocol;
    p->tos = ip->tos;
    p->ip_bytes = bpf_ntohs(ip->tot_len);
    p->family = L4_V4;
    p->l2_bytes = ETH_HLEN;
    if (p->ip_bytes > l4_frame_bytes(data, end) - ETH_HLEN || p->ip_bytes > l4_max_packet)
        return 0;
    return l4_parse_transport(ip + 1, end, p, sizeof(*ip));
}

L4_INLINE int l4_parse_simple6(void *data, void *end, struct l4_packet *p)
{
    struct ipv6hdr *ip = data + ETH_HLEN;
    if ((void *)(ip + 1) > end)
        return 0;
    p->src[0] = ((__u64 *)&ip->saddr)[0];
    p->src[1] = ((__u64 *)&ip->saddr)[1];
    p->dst[0] = ((__u64 *)&ip->daddr)[0];
    p->dst[1] = ((__u64 *)&ip->daddr)[1];
    p->protocol = ip->nexthdr;
    p->tos = (__u8)(bpf_ntohl(*(__u32 *)ip) >> 20);
    p->ip_bytes = bpf_ntohs(ip->payload_len) + sizeof(*ip);
    p->family = L4_V6;
    p->l2_bytes = ETH_HLEN;
    if (p->ip_bytes > l4_frame_bytes(data, end) - ETH_HLEN || p->ip_bytes > l4_max_packet)
        return 0;
    return l4_parse_transport(ip + 1, end, p, sizeof(*ip));
}

#endif
