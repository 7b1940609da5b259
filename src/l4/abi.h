/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the XDP programs and user space share: the layout of every map, the hashes, the names of the counters.
 * Nothing else is shared, so a change here is a change of L4_ABI: maps pinned by another L4_ABI are not taken
 * over. Kernel headers only; both clang -target bpf and the host's compiler read this file.
 *
 * Consistency (I5, I8, I9). The ring maps a slot to a real; the top bit of a ring entry says that the slot
 * moved lately, and only then are `moves` (previous owner, until when) and the flow table read. VIPs live in
 * two banks; `l4_control.bank` names the one in force, so that one store publishes a whole configuration.
 */
#ifndef ISOBAR_L4_ABI_H
#define ISOBAR_L4_ABI_H

#include <linux/types.h>

enum {
    L4_ABI = 2,
    L4_VIPS = 1024, /* VIP ids */
    /* Of the open-addressing table of one bank; a power of two. Full (each VIP also has an address entry) it
     * is one eighth used, so that eight probes practically always suffice. */
    L4_VIP_SLOTS = 16384,
    L4_VIP_PROBES = 8, /* user space never places an entry further from its home */
    L4_PREFIXES = 32,
    L4_REALS = 4096, /* real ids; 0 means none */
    L4_WAYS = 4,     /* flow entries in a set: one cache line */
    L4_SLOT_MOVED = 0x8000,
    L4_SLOT_REAL = 0x7fff,
    L4_NO_RING = 0, /* ring 0 is never filled: every slot names real 0 */
};

/* Flags of a VIP. */
enum {
    L4_VIP_TRACK = 1 << 0,       /* every flow in the flow table, as source 000 has it (flow_table: always) */
    L4_VIP_NO_TABLE = 1 << 1,    /* ring only, whatever moved (flow_table: never) */
    L4_VIP_HASH_SOURCE = 1 << 2, /* ring by the client's address */
    L4_VIP_HASH_PORT = 1 << 3,   /* ring by the destination port */
    L4_VIP_QUIC = 1 << 4,        /* server id in the connection id */
    L4_VIP_FRAGMENTS = 1 << 5,   /* fragments go by addresses and protocol instead of being dropped */
};

/* Families as they stand in keys. */
enum { L4_V4 = 4, L4_V6 = 6 };

/* The key word of a VIP: port as on the wire (0: any), protocol (0: the entry stands for the address itself,
 * `flags` then is the set of protocols served there), family. Never 0, so that 0 marks an empty slot. */
static inline __attribute__((always_inline)) __u32 l4_vip_key(__u16 port_be, __u8 protocol, __u8 family)
{
    return (__u32)port_be << 16 | (__u32)protocol << 8 | family;
}

/* Bits of `flags` in an address entry. */
enum { L4_SERVES_TCP = 1 << 0, L4_SERVES_UDP = 1 << 1, L4_SERVES_FRAGMENTS = 1 << 2 };

struct l4_vip {
    __u64 addr[2]; /* network order; IPv4: first half of addr[0], the rest zero */
    __u32 key;     /* l4_vip_key(); 0: empty */
    __u16 id;      /* index of the counters */
    __u16 flags;
    __u32 ring; /* key into the ring map */
    __u32 salt; /* into the ring hash; the same on every node */
};

struct l4_prefix {
    __u64 addr[2];
    __u64 mask[2];
    __u32 family;
    __u32 name; /* the VIP table knows the prefix as address {name, ~0} */
};

struct l4_vip_bank {
    struct l4_vip slots[L4_VIP_SLOTS];
    struct l4_prefix prefixes[L4_PREFIXES]; /* longest first */
    __u32 n_prefixes;
    __u32 any_port; /* some VIP has port 0 */
    __u32 pad[14];
};

enum { L4_REAL_USABLE = 1 << 0, L4_REAL_V6 = 1 << 1, L4_REAL_GUE = 1 << 2 };

struct l4_real {
    __u32 addr[4];  /* network order; IPv4: the first */
    __u32 addr_sum; /* IPv4: 16-bit halves added up, for the outer checksum */
    __u32 flags;
    __u32 number; /* what the nodes know it by, 1 to 65535; 0: nothing */
    __u32 pad;
};

/* Picks are a real id, and above these bits perhaps a second one: where the first should hand a packet of a
 * TCP connection that it does not know. On the wire that one's number stands in the outer IPv4 id or IPv6
 * flow label. */
enum { L4_HINT_SHIFT = 16, L4_PICK_REAL = 0xffff };

struct l4_hop {
    __u32 addr[4];
    __u32 family;
};

struct l4_move {
    __u32 until; /* l4 ticks; the move counts while this is ahead of now */
    __u16 previous;
    __u16 pad;
};

