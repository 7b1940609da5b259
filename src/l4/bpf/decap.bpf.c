/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* For the machines behind the packet tier: takes the outer header off packets for VIPs that this machine
 * answers for and leaves the rest to the kernel, which then sees what the client sent (I3). IP-in-IP of both
 * families and GUE variant 1. A tunnel packet for anything but those VIPs stays as it is, so nobody can reach
 * another address of this machine through it. Congestion marks are combined as RFC 6040 says. */
#include "l4/bpf/count.h"
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <linux/udp.h>

const volatile __u32 l4_gue_port = 0; /* network order; 0: no GUE */

/* The VIPs of this machine. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, L4_VIPS);
    __type(key, struct l4_local);
    __type(value, __u32);
} l4_local SEC(".maps");

/* The other nodes by number, for second chances. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, L4_REALS);
    __type(key, __u32);
    __type(value, struct l4_hop);
} l4_hops SEC(".maps");

enum { ECN = 3, ECN_CE = 3, TCP_SYN = 2 };

/* Bytes of the tunnel header at `ip`; 0: no tunnel. `*ecn` is the outer mark. */
L4_INLINE __u32 tunnel_bytes(void *ip, void *end, __u16 type, __u8 *ecn, int *broken)
{
    __u32 header;
    __u8 protocol;
    if (type == bpf_htons(ETH_P_IP)) {
        struct iphdr *outer = ip;
        if ((void *)(outer + 1) > end || outer->ihl != 5)
            return 0;
        protocol = outer->protocol;
        header = sizeof(*outer);
        *ecn = outer->tos & ECN;
        if (outer->frag_off & bpf_htons(0x3fff) && (protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6))
            *broken = 1;
    } else if (type == bpf_htons(ETH_P_IPV6)) {
        struct ipv6hdr *outer = ip;
        if ((void *)(outer + 1) > end)
            return 0;
        protocol = outer->nexthdr;
        header = sizeof(*outer);
        *ecn = outer->flow_lbl[0] >> 4 & ECN;
    } else {
        return 0;
    }
    if (protocol == IPPROTO_IPIP || protocol == IPPROTO_IPV6)
        return header;
    struct udphdr *udp = ip + header;
    if (!l4_gue_port || protocol != IPPROTO_UDP || (void *)(udp + 1) > end || udp->dest != l4_gue_port)
        return 0;
    return header + sizeof(*udp);
}

/* The number of a second hop in the outer header; 0: none. */
L4_INLINE __u32 hint_of(void *ip, void *end, __u16 type)
{
    if (type == bpf_htons(ETH_P_IP)) {
        struct iphdr *outer = ip;
        return (void *)(outer + 1) > end ? 0 : bpf_ntohs(outer->id);
    }
    return ip + sizeof(struct ipv6hdr) > end ? 0 : bpf_ntohl(*(__u32 *)ip) & 0xffff;
}

/* Whether this machine has the connection of a TCP packet in the middle of one. Anything else counts as
 * known, and so does the end of a handshake that was begun here with a SYN cookie. */
L4_INLINE int is_known(struct xdp_md *ctx, void *ip, void *end, int v6)
{
    struct bpf_sock_tuple tuple = {};
    struct tcphdr *tcp;
    __u32 bytes, header;
    if (v6) {
        struct ipv6hdr *inner = ip;
        tcp = (void *)(inner + 1);
        if ((void *)(tcp + 1) > end || inner->nexthdr != IPPROTO_TCP)
            return 1;
        __builtin_memcpy(tuple.ipv6.saddr, &inner->saddr, 16);
        __builtin_memcpy(tuple.ipv6.daddr, &inner->daddr, 16);
        tuple.ipv6.sport = tcp->source;
        tuple.ipv6.dport = tcp->dest;
        bytes = sizeof(tuple.ipv6);
        header = sizeof(*inner);
    } else {
        struct iphdr *inner = ip;
        tcp = (void *)(inner + 1);
        if ((void *)(tcp + 1) > end || inner->ihl != 5 || inner->protocol != IPPROTO_TCP)
            return 1;
        tuple.ipv4.saddr = inner->saddr;
        tuple.ipv4.daddr = inner->daddr;
        tuple.ipv4.sport = tcp->source;
        tuple.ipv4.dport = tcp->dest;
        bytes = sizeof(tuple.ipv4);
        header = sizeof(*inner);
    }
    if (((__u8 *)tcp)[13] & TCP_SYN)
        return 1;
    struct bpf_sock *sk = bpf_skc_lookup_tcp(ctx, &tuple, bytes, BPF_F_CURRENT_NETNS, 0);
    if (!sk)
        return 0;
    int known = sk->state != BPF_TCP_LISTEN || !bpf_tcp_check_syncookie(sk, ip, header, tcp, sizeof(*tcp));
    bpf_sk_release(sk);
    return known;
}

