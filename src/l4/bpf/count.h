/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What every program of the packet tier has: named counters, in rows of our own per CPU. */
#ifndef ISOBAR_L4_BPF_COUNT_H
#define ISOBAR_L4_BPF_COUNT_H

#include "l4/abi.h"
#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define L4_INLINE   static __always_inline
#define unlikely(x) __builtin_expect(!!(x), 0)
#define likely(x)   __builtin_expect(!!(x), 1)

/* A plain array with a row for each CPU: a per-CPU map costs the same to write, but reading it takes a system
 * call and a copy per CPU; this one user space reads where it lies. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct l4_cpu);
} l4_cpus SEC(".maps");

L4_INLINE void l4_count(enum l4_event event)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct l4_cpu *mine = bpf_map_lookup_elem(&l4_cpus, &cpu);
    if (mine)
        mine->events[event]++;
}

L4_INLINE int l4_drop(enum l4_event event)
{
    l4_count(event);
    return XDP_DROP;
}

#endif
