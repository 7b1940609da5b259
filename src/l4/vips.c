/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/vips.h"

#include "core/check.h"

#include "l4/abi.h"

_Static_assert((int)CONFIG_L4_NATIVE == (int)L4_NATIVE && (int)CONFIG_L4_GENERIC == (int)L4_GENERIC &&
                   (int)CONFIG_L4_NATIVE_OR_GENERIC == (int)L4_NATIVE_OR_GENERIC,
               "the modes are the same");

static void read_mac(struct slice text, uint8_t mac[6])
{
    for (size_t i = 0; i < 6; i++) {
        unsigned value = 0;
        for (size_t j = 0; j < 2; j++) {
            char c = ascii_lower(text.ptr[3 * i + j]);
            value = value * 16 + (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        }
        mac[i] = (uint8_t)value;
    }
}

static void set_node(struct l4_node *node, const struct config_l4 *c)
{
    l4_node_defaults(node);
    node->interfaces = c->interfaces;
    node->n_interfaces = c->n_interfaces;
    node->pin = c->pin;
    node->mode = (enum l4_mode)c->mode;
    node->table_size = c->table_size;
    node->flow_entries = c->flow_entries;
    node->flow_per_cpu = c->flow_scope == CONFIG_L4_PER_CPU;
    node->max_inserts_per_s = c->flow_inserts_per_s;
    node->move_window_s = c->move_window_s;
    node->max_packet = c->max_packet;
    node->gateway_set = !slice_eq(c->gateway_mac, SLICE("auto"));
    if (node->gateway_set)
        read_mac(c->gateway_mac, node->gateway);
    for (uint32_t i = 0; i < c->n_tunnel_sources; i++)
        *(c->tunnel_sources[i].addr.family == 6 ? &node->source6 : &node->source4) = c->tunnel_sources[i];
    node->gue_source4 = c->gue_source_v4;
    node->gue_source6 = c->gue_source_v6;
    node->gue_port = c->gue_port;
    node->reply_too_big = c->too_big_replies;
    node->hash_seed = c->hash_seed;
}

/* Those that may become reals. */
static uint32_t count_targets(const struct config *config)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < config->n_target_groups && config->l4.reals == CONFIG_L4_TARGETS; i++)
        n += config->target_groups[i].n_targets;
    return n;
}

static void set_reals(struct l4_spec *spec, const struct config *config, struct arena *arena)
{
    spec->n_reals = config->n_nodes;
    spec->reals = arena_array(arena, struct l4_spec_real, config->n_nodes + count_targets(config) + 1);
    for (uint32_t i = 0; i < config->n_nodes; i++) {
        const struct config_node *node = &config->nodes[i];
        spec->reals[i] = (struct l4_spec_real){.name = node->name,
                                               .ip = node->ip,
                                               .weight = node->state == CONFIG_NODE_UP ? node->weight : 0,
                                               .usable = node->state != CONFIG_NODE_DOWN,
                                               .gue = config->l4.encapsulation == CONFIG_L4_GUE,
                                               .server_ids = {node->server_id}};
    }
}

/* The set with exactly these reals and weights (NULL: the reals' own), made when it is new. Most VIPs share
 * one, and so one ring. */
static uint32_t set_get(struct l4_spec *spec, uint32_t *reals, uint32_t *weights, uint32_t n)
{
    for (uint32_t i = 0; i < spec->n_sets; i++) {
        const struct l4_spec_set *set = &spec->sets[i];
        if (set->n_reals == n && !set->weights == !weights &&
            !memcmp(set->reals, reals, n * sizeof(*reals)) &&
            (!weights || !memcmp(set->weights, weights, n * sizeof(*weights))))
            return i;
    }
    spec->sets[spec->n_sets] = (struct l4_spec_set){.reals = reals, .weights = weights, .n_reals = n};
    return spec->n_sets++;
}

/* The real at an address: a node, a target that was met before, or a new one, named by its address so that
 * every packet node calls it the same. */
static uint32_t real_at(struct l4_spec *spec, const struct config *config, const struct ip_addr *ip,
                        struct arena *arena)
{
    char text[IP_TEXT_MAX];
    for (uint32_t i = 0; i < spec->n_reals; i++)
        if (ip_eq(&spec->reals[i].ip, ip))
            return i;
    size_t len = ip_print(ip, text);
    spec->reals[spec->n_reals] = (struct l4_spec_real){.name = arena_slice(arena, slice_of(text, len)),
                                                       .ip = *ip,
                                                       .usable = true,
                                                       .gue = config->l4.encapsulation == CONFIG_L4_GUE};
    return spec->n_reals++;
}

