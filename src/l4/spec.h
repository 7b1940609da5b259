/* SPDX-License-Identifier: Apache-2.0 */
/* What the packet tier is to do, as plain values: VIPs, the sets of reals behind them, and the settings of
 * this node. Built from the configuration by l4/vips, or by hand in tests; tables.c turns it into maps. Sizes
 * and seeds must be equal on all nodes that announce the same VIPs, or a flow that changes node changes its
 * real (I5). */
#ifndef ISOBAR_L4_SPEC_H
#define ISOBAR_L4_SPEC_H

#include "core/arena.h"
#include "core/ip.h"

struct l4_spec_real {
    struct slice name; /* the Maglev name; unique */
    struct ip_addr ip;
    uint32_t weight; /* 0: no new flows, its old ones stay while slots remember it */
    bool usable;     /* false: failed; its flows go elsewhere at once */
    bool gue;        /* reached by GUE instead of IP-in-IP */
    uint32_t
        server_ids[2]; /* in QUIC connection ids; 0: none. The first, up to 65535, also names a second hop */
};

struct l4_spec_set {
    uint32_t *reals;   /* indexes into l4_spec.reals */
    uint32_t *weights; /* of each here; NULL: the real's own */
    uint32_t n_reals;
};

struct l4_spec_vip {
    struct slice name; /* for people: "checkout/443/tcp" */
    struct ip_prefix prefix;
    uint16_t port; /* 0: any */
    uint8_t protocol;
    uint16_t flags; /* L4_VIP_* */
    uint32_t set;   /* index into l4_spec.sets */
};

enum l4_mode { L4_NATIVE, L4_GENERIC, L4_NATIVE_OR_GENERIC };

struct l4_node {
    struct slice *interfaces;
    uint32_t n_interfaces;
    struct slice pin; /* folder on a bpffs */
    enum l4_mode mode;
    uint32_t table_size;   /* Maglev M */
    uint32_t rings;        /* distinct rings that fit; 0: from the number of sets */
    uint32_t flow_entries; /* of the whole table; rounded up to a power of two */
    bool flow_per_cpu;
    uint32_t max_inserts_per_s; /* per CPU */
    uint32_t move_window_s;
    uint32_t max_packet; /* of a client, in bytes of IP; 0: interface MTU less the tunnel header */
    bool gateway_set;
    uint8_t gateway[6];
    struct ip_prefix source4, source6; /* of the tunnel header; host bits vary by flow */
    struct ip_addr gue_source4, gue_source6;
    uint16_t gue_port;
    bool reply_too_big;
    uint64_t hash_seed;
};

struct l4_spec {
    struct l4_node node;
    struct l4_spec_real *reals;
    uint32_t n_reals;
    struct l4_spec_set *sets;
    uint32_t n_sets;
    struct l4_spec_vip *vips;
    uint32_t n_vips;
};

/* Everything that has a default, set to it. */
void l4_node_defaults(struct l4_node *node);
/* The weight of a set's i-th real as it is now: 0 when it is not usable. */
uint32_t l4_set_weight(const struct l4_spec *spec, const struct l4_spec_set *set, uint32_t i);
/* What the largest tunnel header of the spec's reals adds to a packet. */
uint32_t l4_tunnel_bytes(const struct l4_spec *spec);

#endif