/* One flow. `word` holds signature and real so that one store publishes both: two CPUs may write one set. */
struct l4_flow {
    __u64 word;  /* upper 52 bits: keyed signature; lower 12: real */
    __u32 stamp; /* l4 ticks of the last packet, coarse */
    __u32 state; /* enum l4_flow_state */
};
struct l4_flow_set {
    struct l4_flow way[L4_WAYS];
};
enum l4_flow_state { L4_FLOW_NONE, L4_FLOW_SYN, L4_FLOW_OPEN, L4_FLOW_CLOSING };

struct l4_traffic {
    __u64 packets, bytes;
};

enum l4_event {
#define L4_EVENT(id, kind, name, help) L4_##id,
#include "l4/events.def"
#undef L4_EVENT
    L4_EVENTS
};

struct l4_cpu {
    __u64 events[64];
    __u32 insert_tick; /* the tick that `inserts` counts */
    __u32 inserts;
    __u32 reply_tick;
    __u32 replies;
    __u32 sample_count;
    __u32 pad[11];
};

/* One element: what changes while the programs run. */
struct l4_control {
    __u32 abi;
    __u32 bank;         /* 0 or 1 */
    __u32 sample_every; /* 0: none; otherwise each n-th VIP packet per CPU is copied to the samples map */
    __u32 tick;         /* written by l4_clock, read by user space */
    __u64 generation;   /* publications since the maps were made */
    __u64 ring_seed;
    __u64 flow_seed;
    __u32 region_sets; /* flow sets of one region */
    __u32 pad[5];
};

/* What a sample says before the packet's bytes. */
struct l4_sample {
    __u32 frame_bytes;
    __u16 real;
    __u16 vip;
};

/* Decapsulation: the VIPs that this machine answers for; key of a hash map, value unused. */
struct l4_local {
    __u64 addr[2];
    __u32 family;
    __u32 pad;
};

_Static_assert(sizeof(struct l4_vip) == 32, "two VIPs a cache line");
_Static_assert(sizeof(struct l4_real) == 32, "two reals a cache line");
_Static_assert(sizeof(struct l4_flow) == 16, "16 bytes a flow");
_Static_assert(sizeof(struct l4_flow_set) == 64, "one cache line a set");
_Static_assert(sizeof(struct l4_move) == 8, "eight bytes a slot");
_Static_assert(sizeof(struct l4_cpu) % 64 == 0, "no line shared between CPUs");
_Static_assert(sizeof(struct l4_control) == 64, "one cache line");
_Static_assert(L4_EVENTS <= 64, "events fit struct l4_cpu");

#define L4_MUL1 0x9e3779b97f4a7c15ull
#define L4_MUL2 0xc2b2ae3d27d4eb4full
#define L4_MUL3 0xd6e8feb86659fd93ull

static inline __attribute__((always_inline)) __u64 l4_mix(__u64 h)
{
    h ^= h >> 32;
    h *= L4_MUL3;
    return h ^ h >> 32;
}

/* Home slot of a VIP in its bank. */
static inline __attribute__((always_inline)) __u32 l4_vip_home(__u64 a0, __u64 a1, __u32 key)
{
    __u64 h = (a0 ^ a1 * L4_MUL1 ^ key) * L4_MUL3;
    return (__u32)(h >> 40) & (L4_VIP_SLOTS - 1);
}

/* The ring hash: the same on every node that has the same seed (I5). `ports` as on the wire, source first. */
static inline __attribute__((always_inline)) __u64 l4_ring_hash(__u64 seed, __u64 s0, __u64 s1, __u32 ports,
                                                                __u32 salt)
{
    __u64 h = seed ^ s0 * L4_MUL1 ^ ((__u64)ports << 32 | salt) * L4_MUL2;
    return l4_mix(l4_mix(h) ^ s1 * L4_MUL1);
}

/* Which of `slots` a hash falls on: the upper half of the hash scaled down, no division. */
static inline __attribute__((always_inline)) __u32 l4_slot(__u64 hash, __u32 slots)
{
    return (__u32)((hash >> 32) * slots >> 32);
}

/* The flow signature, keyed by a seed of this node's own, so that nobody outside can make two flows meet. */
static inline __attribute__((always_inline)) __u64 l4_flow_hash(__u64 seed, const __u64 *src,
                                                                const __u64 *dst, __u32 ports, __u32 protocol)
{
    __u64 h = l4_mix(seed ^ src[0] * L4_MUL1 ^ ((__u64)ports << 32 | protocol) * L4_MUL2);
    h = l4_mix(h ^ src[1] * L4_MUL2 ^ dst[0] * L4_MUL3);
    return l4_mix(h ^ dst[1] * L4_MUL1 ^ seed);
}

#endif
