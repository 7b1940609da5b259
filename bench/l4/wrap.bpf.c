/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The harness around a program under test. BPF_PROG_TEST_RUN with repeat > 1 hands every iteration the buffer
 * that the last one left, so an encapsulating program would see its own output, which is no VIP packet.
 * `wrap` undoes the encapsulation, writes the next flow's source, and tail-calls the program, so every
 * iteration sees a clean packet. floor_tx is what the wrapper itself costs; floor_encap4 and floor_encap6 are
 * the least that any encapsulation does. */
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

struct {
    __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} target SEC(".maps");

volatile __u32 clean_bytes; /* of the clean packet */
volatile __u32 flows;       /* different flows; 0: never the same again */
volatile __u32 stride;      /* the order in which flows are visited */
volatile __u32 is_v6;
volatile __u64 counter;
volatile __u8 ethernet[16]; /* the clean header */

SEC("xdp")
int wrap(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    int delta = (int)(end - data) - (int)clean_bytes;
    if (delta != 0) {
        if (bpf_xdp_adjust_head(ctx, delta))
            return XDP_ABORTED;
        data = (void *)(long)ctx->data;
        end = (void *)(long)ctx->data_end;
    }
    if (data + ETH_HLEN + 40 + 20 > end)
        return XDP_ABORTED;
    __builtin_memcpy(data, (void *)ethernet, ETH_HLEN);
    __u64 n = counter++ * stride;
    __u32 id = flows ? (__u32)(n % flows) : (__u32)n;
    __u8 *ip = data + ETH_HLEN;
    if (is_v6) {
        *(__u32 *)(ip + 20) = bpf_htonl(id >> 14);
        *(__u16 *)(ip + 40) = bpf_htons(1024 + (id & 0x3fff));
    } else {
        *(__u32 *)(ip + 12) = bpf_htonl(0x64400000 + (id >> 14)); /* 100.64.0.0/10 */
        *(__u16 *)(ip + 20) = bpf_htons(1024 + (id & 0x3fff));
    }
    bpf_tail_call(ctx, &target, 0);
    return XDP_ABORTED;
}

SEC("xdp")
int floor_tx(struct xdp_md *ctx)
{
    return XDP_TX;
}

SEC("xdp")
int floor_encap4(struct xdp_md *ctx)
{
    if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct iphdr)))
        return XDP_DROP;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + ETH_HLEN + sizeof(struct iphdr) > end)
        return XDP_DROP;
    __u32 bytes = end - data - ETH_HLEN, *w = data + ETH_HLEN;
    *(__u64 *)data = 0x0002efbeadde0000ull;
    *(__u32 *)(data + 8) = 1;
    *(__u16 *)(data + 12) = bpf_htons(ETH_P_IP);
    __u32 sum = 0x0045 + bpf_htons((__u16)bytes) + 0x0440 + 0x10ac + 0x0101 + 0x000a + 0x0100;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    w[0] = 0x0045 | (__u32)bpf_htons((__u16)bytes) << 16;
    w[1] = 0;
    w[2] = 0x0440 | (~sum & 0xffff) << 16;
    w[3] = 0x010110ac;
    w[4] = 0x0100000a;
    return XDP_TX;
}

SEC("xdp")
int floor_encap6(struct xdp_md *ctx)
{
    if (bpf_xdp_adjust_head(ctx, -(int)sizeof(struct ipv6hdr)))
        return XDP_DROP;
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    if (data + ETH_HLEN + sizeof(struct ipv6hdr) > end)
        return XDP_DROP;
    __u64 *w = data + ETH_HLEN;
    *(__u64 *)data = 0x0002efbeadde0000ull;
    *(__u32 *)(data + 8) = 1;
    *(__u16 *)(data + 12) = bpf_htons(ETH_P_IPV6);
    __u32 bytes = end - data - ETH_HLEN - sizeof(struct ipv6hdr);
    w[0] = bpf_htonl(0x60000000) | (__u64)(bpf_htons((__u16)bytes) | 41u << 16 | 64u << 24) << 32;
    w[1] = 1;
    w[2] = 2;
    w[3] = 3;
    w[4] = 4;
    return XDP_TX;
}

char _license[] SEC("license") = "Dual BSD/GPL";
