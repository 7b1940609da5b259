/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the table about the packet tier. */
#include "config/schema_table.h"

#define HOLDER struct config_node
static const struct schema_choice node_states[] = {
    {"up", CONFIG_NODE_UP, "takes flows by its weight"},
    {"drain", CONFIG_NODE_DRAIN, "takes no new flows; old ones stay for move_window_s"},
    {"down", CONFIG_NODE_DOWN, "takes nothing; its flows go to others at once"},
    {NULL}};
static const struct schema_key node_keys[] = {
    REQUIRED_TEXT("name", name, check_name, EXPECT_NAME,
                  "what the Maglev table hashes, unique, never changed"),
    {KEY("ip", type_address, "where the tunnel ends"), .offset = FIELD(ip, struct ip_addr), .required = true},
    NUMBER("weight", weight, 0, BALANCE_WEIGHT_MAX, "100", "its share; 0: takes no new flows"),
    CHOICE("state", state, node_states, "up", "whether it takes traffic"),
    NUMBER("server_id", server_id, 0, 0xffffffff, "0",
           "what names it in QUIC connection ids, and up to 65535 to nodes that hand packets on; 0: nothing"),
    END};
const struct schema_section schema_node = {
    .keys = node_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = FIELD(name, struct slice),
    .item = "a node",
    .doc = "A machine behind the packet tier: it takes the tunnelled packets of VIPs and answers clients "
           "itself."};
#undef HOLDER

#define HOLDER struct config_l4_vip
static const struct schema_choice l4_protocols[] = {
    {"TCP", CONFIG_L4_TCP, "TCP"}, {"UDP", CONFIG_L4_UDP, "UDP"}, {NULL}};
static const struct schema_choice l4_hashes[] = {
    {"flow", CONFIG_L4_HASH_FLOW, "addresses, ports and protocol"},
    {"source", CONFIG_L4_HASH_SOURCE, "the client's address: all its flows go to one node"},
    {"port", CONFIG_L4_HASH_PORT, "the destination port alone"},
    {NULL}};
static const struct schema_choice l4_vip_tables[] = {
    {"node", CONFIG_L4_AS_NODE, "as l4.flow_table says"},
    {"moved", CONFIG_L4_MOVED, "only flows of slots that changed their owner lately"},
    {"always", CONFIG_L4_ALWAYS, "every flow"},
    {"never", CONFIG_L4_NEVER, "none"},
    {NULL}};
static const struct schema_key l4_vip_keys[] = {
    {KEY("address", type_prefixes, "address or prefix, or a list of them"),
     .offset = FIELD(addresses, struct ip_prefix *), .count_offset = FIELD(n_addresses, uint32_t),
     .required = true},
    NUMBER("port", port, 0, 65535, "0", "port; 0: every port"),
    CHOICE("protocol", protocol, l4_protocols, "TCP", "TCP or UDP"),
    CHOICE("flow_table", flow_table, l4_vip_tables, "node", "which flows are remembered"),
    CHOICE("hash", hash, l4_hashes, "flow", "what decides the node of a flow"),
    FLAG("quic", quic, "false", "UDP: the server id in the connection id decides, where there is one"),
    FLAG("fragments", fragments, "false",
         "true: fragments are forwarded, and hash is source; false: dropped"),
    TEXTS("nodes", nodes, n_nodes, check_name, EXPECT_NAME, "names of nodes; unset: all"),
    END};
static const struct schema_section l4_vip_section = {
    .keys = l4_vip_keys,
    .bytes = sizeof(HOLDER),
    .identity_offset = SCHEMA_NO_OFFSET,
    .item = "a VIP of the packet tier",
    .doc = "A VIP beside those of load_balancers that have a vip."};
#undef HOLDER

#define HOLDER struct config_l4
static const struct schema_choice l4_modes[] = {
    {"native", CONFIG_L4_NATIVE, "in the driver, or not at all"},
    {"generic", CONFIG_L4_GENERIC, "in the kernel's network stack: any interface, several times the cost"},
    {"native_or_generic", CONFIG_L4_NATIVE_OR_GENERIC, "generic where the driver cannot, with a warning"},
    {NULL}};
static const struct schema_choice l4_encapsulations[] = {
    {"ipip", CONFIG_L4_IPIP, "IP in IP"},
    {"gue", CONFIG_L4_GUE, "UDP, then the packet (GUE variant 1)"},
    {NULL}};
static const struct schema_choice l4_reals[] = {
    {"nodes", CONFIG_L4_NODES, "the nodes"},
    {"targets", CONFIG_L4_TARGETS,
     "the targets of the listener's default_target_group, which answer clients themselves"},
    {NULL}};
static const struct schema_choice l4_tables[] = {
    {"moved", CONFIG_L4_MOVED, "only flows of slots that changed their owner lately"},
    {"always", CONFIG_L4_ALWAYS, "every flow"},
    {"never", CONFIG_L4_NEVER, "none"},
    {NULL}};
static const struct schema_choice l4_scopes[] = {{"node", CONFIG_L4_SHARED, "one table for all CPUs"},
                                                 {"cpu", CONFIG_L4_PER_CPU, "a table for each CPU"},
                                                 {NULL}};
static const struct schema_key announce_keys[] = {
    TEXT("bird", announce.bird, NULL, NULL, NULL, "control socket of BIRD 2; unset: BIRD is not told"),
    TEXT("file", announce.file, NULL, NULL, "/run/isobar-l4/bird.conf",
         "written by isobar and included by bird.conf: static protocols isobar4 and isobar6 with the VIPs"),
    NUMBER("kernel_table", announce.kernel_table, 0, 0xffffffff, "0",
           "routing table (254: main) where the VIPs become blackhole routes of protocol 73, for a routing "
           "daemon to "
           "redistribute; 0: none"),
    FLAG("without_reals", announce.without_reals, "false", "false: VIPs without a usable node are withdrawn"),
    END};
