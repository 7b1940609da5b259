/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Which real a packet goes to. A slot that did not move answers by itself. For one that did, or for VIPs that
 * track every flow, the flow table decides, and on a miss the previous owner: a packet in the middle of a
 * connection is older than the move unless its SYN was entered here.
 *
 * A SYN is entered only while its slot counts as moved, may overwrite only empty, expired or other SYN
 * entries, and when it finds no room goes to the previous owner, where its next packets will go too. So a SYN
 * flood cannot push out an established flow, and in slots that did not move it touches no table at all.
 * Source: I5, I8; JET (Mendelson et al., 2020); Unimog's second slot. */
#ifndef ISOBAR_L4_BPF_FLOW_H
#define ISOBAR_L4_BPF_FLOW_H

#include "l4/bpf/packet.h"

enum {
    FLOW_SYN_TICKS = 30,     /* how long a SYN entry waits for its handshake */
    FLOW_CLOSING_TICKS = 120 /* after FIN or RST */
};

struct l4_query {
    __u64 signature; /* l4_flow_hash() */
    __u32 ring, slot;
    __u32 entry; /* the ring's word */
    __u16 flags; /* of the VIP */
    __u8 protocol, tcp_flags;
    __u8 insert; /* 0: only look */
};

L4_INLINE int l4_real_usable(__u32 real)
{
    struct l4_real *r = bpf_map_lookup_elem(&l4_reals, &real);
    return real && r && r->flags & L4_REAL_USABLE;
}

L4_INLINE int flow_in_budget(void)
{
    __u32 cpu = bpf_get_smp_processor_id(), now = l4_now();
    struct l4_cpu *mine = bpf_map_lookup_elem(&l4_cpus, &cpu);
    if (!mine)
        return 0;
    if (mine->insert_tick != now) {
        mine->insert_tick = now;
        mine->inserts = 0;
    }
    if (mine->inserts >= l4_max_inserts) {
        mine->events[L4_FLOW_LIMIT]++;
        return 0;
    }
    mine->inserts++;
    mine->events[L4_FLOW_INSERT]++;
    return 1;
}

/* How readily an entry gives way: an empty or expired one first, then the SYN longest without an answer, then
 * the flow longest without a packet. */
L4_INLINE __u32 flow_weakness(const struct l4_flow *flow, __u32 now)
{
    __u32 age = now - flow->stamp;
    if (age > 1u << 20)
        age = 1u << 20;
    if (flow->state == L4_FLOW_NONE)
        return 3u << 22;
    if (flow->state == L4_FLOW_SYN)
        return age > FLOW_SYN_TICKS ? 3u << 22 : (2u << 22) + age;
    if (flow->state == L4_FLOW_CLOSING && age > FLOW_CLOSING_TICKS)
        return 3u << 22;
    return age;
}

L4_INLINE int flow_insert(struct l4_flow_set *set, __u64 word, __u32 now, __u32 state)
{
    __u32 best = 0, weakest = flow_weakness(&set->way[0], now);
#pragma unroll
    for (__u32 i = 1; i < L4_WAYS; i++) {
        __u32 weakness = flow_weakness(&set->way[i], now);
        if (weakness > weakest) {
            weakest = weakness;
            best = i;
        }
    }
    if (state == L4_FLOW_SYN && weakest < 2u << 22) {
        l4_count(L4_SYN_REFUSED);
        return 0;
    }
    if (!flow_in_budget())
        return 0;
    if (weakest < 3u << 22)
        l4_count(L4_FLOW_EVICT);
    struct l4_flow *flow = &set->way[best & (L4_WAYS - 1)];
    flow->stamp = now;
    flow->state = state;
    *(volatile __u64 *)&flow->word = word;
    return 1;
}

L4_INLINE struct l4_flow *flow_find(struct l4_flow_set *set, __u64 signature)
{
#pragma unroll
    for (__u32 i = 0; i < L4_WAYS; i++)
        if ((set->way[i].word ^ signature) < L4_REALS && set->way[i].state != L4_FLOW_NONE)
            return &set->way[i];
    return NULL;
}

/* A packet of a known flow: keeps the entry's stamp and state, and answers its real. */
L4_INLINE __u32 flow_hit(struct l4_flow *flow, const struct l4_query *q, __u32 now)
{
    __u32 state = flow->state;
    if (q->tcp_flags & (TCP_FIN | TCP_RST))
        state = L4_FLOW_CLOSING;
    else if (state == L4_FLOW_SYN)
        state = L4_FLOW_OPEN;
    if (flow->state != state)
        flow->state = state;
    if (flow->stamp != now && !(q->tcp_flags & TCP_RST))
        flow->stamp = now;
    return (__u32)flow->word & (L4_REALS - 1);
}

L4_INLINE struct l4_flow_set *flow_get_set(__u64 signature)
{
    __u32 index = (__u32)(signature >> 16) & (l4_flow_sets - 1);
    if (l4_flow_per_cpu)
        index += bpf_get_smp_processor_id() * l4_flow_sets;
    return bpf_map_lookup_elem(&l4_flows, &index);
}

/* Global functions from here on where they are called: the verifier goes through them once, not at every
 * call.
 *
 * Notes that a flow belongs to `real` for another reason than the ring: its connection id said so. */