/* Sends the tunnel packet on, as it is but for its destination and the hint: the next one keeps it. */
L4_INLINE int hand_on(struct ethhdr *eth, void *end, const struct l4_hop *hop)
{
    __u8 mac[6];
    if (eth->h_proto == bpf_htons(ETH_P_IP)) {
        struct iphdr *outer = (void *)(eth + 1);
        if ((void *)(outer + 1) > end)
            return XDP_PASS;
        outer->daddr = hop->addr[0];
        outer->id = 0;
        outer->check = 0;
        __u32 sum = 0;
#pragma unroll
        for (int i = 0; i < 10; i++)
            sum += ((__u16 *)outer)[i];
        sum = (sum & 0xffff) + (sum >> 16);
        sum = (sum & 0xffff) + (sum >> 16);
        outer->check = (__u16)~sum;
    } else {
        struct ipv6hdr *outer = (void *)(eth + 1);
        if ((void *)(outer + 1) > end)
            return XDP_PASS;
        *(__u32 *)outer &= bpf_htonl(0xffff0000);
        __builtin_memcpy(&outer->daddr, hop->addr, 16);
    }
    __builtin_memcpy(mac, eth->h_source, 6);
    __builtin_memcpy(eth->h_source, eth->h_dest, 6);
    __builtin_memcpy(eth->h_dest, mac, 6);
    l4_count(L4_SECOND_CHANCE);
    return XDP_TX;
}

/* Whether the packet at `ip` is for one of our VIPs; its version in `*v6`. */
L4_INLINE int is_local(void *ip, void *end, int *v6)
{
    struct l4_local key = {};
    if (ip + sizeof(struct iphdr) > end)
        return 0;
    __u8 version = *(__u8 *)ip >> 4;
    if (version == 4) {
        key.family = L4_V4;
        key.addr[0] = ((struct iphdr *)ip)->daddr;
        *v6 = 0;
    } else if (version == 6 && ip + sizeof(struct ipv6hdr) <= end) {
        struct ipv6hdr *inner = ip;
        key.family = L4_V6;
        key.addr[0] = ((__u64 *)&inner->daddr)[0];
        key.addr[1] = ((__u64 *)&inner->daddr)[1];
        *v6 = 1;
    } else {
        return 0;
    }
    return bpf_map_lookup_elem(&l4_local, &key) != NULL;
}

/* Marks the inner packet when the tunnel was marked. False: it must be dropped. Source: RFC 6040 4.2. */
L4_INLINE int combine_ecn(void *ip, void *end, int v6, __u8 outer)
{
    if (outer != ECN_CE)
        return 1;
    if (v6) {
        struct ipv6hdr *inner = ip;
        if ((void *)(inner + 1) > end || !(inner->flow_lbl[0] >> 4 & ECN))
            return 0;
        inner->flow_lbl[0] |= ECN_CE << 4;
        return 1;
    }
    struct iphdr *inner = ip;
    if ((void *)(inner + 1) > end || !(inner->tos & ECN))
        return 0;
    __u32 sum = (__u16)~inner->check + (__u16)~bpf_htons(inner->tos);
    inner->tos |= ECN_CE;
    sum += bpf_htons(inner->tos);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    inner->check = (__u16)~sum;
    return 1;
}

SEC("xdp")
int isobar_decap(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct ethhdr *eth = data;
    int v6 = 0, broken = 0;
    __u8 ecn = 0;
    if ((void *)(eth + 1) > end)
        return XDP_PASS;
    __u32 bytes = tunnel_bytes(eth + 1, end, eth->h_proto, &ecn, &broken);
    if (broken) /* the rest of it would be lost in any case: pieces cannot be put together here */
        return l4_drop(L4_DROP_DECAP_FRAGMENT);
    if (!bytes || bytes > 48)
        return XDP_PASS;
    void *inner = (void *)(eth + 1) + bytes;
    if (!is_local(inner, end, &v6)) {
        l4_count(L4_DECAP_OTHER);
        return XDP_PASS;
    }
    __u32 number = hint_of(eth + 1, end, eth->h_proto);
    struct l4_hop *hop = number ? bpf_map_lookup_elem(&l4_hops, &number) : NULL;
    __u32 outer_family = eth->h_proto == bpf_htons(ETH_P_IP) ? L4_V4 : L4_V6;
    if (hop && hop->family == outer_family && !is_known(ctx, inner, end, v6))
        return hand_on(eth, end, hop);
    if (!combine_ecn(inner, end, v6, ecn))
        return l4_drop(L4_DROP_DECAP_ECN);
    __u8 macs[12];
    __builtin_memcpy(macs, eth, sizeof(macs));
    if (bpf_xdp_adjust_head(ctx, (int)bytes))
        return l4_drop(L4_DROP_DECAP_HEADER);
    data = (void *)(long)ctx->data;
    end = (void *)(long)ctx->data_end;
    eth = data;
    if ((void *)(eth + 1) > end)
        return l4_drop(L4_DROP_DECAP_HEADER);
    __builtin_memcpy(eth, macs, sizeof(macs));
    eth->h_proto = v6 ? bpf_htons(ETH_P_IPV6) : bpf_htons(ETH_P_IP);
    l4_count(L4_DECAP);
    return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