static const struct schema_section announce_section = {
    .keys = announce_keys,
    .item = "an announcement",
    .doc = "How routers learn that this node takes the VIPs."};
static const struct schema_key l4_check_keys[] = {
    NUMBER("port", check.port, 0, 65535, "0", "port of a node that takes TCP connections; 0: no checks"),
    SECONDS("interval_s", check.interval_ms, 50, HOUR_MS, "1", "between checks of a node"),
    NUMBER("timeout_ms", check.timeout_ms, 1, HOUR_MS, "500", "for a connection"),
    NUMBER("healthy_threshold", check.healthy_threshold, 1, 100, "2",
           "successes in a row that bring a node back"),
    NUMBER("unhealthy_threshold", check.unhealthy_threshold, 1, 100, "3",
           "failures in a row that take it out"),
    END};
static const struct schema_section l4_check_section = {.keys = l4_check_keys,
                                                       .item = "a check of nodes",
                                                       .doc =
                                                           "How the packet tier learns that a node is gone."};
static const struct schema_key l4_keys[] = {
    TEXTS("interfaces", interfaces, n_interfaces, NULL, NULL, "where packets for VIPs arrive"),
    TEXT("pin", pin, NULL, NULL, "/sys/fs/bpf/isobar-l4", "folder on a bpf file system; one for each node"),
    CHOICE("mode", mode, l4_modes, "native", "where the XDP program runs"),
    TEXT("gateway_mac", gateway_mac, check_mac, EXPECT_MAC, "auto",
         "next hop of tunnel packets; auto: back to where the packet came from"),
    CHOICE("encapsulation", encapsulation, l4_encapsulations, "ipip", "the tunnel to nodes"),
    NUMBER("gue_port", gue_port, 1, 65535, "6080", "destination port of GUE"),
    {KEY("gue_source_v4", type_address, "source of GUE packets to IPv4 nodes"),
     .offset = FIELD(gue_source_v4, struct ip_addr)},
    {KEY("gue_source_v6", type_address, "source of GUE packets to IPv6 nodes"),
     .offset = FIELD(gue_source_v6, struct ip_addr)},
    PREFIXES("tunnel_sources", tunnel_sources, n_tunnel_sources,
             "source of IP-in-IP packets, one prefix a family; the bits behind it vary by flow. "
             "Unset: 198.18.0.0/16 and 100::/64"),
    CHOICE("reals", reals, l4_reals, "nodes", "what stands behind the VIPs of TCP listeners"),
    CHOICE("flow_table", flow_table, l4_tables, "moved", "which flows are remembered"),
    CHOICE("flow_scope", flow_scope, l4_scopes, "node", "whether CPUs share the flow table"),
    NUMBER("flow_entries", flow_entries, 1024, 1 << 26, "1048576", "size of the flow table, 16 bytes each"),
    NUMBER("flow_inserts_per_s", flow_inserts_per_s, 0, 100000000, "250000",
           "entries that a CPU may write in a second"),
    NUMBER("table_size", table_size, 3, 1 << 24, "65537",
           "slots of a Maglev table, a prime; equal on all nodes"),
    NUMBER("move_window_s", move_window_s, 1, 86400, "300",
           "how long a slot remembers its owner of before, and a drained node keeps its flows"),
    NUMBER("max_packet", max_packet, 0, 65535, "0",
           "largest packet of a client; 0: what the interface's MTU leaves beside the tunnel header"),
    FLAG("too_big_replies", too_big_replies, "true", "larger ones are answered with the size that fits"),
    {KEY("hash_seed", type_number, "of the hash; equal on all nodes"), .offset = offsetof(HOLDER, hash_seed),
     .size = WIDTH(hash_seed), .max = 0x7fffffffffffffff, .default_text = "0", .secret = secret_whole},
    NUMBER("linger_s", linger_s, 0, 3600, "5", "that a leaving node goes on forwarding after the withdrawal"),
    GROUPING("health_check", l4_check_section, "how the packet tier learns that a node is gone"),
    GROUPING("announce", announce_section, "how routers learn that this node takes the VIPs"),
    ITEMS("vips", vips, n_vips, l4_vip_section, "VIPs beside those of load_balancers"),
    END};
const struct schema_section schema_l4 = {
    .keys = l4_keys, .item = "an l4 section", .doc = "The packet tier on this machine (isobar l4)."};
#undef HOLDER

#define HOLDER struct config_decap
static const struct schema_key decap_keys[] = {
    TEXTS("interfaces", interfaces, n_interfaces, NULL, NULL, "where tunnelled packets arrive"),
    PREFIXES("vips", vips, n_vips,
             "addresses that may arrive in a tunnel; unset: the vips of load_balancers"),
    NUMBER("gue_port", gue_port, 0, 65535, "0", "destination port of GUE; 0: only IP in IP"),
    CHOICE("mode", mode, l4_modes, "native", "where the XDP program runs"),
    TEXT("pin", pin, NULL, NULL, "/sys/fs/bpf/isobar-decap", "folder on a bpf file system"),
    END};
const struct schema_section schema_decap = {
    .keys = decap_keys,
    .item = "a decap section",
    .doc = "The end of the packet tier's tunnel on this machine, for isobar serve. Packets that are no flow "
           "of this "
           "machine are handed on to the node that their outer header names, when nodes have a server_id."};
#undef HOLDER
