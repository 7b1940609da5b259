/* SPDX-License-Identifier: Apache-2.0 */
/* The packet tier: nodes that VIPs name, tables that can be built. */
#include "config/validate_internal.h"

#include "balance/maglev.h"

static void report_node_twin(struct doc *doc, const struct name *twin, const struct name *first)
{
    doc_fault(doc, DIAG_ERROR, twin->node, "is \"%.*s\", as is that %s; expected a unique one",
              SLICE_ARG(twin->text), doc_place(first->node, &doc->arena));
}

static void validate_nodes(struct validator *v, struct names *by_name)
{
    struct names addresses;
    names_init(&addresses);
    const struct doc_node *node = doc_get(v->doc->root, "nodes");
    node = node ? node->first : NULL;
    for (uint32_t i = 0; i < v->config->n_nodes; i++, node = node->next) {
        const struct config_node *n = &v->config->nodes[i];
        if (n->name.ptr)
            names_add(by_name, n->name, i, validate_at(node, "name"));
        if (n->ip.family) {
            char text[IP_TEXT_MAX];
            size_t len = ip_print(&n->ip, text);
            names_add(&addresses, arena_slice(&v->config->arena, slice_of(text, len)), i,
                      validate_at(node, "ip"));
        }
    }
    names_sort(by_name);
    names_each_twin(by_name, v->doc, report_node_twin);
    names_sort(&addresses);
    names_each_twin(&addresses, v->doc, report_node_twin);
    names_fini(&addresses);
}

static void validate_vip(struct validator *v, struct config_l4_vip *vip, const struct doc_node *item,
                         const struct names *nodes)
{
    const struct doc_node *list = doc_get(item, "nodes");
    const struct doc_node *entry = list && list->first ? list->first : list;
    vip->node_indexes = arena_array(&v->config->arena, uint32_t, vip->n_nodes + 1);
    for (uint32_t i = 0; i < vip->n_nodes; i++) {
        const struct name *found = names_find(nodes, vip->nodes[i]);
        if (found)
            vip->node_indexes[i] = found->index;
        else
            validate_fault(v, entry, "is \"%.*s\", but no node has that name", SLICE_ARG(vip->nodes[i]));
        if (entry && entry->next)
            entry = entry->next;
    }
    if (vip->quic && vip->protocol != CONFIG_L4_UDP)
        validate_fault(v, doc_get(item, "quic"), "is set for a TCP VIP, expected protocol: UDP beside it");
    for (uint32_t i = 0; i < vip->n_addresses; i++)
        if (vip->addresses[i].bits == 0)
            validate_fault(v, doc_get(item, "address"),
                           "is every address, expected a VIP or a prefix of VIPs");
}

/* The packet tier changes no ports and asks no DNS. */
static void validate_targets_as_reals(struct validator *v, const struct config_load_balancer *lb,
                                      const struct config_listener *listener)
{
    uint32_t index = (uint32_t)listener->default_target_group;
    const struct config_target_group *group = &v->config->target_groups[index];
    const struct doc_node *node = doc_get(v->doc->root, "target_groups");
    node = node ? node->first : NULL;
    for (uint32_t i = 0; i < index && node; i++)
        node = node->next;
    const struct doc_node *item = doc_get(node, "targets");
    item = item ? item->first : NULL;
    for (uint32_t i = 0; i < group->n_targets && item; i++, item = item->next) {
        const struct config_endpoint *at = &group->targets[i].endpoint;
        if (item->kind != DOC_MAP)
            continue;
        if (!at->ip.family)
            validate_fault(v, item, "is no IP address, expected one: l4.reals is targets, and %.*s has a vip",
                           SLICE_ARG(lb->name));
        else if (at->port && at->port != listener->endpoint.port)
            validate_fault(
                v, validate_at(item, "port"),
                "is %u, expected %u, the port of %.*s: l4.reals is targets, and packets keep their "
                "port",
                at->port, listener->endpoint.port, SLICE_ARG(listener->name));
    }
}

static void validate_reals(struct validator *v)
{
    for (uint32_t i = 0; i < v->config->n_load_balancers; i++) {
        const struct config_load_balancer *lb = &v->config->load_balancers[i];
        for (uint32_t j = 0; j < lb->n_listeners && lb->vip.family; j++)
            if (config_l4_has_targets(v->config, &lb->listeners[j]))
                validate_targets_as_reals(v, lb, &lb->listeners[j]);
    }
}

/* Only packets for these addresses are taken out of a tunnel, so that nobody reaches another one through it.
 */
static void validate_decap(struct validator *v)
{
    struct config_decap *c = &v->config->decap;
    const struct doc_node *node = doc_get(v->doc->root, "decap"), *vips = doc_get(node, "vips");
    if (!node || node->kind != DOC_MAP)
        return;
    if (c->n_interfaces == 0)
        validate_fault(v, node, "has no interfaces, expected at least one, such as [eth0]");
    for (uint32_t i = 0; i < c->n_vips; i++)
        if (c->vips[i].bits != (c->vips[i].addr.family == 6 ? 128 : 32))
            validate_fault(v, vips, "has a prefix, expected whole addresses");
    if (vips)
        return;
    c->vips = arena_array(&v->config->arena, struct ip_prefix, v->config->n_load_balancers + 1);
    for (uint32_t i = 0; i < v->config->n_load_balancers; i++) {
        const struct ip_addr *vip = &v->config->load_balancers[i].vip;
        if (vip->family)
            c->vips[c->n_vips++] = (struct ip_prefix){.addr = *vip, .bits = vip->family == 6 ? 128 : 32};
    }
    if (c->n_vips == 0)
        validate_fault(v, node, "has no vips, expected some: no load balancer has a vip");
}

void validate_l4(struct validator *v)
{
    validate_decap(v);
    struct names nodes;
    names_init(&nodes);
    validate_nodes(v, &nodes);
    const struct doc_node *l4 = doc_get(v->doc->root, "l4");
    if (l4 && l4->kind == DOC_MAP) {
        struct config_l4 *c = &v->config->l4;
        const struct doc_node *item = doc_get(l4, "vips");
        item = item ? item->first : NULL;
        for (uint32_t i = 0; i < c->n_vips; i++, item = item->next)
            if (item->kind == DOC_MAP)
                validate_vip(v, &c->vips[i], item, &nodes);
        validate_reals(v);
        if (!maglev_size_is_valid(c->table_size))
            validate_fault(v, validate_at(l4, "table_size"),
                           "is %u, expected a prime such as 65537 or 655373", c->table_size);
        else if (v->config->n_nodes > c->table_size)
            validate_fault(v, validate_at(l4, "table_size"),
                           "is %u, but there are %u nodes; expected a larger one", c->table_size,
                           v->config->n_nodes);
        if (c->encapsulation == CONFIG_L4_GUE && !c->gue_source_v4.family && !c->gue_source_v6.family)
            validate_fault(
                v, validate_at(l4, "encapsulation"),
                "is gue, expected gue_source_v4 or gue_source_v6 beside it: an address of this machine");
        if (c->n_interfaces == 0)
            validate_fault(v, l4, "has no interfaces, expected at least one, such as [eth0]");
    }
    names_fini(&nodes);
}
