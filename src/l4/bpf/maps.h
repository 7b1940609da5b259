/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The maps and the switches. Sizes that depend on the machine or the configuration are set by the loader
 * before the load. The switches are constants to the verifier, which removes the code they rule out; whatever
 * changes while the program runs is in l4_control or in the tables. */
#ifndef ISOBAR_L4_BPF_MAPS_H
#define ISOBAR_L4_BPF_MAPS_H

#include "l4/bpf/count.h"

/* The ring: `l4_slots` is a prime. */
const volatile __u32 l4_slots = 65537;
const volatile __u64 l4_ring_seed = 0;

/* The flow table: `l4_flow_sets` sets in a region, a power of two; one region, or one per CPU. */
const volatile __u32 l4_flow_sets = 1024;
const volatile __u32 l4_flow_per_cpu = 0;
const volatile __u64 l4_flow_seed = 0;
const volatile __u32 l4_max_inserts = 250000; /* per tick and CPU */
const volatile __u32 l4_udp_idle_ticks = 60;

/* A tick is jiffies64 >> l4_tick_shift, about a second: reading jiffies costs nothing, a clock 17 to 37 ns.
 */
const volatile __u32 l4_tick_shift = 8;

/* The tunnel. */
const volatile __u32 l4_max_packet = 1480;         /* largest IP packet of a client that fits */
const volatile __u32 l4_gateway_set = 0;           /* 0: back to the MAC the frame came from */
const volatile __u32 l4_gateway[2] = {0, 0};       /* six bytes */
const volatile __u32 l4_source4 = 0;               /* network order; host bits zero */
const volatile __u32 l4_source4_mask = 0;          /* the bits that vary by flow, network order */
const volatile __u32 l4_source6[4] = {0, 0, 0, 0}; /* the last word varies by flow when l4_source6_vary */
const volatile __u32 l4_source6_vary = 0;
const volatile __u32 l4_gue = 0;      /* some real is reached by GUE */
const volatile __u32 l4_gue_port = 0; /* network order */
const volatile __u32 l4_gue_source4 = 0;
const volatile __u32 l4_gue_source6[4] = {0, 0, 0, 0};
const volatile __u32 l4_reply_too_big = 1;
const volatile __u32 l4_max_replies = 1000; /* ICMP errors of our own, per tick and CPU */

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct l4_control);
} l4_control SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 2);
    __type(key, __u32);
    __type(value, struct l4_vip_bank);
} l4_vips SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, L4_REALS);
    __type(key, __u32);
    __type(value, struct l4_real);
} l4_reals SEC(".maps");

/* One value is a whole ring, __u16 each slot, so that a ring of 65537 is 128 KiB and stays in a core's L2. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 8);
    __uint(key_size, 4);
    __uint(value_size, 2 * 65537);
} l4_rings SEC(".maps");

/* The same rings' moves: struct l4_move each slot; read only where L4_SLOT_MOVED is set. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 8);
    __uint(key_size, 4);
    __uint(value_size, 8 * 65537);
} l4_moves SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, struct l4_flow_set);
} l4_flows SEC(".maps");

/* Counters, a row for each CPU. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, L4_VIPS);
    __type(key, __u32);
    __type(value, struct l4_traffic);
} l4_vip_count SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, L4_REALS);
    __type(key, __u32);
    __type(value, struct l4_traffic);
} l4_real_count SEC(".maps");

/* QUIC: server id to real. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, 65536);
    __type(key, __u32);
    __type(value, __u32);
} l4_server_ids SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
    __uint(key_size, 4);
    __uint(value_size, 4);
} l4_samples SEC(".maps");

L4_INLINE __u32 l4_now(void)
{
    return (__u32)(bpf_jiffies64() >> l4_tick_shift);
}

#endif