/* The targets of a group as a set; a disabled one takes no new flows. */
static uint32_t set_of_targets(struct l4_spec *spec, const struct config *config,
                               const struct config_target_group *group, struct arena *arena)
{
    uint32_t *reals = arena_array(arena, uint32_t, group->n_targets + 1);
    uint32_t *weights = arena_array(arena, uint32_t, group->n_targets + 1);
    for (uint32_t i = 0; i < group->n_targets; i++) {
        const struct config_target *target = &group->targets[i];
        reals[i] = real_at(spec, config, &target->endpoint.ip, arena);
        weights[i] = target->enabled ? target->weight : 0;
    }
    return set_get(spec, reals, weights, group->n_targets);
}

static uint16_t table_flags(enum config_l4_flow_table table, enum config_l4_flow_table of_node)
{
    if (table == CONFIG_L4_AS_NODE)
        table = of_node;
    return table == CONFIG_L4_ALWAYS ? L4_VIP_TRACK : table == CONFIG_L4_NEVER ? L4_VIP_NO_TABLE : 0;
}

static void add_vip(struct l4_spec *spec, struct arena *arena, struct ip_prefix prefix, uint16_t port,
                    uint8_t protocol, uint16_t flags, uint32_t set)
{
    char text[IP_TEXT_MAX];
    int n = (int)ip_print(&prefix.addr, text);
    const char *name =
        arena_printf(arena, "%.*s/%u %s %u", n, text, prefix.bits, protocol == 6 ? "tcp" : "udp", port);
    spec->vips[spec->n_vips++] = (struct l4_spec_vip){.name = slice_str(name),
                                                      .prefix = prefix,
                                                      .port = port,
                                                      .protocol = protocol,
                                                      .flags = flags,
                                                      .set = set};
}

static void add_listed(struct l4_spec *spec, const struct config_l4 *c, const struct config_l4_vip *vip,
                       uint32_t all, struct arena *arena)
{
    uint16_t flags = table_flags(vip->flow_table, c->flow_table);
    flags |= vip->hash == CONFIG_L4_HASH_SOURCE ? L4_VIP_HASH_SOURCE : 0;
    flags |= vip->hash == CONFIG_L4_HASH_PORT ? L4_VIP_HASH_PORT : 0;
    flags |= vip->quic ? L4_VIP_QUIC : 0;
    flags |= vip->fragments ? L4_VIP_FRAGMENTS : 0;
    uint32_t set = vip->n_nodes ? set_get(spec, vip->node_indexes, NULL, vip->n_nodes) : all;
    for (uint32_t i = 0; i < vip->n_addresses; i++)
        add_vip(spec, arena, vip->addresses[i], vip->port, vip->protocol == CONFIG_L4_UDP ? 17 : 6, flags,
                set);
}

static uint32_t count_vips(const struct config *config)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < config->n_load_balancers; i++)
        n += config->load_balancers[i].n_listeners;
    for (uint32_t i = 0; i < config->l4.n_vips; i++)
        n += config->l4.vips[i].n_addresses;
    return n;
}

iso_err l4_spec_from_config(const struct config *config, struct arena *arena, struct l4_spec *spec,
                            struct iso_diag *diag)
{
    *spec = (struct l4_spec){0};
    if (!config->l4.set) {
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4",
                 "there is no l4 section, expected at least \"l4: {interfaces: [...]}\"");
        return ISO_ERR_INVALID;
    }
    set_node(&spec->node, &config->l4);
    set_reals(spec, config, arena);
    spec->sets = arena_array(arena, struct l4_spec_set, config->l4.n_vips + config->n_target_groups + 1);
    spec->vips = arena_array(arena, struct l4_spec_vip, count_vips(config) + 1);
    uint32_t *everyone = arena_array(arena, uint32_t, config->n_nodes + 1);
    for (uint32_t i = 0; i < config->n_nodes; i++)
        everyone[i] = i;
    uint32_t all = set_get(spec, everyone, NULL, config->n_nodes);
    for (uint32_t i = 0; i < config->n_load_balancers; i++) {
        const struct config_load_balancer *lb = &config->load_balancers[i];
        for (uint32_t j = 0; j < lb->n_listeners; j++) {
            const struct config_listener *listener = &lb->listeners[j];
            const struct config_endpoint *at = &listener->endpoint;
            if (!lb->vip.family || at->unix_path.ptr)
                continue;
            struct ip_prefix whole = {.addr = lb->vip, .bits = lb->vip.family == 6 ? 128 : 32};
            uint32_t set = all;
            if (config_l4_has_targets(config, listener))
                set = set_of_targets(spec, config, &config->target_groups[listener->default_target_group],
                                     arena);
            add_vip(spec, arena, whole, at->port, 6, table_flags(CONFIG_L4_AS_NODE, config->l4.flow_table),
                    set);
        }
    }
    for (uint32_t i = 0; i < config->l4.n_vips; i++)
        add_listed(spec, &config->l4, &config->l4.vips[i], all, arena);
    if (spec->n_vips == 0) {
        diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/vips",
                 "there is no VIP: expected a load balancer with a vip, or l4.vips");
        return ISO_ERR_INVALID;
    }
    return ISO_OK;
}