__noinline int l4_flow_set_real(const struct l4_packet *p, __u32 real)
{
    if (!p)
        return 0;
    real &= L4_REALS - 1;
    __u64 signature = l4_flow_hash(l4_flow_seed, p->src, p->dst, p->ports, p->protocol);
    struct l4_flow_set *set = flow_get_set(signature);
    if (!set)
        return 0;
    signature &= ~(__u64)(L4_REALS - 1);
    struct l4_flow *flow = flow_find(set, signature);
    if (!flow)
        return flow_insert(set, signature | real, l4_now(), L4_FLOW_OPEN);
    flow->stamp = l4_now();
    *(volatile __u64 *)&flow->word = signature | real;
    return 0;
}

/* The slow half of l4_pick(): the slot moved or the VIP tracks. A real id, perhaps with a hint. */
__noinline __u32 l4_pick_tracked(const struct l4_query *q)
{
    if (!q)
        return 0;
    __u32 current = q->entry & L4_SLOT_REAL, previous = 0, now = l4_now();
    __u32 ring = q->ring, slot = q->slot;
    /* clang 14 reads q->slot again behind the check and Linux 6.18 then refuses the unbounded index. */
    asm volatile("" : "+r"(slot));
    if (q->entry & L4_SLOT_MOVED && slot < l4_slots) {
        struct l4_move *moves = bpf_map_lookup_elem(&l4_moves, &ring);
        if (moves && (__s32)(moves[slot].until - now) > 0)
            previous = moves[slot].previous;
        if (previous && !l4_real_usable(previous))
            previous = 0;
    }
    if (q->flags & L4_VIP_NO_TABLE || (!previous && !(q->flags & L4_VIP_TRACK)))
        return current;

    /* A connection that began after the move, on another packet node, is not in this table: its packets go to
     * the previous owner too, which knows no such connection and hands them on. */
    __u32 hint = q->protocol == IPPROTO_TCP ? current << L4_HINT_SHIFT : 0;
    struct l4_flow_set *set = flow_get_set(q->signature);
    if (!set)
        return current;
    __u64 signature = q->signature & ~(__u64)(L4_REALS - 1);
    struct l4_flow *flow = flow_find(set, signature);
    int is_syn = q->tcp_flags & TCP_SYN;
    if (flow && q->protocol == IPPROTO_UDP && now - flow->stamp > l4_udp_idle_ticks) {
        flow->state = L4_FLOW_NONE;
        flow = NULL;
    }
    if (flow && is_syn) {
        /* A new connection with the ports of an old one: the old entry must not catch its later packets. */
        if (((__u32)flow->word & (L4_REALS - 1)) != current)
            *(volatile __u64 *)&flow->word = signature | current;
        flow->state = L4_FLOW_SYN;
        flow->stamp = now;
        return current;
    }
    if (flow) {
        __u32 real = flow_hit(flow, q, now);
        if (l4_real_usable(real)) {
            l4_count(L4_MOVED_HIT);
            return real == previous ? real | hint : real;
        }
        flow->state = L4_FLOW_NONE; /* its real is gone */
    }
    l4_count(L4_MOVED_MISS);
    if (is_syn) {
        if (!previous || !current || !q->insert || flow_insert(set, signature | current, now, L4_FLOW_SYN))
            return current;
        l4_count(L4_MOVED_PREVIOUS);
        return previous;
    }
    /* Where every flow is tracked, a datagram that is not in the table began after the move. */
    if (q->protocol == IPPROTO_UDP && q->flags & L4_VIP_TRACK)
        previous = 0;
    if (previous)
        l4_count(L4_MOVED_PREVIOUS);
    __u32 real = previous ? previous : current;
    if (q->insert && !(q->tcp_flags & TCP_RST) && real)
        flow_insert(set, signature | real, now, L4_FLOW_OPEN);
    return real == previous ? real | hint : real;
}

/* The ring hash of a packet under the VIP's rules. */
L4_INLINE __u64 l4_hash(const struct l4_vip *vip, const struct l4_packet *p)
{
    __u32 ports = p->ports;
    if (unlikely(vip->flags & (L4_VIP_HASH_SOURCE | L4_VIP_HASH_PORT))) {
        if (vip->flags & L4_VIP_HASH_PORT)
            return l4_ring_hash(l4_ring_seed, 0, 0, ports & 0xffff0000, vip->salt);
        ports = 0;
    }
    return l4_ring_hash(l4_ring_seed, p->src[0], p->src[1], ports, vip->salt);
}

/* What the ring says about a hash; real 0 when there is no such ring. */
L4_INLINE __u32 l4_ring_entry(__u32 ring, __u64 hash, __u32 *at)
{
    __u16 *slots = bpf_map_lookup_elem(&l4_rings, &ring);
    if (!slots)
        return 0;
    __u64 slot = (hash >> 32) * l4_slots >> 32;
    /* clang 14 would join this shift with that of the index, and Linux 6.18 then sees a bound one too high.
     */
    asm volatile("" : "+r"(slot));
    *at = (__u32)slot;
    return slots[slot];
}

L4_INLINE __u32 l4_pick(const struct l4_vip *vip, const struct l4_packet *p, __u64 hash, int insert)
{
    __u32 slot = 0, entry = l4_ring_entry(vip->ring, hash, &slot);
    if (likely(!(entry & L4_SLOT_MOVED) && !(vip->flags & L4_VIP_TRACK)))
        return entry;
    struct l4_query q = {
        .signature = l4_flow_hash(l4_flow_seed, p->src, p->dst, p->ports, p->protocol),
        .ring = vip->ring,
        .slot = slot,
        .entry = entry,
        .flags = vip->flags,
        .protocol = p->protocol,
        .tcp_flags = p->tcp_flags,
        .insert = (__u8)insert,
    };
    return l4_pick_tracked(&q);
}

#endif
