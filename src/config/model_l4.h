/* SPDX-License-Identifier: Apache-2.0 */
/* The packet tier's part of the configuration: the L7 nodes that VIPs are spread over, and this node's
 * settings. */
#ifndef ISOBAR_CONFIG_MODEL_L4_H
#define ISOBAR_CONFIG_MODEL_L4_H

#include "core/ip.h"

enum config_node_state { CONFIG_NODE_UP, CONFIG_NODE_DRAIN, CONFIG_NODE_DOWN };

struct config_node {
    struct slice name;
    struct ip_addr ip;
    uint32_t weight;
    enum config_node_state state;
    uint32_t server_id; /* in QUIC connection ids; 0: none */
};

enum config_l4_mode { CONFIG_L4_NATIVE, CONFIG_L4_GENERIC, CONFIG_L4_NATIVE_OR_GENERIC };
enum config_l4_encapsulation { CONFIG_L4_IPIP, CONFIG_L4_GUE };
enum config_l4_flow_table { CONFIG_L4_MOVED, CONFIG_L4_ALWAYS, CONFIG_L4_NEVER, CONFIG_L4_AS_NODE };
enum config_l4_scope { CONFIG_L4_SHARED, CONFIG_L4_PER_CPU };
enum config_l4_hash { CONFIG_L4_HASH_FLOW, CONFIG_L4_HASH_SOURCE, CONFIG_L4_HASH_PORT };
/* Behind a TCP listener's VIP: the nodes, or the targets of its default group. */
enum config_l4_reals { CONFIG_L4_NODES, CONFIG_L4_TARGETS };
enum config_l4_protocol { CONFIG_L4_TCP, CONFIG_L4_UDP };

struct config_l4_vip {
    struct ip_prefix *addresses;
    uint32_t n_addresses;
    uint16_t port; /* 0: any */
    enum config_l4_protocol protocol;
    enum config_l4_flow_table flow_table;
    enum config_l4_hash hash;
    bool quic, fragments;
    struct slice *nodes; /* names; none: all nodes */
    uint32_t n_nodes;
    uint32_t *node_indexes; /* of `nodes`, set by validation */
};

struct config_l4_announce {
    struct slice bird;     /* control socket; ptr NULL: nothing is announced */
    struct slice file;     /* what BIRD includes */
    uint32_t kernel_table; /* routing table of the kernel that has the VIPs as well; 0: none */
    bool without_reals;
};

/* TCP connections to a port of each node. */
struct config_l4_check {
    uint16_t port; /* 0: nodes are not checked */
    uint32_t interval_ms, timeout_ms, healthy_threshold, unhealthy_threshold;
};

/* What takes the tunnel header off on a machine behind the packet tier. */
struct config_decap {
    bool set;
    struct slice *interfaces;
    uint32_t n_interfaces;
    struct ip_prefix *vips; /* whole addresses; unset: those of load_balancers, by validation */
    uint32_t n_vips;
    uint16_t gue_port; /* 0: no GUE */
    enum config_l4_mode mode;
    struct slice pin;
};

struct config_l4 {
    bool set;
    struct slice *interfaces;
    uint32_t n_interfaces;
    struct slice pin;
    enum config_l4_mode mode;
    struct slice gateway_mac; /* "auto" or a MAC */
    enum config_l4_encapsulation encapsulation;
    uint16_t gue_port;
    struct ip_addr gue_source_v4, gue_source_v6;
    struct ip_prefix *tunnel_sources;
    uint32_t n_tunnel_sources;
    enum config_l4_reals reals;
    enum config_l4_flow_table flow_table;
    enum config_l4_scope flow_scope;
    uint32_t flow_entries, flow_inserts_per_s;
    uint32_t table_size, move_window_s, max_packet, linger_s;
    uint64_t hash_seed;
    bool too_big_replies;
    struct config_l4_announce announce;
    struct config_l4_check check;
    struct config_l4_vip *vips;
    uint32_t n_vips;
};

#endif
