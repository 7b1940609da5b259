/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Finding the VIP of a packet: exact port, then any port, then prefixes, all in the bank in force. A hash map
 * would cost 27 ns a hit and 44 for two misses; open addressing in one array value costs about 5, which is
 * what traffic that is not for a VIP pays. */
#ifndef ISOBAR_L4_BPF_VIP_H
#define ISOBAR_L4_BPF_VIP_H

#include "l4/bpf/packet.h"

L4_INLINE struct l4_control *l4_get_control(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&l4_control, &zero);
}

/* One packet uses one bank from beginning to end: `number` is read once. */
L4_INLINE struct l4_vip_bank *l4_get_bank(const struct l4_control *control, __u32 *number)
{
    *number = *(volatile __u32 *)&control->bank;
    return bpf_map_lookup_elem(&l4_vips, number);
}

L4_INLINE struct l4_vip *l4_vip_find(struct l4_vip_bank *bank, __u64 a0, __u64 a1, __u32 key)
{
    __u32 home = l4_vip_home(a0, a1, key);
#pragma unroll
    for (__u32 i = 0; i < L4_VIP_PROBES; i++) {
        struct l4_vip *vip = &bank->slots[(home + i) & (L4_VIP_SLOTS - 1)];
        if (vip->key == key && vip->addr[0] == a0 && vip->addr[1] == a1)
            return vip;
        if (!vip->key)
            return NULL;
    }
    return NULL;
}

struct l4_wide {
    __u64 addr[2];
    __u32 key;
    __u32 bank;
};

enum { L4_WIDE_NONE = 0xffff };

L4_INLINE int vip_slot(struct l4_vip_bank *bank, __u64 a0, __u64 a1, __u32 key)
{
    __u32 home = l4_vip_home(a0, a1, key);
    for (__u32 i = 0; i < L4_VIP_PROBES; i++) {
        __u32 slot = (home + i) & (L4_VIP_SLOTS - 1);
        struct l4_vip *vip = &bank->slots[slot];
        if (vip->key == key && vip->addr[0] == a0 && vip->addr[1] == a1)
            return (int)slot;
        if (!vip->key)
            break;
    }
    return L4_WIDE_NONE;
}

/* The slot of a packet's VIP, or L4_WIDE_NONE, by exact port, any port and prefixes. Key l4_vip_key(0, 0,
 * family) asks for the address itself. A global function, so that the verifier goes through it once and not
 * at every call. */
__noinline int l4_vip_find_wide(const struct l4_wide *wide)
{
    if (!wide)
        return L4_WIDE_NONE;
    __u32 bank_key = wide->bank, key = wide->key, any = key & 0xffff;
    __u64 a0 = wide->addr[0], a1 = wide->addr[1];
    struct l4_vip_bank *bank = bpf_map_lookup_elem(&l4_vips, &bank_key);
    if (!bank)
        return L4_WIDE_NONE;
    int slot = vip_slot(bank, a0, a1, key);
    if (slot != L4_WIDE_NONE)
        return slot;
    if (bank->any_port && (slot = vip_slot(bank, a0, a1, any)) != L4_WIDE_NONE)
        return slot;
    for (__u32 i = 0; i < L4_PREFIXES; i++) {
        struct l4_prefix *prefix = &bank->prefixes[i];
        if (i >= bank->n_prefixes)
            break;
        if (prefix->family != (key & 0xff) || (a0 & prefix->mask[0]) != prefix->addr[0] ||
            (a1 & prefix->mask[1]) != prefix->addr[1])
            continue;
        __u64 name = prefix->name;
        slot = vip_slot(bank, name, ~0ull, key);
        return slot != L4_WIDE_NONE ? slot : vip_slot(bank, name, ~0ull, any);
    }
    return L4_WIDE_NONE;
}

L4_INLINE struct l4_vip *l4_vip_slow(struct l4_vip_bank *bank, __u32 number, const __u64 *addr, __u32 key)
{
    struct l4_wide wide = {.addr = {addr[0], addr[1]}, .key = key, .bank = number};
    __u32 slot = (__u32)l4_vip_find_wide(&wide);
    return slot == L4_WIDE_NONE ? NULL : &bank->slots[slot & (L4_VIP_SLOTS - 1)];
}

/* The same with the exact port tried in line first. */
L4_INLINE struct l4_vip *l4_vip_of(struct l4_vip_bank *bank, __u32 number, const __u64 *addr, __u32 key)
{
    struct l4_vip *vip = l4_vip_find(bank, addr[0], addr[1], key);
    if (likely(vip) || !(bank->any_port | bank->n_prefixes))
        return vip;
    return l4_vip_slow(bank, number, addr, key);
}

#endif
