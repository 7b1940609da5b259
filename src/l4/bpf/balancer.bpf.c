/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The packet tier's XDP program: a packet for a VIP gets an outer header towards one of its reals and leaves
 * by the interface it came in on (XDP_TX); everything else passes untouched (I1). The file holds the path
 * that nearly every packet takes; flow.h decides where slots moved, slow.h does all that is rare. No loops,
 * no clock, no locks here. */
#include "l4/bpf/slow.h"

L4_INLINE int balance(struct xdp_md *ctx, const struct l4_packet *p)
{
    __u32 number;
    struct l4_control *control = l4_get_control();
    struct l4_vip_bank *bank = control ? l4_get_bank(control, &number) : NULL;
    if (!bank)
        return XDP_PASS;
    struct l4_vip *vip = l4_vip_of(bank, number, p->dst, l4_vip_key(l4_dport(p), p->protocol, p->family));
    if (!vip)
        return XDP_PASS;
    if (unlikely(vip->flags & L4_VIP_QUIC || control->sample_every))
        return l4_slow(ctx);
    __u64 hash = l4_hash(vip, p);
    return l4_deliver(ctx, vip->id, p, l4_pick(vip, p, hash, 1), hash);
}

SEC("xdp")
int isobar_l4(struct xdp_md *ctx)
{
    void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
    struct ethhdr *eth = data;
    struct l4_packet p;
    if ((void *)(eth + 1) > end)
        return XDP_PASS;
    if (likely(eth->h_proto == bpf_htons(ETH_P_IP))) {
        if (unlikely(!l4_parse_simple4(data, end, &p)))
            return l4_slow(ctx);
        return balance(ctx, &p);
    }
    if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
        if (unlikely(!l4_parse_simple6(data, end, &p)))
            return l4_slow(ctx);
        return balance(ctx, &p);
    }
    return is_vlan(eth->h_proto) ? l4_slow(ctx) : XDP_PASS;
}

/* Never attached: user space runs it to learn the tick, since only the kernel knows how long a jiffy is. */
SEC("xdp")
int l4_clock(struct xdp_md *ctx)
{
    struct l4_control *control = l4_get_control();
    if (control)
        control->tick = l4_now();
    return XDP_PASS;
}

char _license[] SEC("license") = "Dual BSD/GPL";
