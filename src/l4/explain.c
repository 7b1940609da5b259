/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/explain.h"

enum { TCP = 6 };

static void words_of(const struct ip_addr *ip, __u64 out[2])
{
    out[0] = out[1] = 0;
    memcpy(out, ip->bytes, ip->family == 6 ? 16 : 4);
}

/* As l4_vip_of() in bpf/vip.h. */
static const struct l4_vip *find_vip(struct l4_vip_bank *bank, const __u64 addr[2], __u32 key)
{
    __u32 any = key & 0xffff;
    const struct l4_vip *vip = l4_bank_find(bank, addr, key);
    if (!vip && bank->any_port)
        vip = l4_bank_find(bank, addr, any);
    for (uint32_t i = 0; i < bank->n_prefixes && !vip; i++) {
        const struct l4_prefix *p = &bank->prefixes[i];
        if (p->family != (key & 0xff) || (addr[0] & p->mask[0]) != p->addr[0] ||
            (addr[1] & p->mask[1]) != p->addr[1])
            continue;
        __u64 name[2] = {p->name, ~0ull};
        vip = l4_bank_find(bank, name, key);
        return vip ? vip : l4_bank_find(bank, name, any);
    }
    return vip;
}

static __u64 ring_hash(const struct l4_view *view, const struct l4_vip *vip, const __u64 src[2], __u32 ports)
{
    if (vip->flags & L4_VIP_HASH_PORT)
        return l4_ring_hash(view->ring_seed, 0, 0, ports & 0xffff0000, vip->salt);
    if (vip->flags & L4_VIP_HASH_SOURCE)
        ports = 0;
    return l4_ring_hash(view->ring_seed, src[0], src[1], ports, vip->salt);
}

static bool find_flow(const struct l4_view *view, __u64 signature, struct l4_flow *out)
{
    uint32_t home = (uint32_t)(signature >> 16) & (view->region_sets - 1);
    for (uint32_t set = home; set < view->flow_sets; set += view->region_sets)
        for (uint32_t i = 0; i < L4_WAYS; i++) {
            const struct l4_flow *flow = &view->flows[set].way[i];
            if (flow->state == L4_FLOW_NONE || (flow->word ^ signature) >> 12)
                continue;
            *out = *flow;
            return true;
        }
    return false;
}

static enum l4_why decide(const struct l4_verdict *v, const struct l4_tuple *tuple)
{
    bool tracks = v->vip.flags & L4_VIP_TRACK;
    if (v->vip.flags & L4_VIP_NO_TABLE)
        return L4_WHY_NEVER;
    if (!v->previous && !tracks)
        return L4_WHY_RING;
    if (tuple->syn && tuple->protocol == TCP)
        return L4_WHY_SYN;
    if (v->found)
        return L4_WHY_FLOW;
    if (v->previous && !(tracks && tuple->protocol != TCP))
        return L4_WHY_PREVIOUS;
    return L4_WHY_CURRENT;
}

void l4_explain(const struct l4_view *view, const struct l4_tuple *tuple, uint32_t now_tick,
                struct l4_verdict *out)
{
    __u64 src[2], dst[2];
    *out = (struct l4_verdict){.why = L4_WHY_NO_VIP};
    words_of(&tuple->src, src);
    words_of(&tuple->dst, dst);
    uint16_t dport = __builtin_bswap16(tuple->dport);
    __u32 ports = (__u32)dport << 16 | __builtin_bswap16(tuple->sport);
    const struct l4_vip *vip = find_vip(
        l4_bank(view), dst, l4_vip_key(dport, tuple->protocol, tuple->dst.family == 6 ? L4_V6 : L4_V4));
    if (!vip)
        return;
    out->vip = *vip;
    out->slot = l4_slot(ring_hash(view, vip, src, ports), view->slots);
    uint16_t entry = l4_ring(view, vip->ring)[out->slot];
    out->current = entry & L4_SLOT_REAL;
    const struct l4_move *move = &l4_ring_moves(view, vip->ring)[out->slot];
    if (entry & L4_SLOT_MOVED && (int32_t)(move->until - now_tick) > 0 &&
        view->reals[move->previous].flags & L4_REAL_USABLE) {
        out->previous = move->previous;
        out->move_left = (int32_t)(move->until - now_tick);
    }
    if (find_flow(view, l4_flow_hash(view->flow_seed, src, dst, ports, tuple->protocol), &out->flow))
        out->found = view->reals[out->flow.word & (L4_REALS - 1)].flags & L4_REAL_USABLE;
    out->why = decide(out, tuple);
    out->real = out->why == L4_WHY_FLOW       ? (uint32_t)(out->flow.word & (L4_REALS - 1))
                : out->why == L4_WHY_PREVIOUS ? out->previous
                                              : out->current;
    if (!out->real || !(view->reals[out->real].flags & L4_REAL_USABLE))
        out->why = L4_WHY_NO_REAL;
}

const char *l4_why_text(enum l4_why why)
{
    switch (why) {
    case L4_WHY_NO_VIP:
        return "no VIP: left to the kernel";
    case L4_WHY_RING:
        return "the slot's owner; it did not move, so no flow table is read";
    case L4_WHY_NEVER:
        return "the slot's owner; this VIP keeps no flow table";
    case L4_WHY_SYN:
        return "the slot's current owner: a new connection";
    case L4_WHY_FLOW:
        return "the flow table knows the flow";
    case L4_WHY_PREVIOUS:
        return "the slot's previous owner: the flow is not in the table, so it is older than the move";
    case L4_WHY_CURRENT:
        return "the slot's owner: the flow is not in the table yet";
    case L4_WHY_NO_REAL:
        return "no usable real: dropped";
    }
    iso_unreachable("not an l4_why");
}

const char *l4_event_name(enum l4_event event)
{
    static const char *const names[] = {
#define L4_EVENT(id, kind, name, help) name,
#include "l4/events.def"
#undef L4_EVENT
    };
    return names[event];
}
