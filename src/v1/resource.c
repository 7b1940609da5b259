/* SPDX-License-Identifier: Apache-2.0 */
#include "v1/resource.h"

#include "config/endpoint.h"
#include "config/secret.h"

static struct slice text_of(const struct doc_node *map, const char *key)
{
    const struct doc_node *node = doc_get(map, key);
    return node && node->kind != DOC_LIST && node->kind != DOC_MAP && node->kind != DOC_NULL
               ? node->text
               : (struct slice){0};
}

static struct slice by_name(const struct doc_node *item, const struct doc_node *parent, struct arena *arena)
{
    return text_of(item, "name");
}

static struct slice unix_id(const struct doc_node *item, struct arena *arena)
{
    struct slice path = text_of(item, "unix");
    return path.ptr ? slice_str(arena_printf(arena, "unix:%.*s", SLICE_ARG(path))) : (struct slice){0};
}

/* Its name, or else the port: no two of a load balancer have the same. */
static struct slice by_port(const struct doc_node *item, const struct doc_node *parent, struct arena *arena)
{
    struct slice name = text_of(item, "name"), path = unix_id(item, arena);
    return name.ptr ? name : path.ptr ? path : text_of(item, "port");
}

/* Its name, or else a word for what it says: that of another rule, or of a changed one, is another. */
static struct slice by_content(const struct doc_node *item, const struct doc_node *parent,
                               struct arena *arena)
{
    struct slice name = text_of(item, "name");
    if (name.ptr)
        return name;
    uint64_t hash = secret_digest(resource_section(&resource_rules), item);
    return slice_str(arena_printf(arena, "rule.%016llx", (unsigned long long)hash));
}

/* As metrics and logs call it: "10.0.0.1:80", "[::1]:80", "app.internal:80", "srv:_http._tcp.app",
 * "unix:/run/x".
 */
static struct slice by_endpoint(const struct doc_node *item, const struct doc_node *parent,
                                struct arena *arena)
{
    struct config_endpoint endpoint = {0};
    struct slice path = unix_id(item, arena), port = text_of(item, "port"), ip = text_of(item, "ip");
    struct slice host = text_of(item, "host"), srv = text_of(item, "srv");
    uint64_t number;
    if (path.ptr)
        return path;
    if (!port.ptr)
        port = text_of(parent, "port");
    if (srv.ptr)
        return slice_str(arena_printf(arena, "srv:%.*s", SLICE_ARG(srv)));
    if (!slice_u64(port, &number) || number > UINT16_MAX)
        return (struct slice){0};
    if (host.ptr)
        return slice_str(arena_printf(arena, "%.*s:%u", SLICE_ARG(host), (unsigned)number));
    if (!ip.ptr || !ip_parse(ip, &endpoint.ip))
        return (struct slice){0};
    endpoint.port = (uint16_t)number;
    endpoint_name(&endpoint, arena);
    return endpoint.text;
}

static void set_text(struct doc_edit *edit, struct doc_node *item, const char *key, struct slice value,
                     bool plain)
{
    struct doc_node *node = doc_new(edit->doc, DOC_STRING);
    doc_set_scalar(edit->doc, node, value, plain);
    doc_edit_set(edit, item, key, node);
}

static bool name_endpoint(struct doc_edit *edit, struct doc_node *item, struct slice id)
{
    static const char *const ways[] = {"ip", "host", "srv", "unix", "port"};
    struct config_endpoint endpoint;
    const char *why;
    char ip[IP_TEXT_MAX], port[8];
    for (size_t i = 0; i < iso_countof(ways); i++)
        if (doc_get(item, ways[i]))
            return true;
    if (slice_starts(id, SLICE("srv:"))) {
        set_text(edit, item, "srv", slice_of(id.ptr + 4, id.len - 4), false);
        return true;
    }
    if (!endpoint_parse(id, &endpoint, &why)) {
        size_t colon = slice_find(id, ':');
        if (colon == 0 || colon == id.len)
            return false;
        set_text(edit, item, "host", slice_of(id.ptr, colon), false);
        set_text(edit, item, "port", slice_of(id.ptr + colon + 1, id.len - colon - 1), true);
        return true;
    }
    if (endpoint.unix_path.ptr) {
        set_text(edit, item, "unix", endpoint.unix_path, false);
        return true;
    }
    size_t n = 0;
    for (unsigned left = endpoint.port, scale = 10000; scale; left %= scale, scale /= 10)
        if (n || left / scale || scale == 1)
            port[n++] = (char)('0' + left / scale);
    set_text(edit, item, "ip", slice_of(ip, ip_print(&endpoint.ip, ip)), false);
    set_text(edit, item, "port", slice_of(port, n), true);
    return true;
}

static bool name_port(struct doc_edit *edit, struct doc_node *item, struct slice id)
{
    uint64_t port;
    if (doc_get(item, "name") || doc_get(item, "unix") || doc_get(item, "port"))
        return true;
    if (slice_starts(id, SLICE("unix:")))
        set_text(edit, item, "unix", slice_of(id.ptr + 5, id.len - 5), false);
    else if (slice_u64(id, &port))
        set_text(edit, item, "port", id, true);
    else
        set_text(edit, item, "name", id, false);
    return true;
}

static bool name_name(struct doc_edit *edit, struct doc_node *item, struct slice id)
{
    if (!doc_get(item, "name"))
        set_text(edit, item, "name", id, false);
    return true;
}

/* One that is named by its content keeps having no name. */
static bool name_rule(struct doc_edit *edit, struct doc_node *item, struct slice id)
{
    return slice_starts(id, SLICE("rule.")) || name_name(edit, item, id);
}

static const char *const target_operate[] = {"weight", "enabled", NULL};

const struct resource resource_load_balancers = {.name = "load-balancers",
                                                 .item = "load_balancer",
                                                 .key = "load_balancers",
                                                 .id_key = "lb_id",
                                                 .prefix = "lb-",
                                                 .identify = by_name,
                                                 .name_it = name_name};
const struct resource resource_listeners = {.name = "listeners",
                                            .item = "listener",
                                            .key = "listeners",
                                            .parent = &resource_load_balancers,
                                            .identify = by_port,
                                            .name_it = name_port};
const struct resource resource_rules = {.name = "rules",
                                        .item = "rule",
                                        .key = "rules",
                                        .prefix = "rule-",
                                        .parent = &resource_listeners,
                                        .is_ordered = true,
                                        .identify = by_content,
                                        .name_it = name_rule};
const struct resource resource_certificates = {.name = "certificates",
                                               .item = "certificate",
                                               .key = "certificates",
                                               .id_key = "cert_id",
                                               .prefix = "c-",
                                               .identify = by_name,
                                               .name_it = name_name};
const struct resource resource_target_groups = {.name = "target-groups",
                                                .item = "target_group",
                                                .key = "target_groups",
                                                .id_key = "tg_id",
                                                .prefix = "tg-",
                                                .identify = by_name,
                                                .name_it = name_name};
const struct resource resource_targets = {.name = "targets",
                                          .item = "target",
                                          .key = "targets",
                                          .parent = &resource_target_groups,
                                          .operate = target_operate,
                                          .identify = by_endpoint,
                                          .name_it = name_endpoint};
const struct resource resource_nodes = {.name = "nodes",
                                        .item = "node",
                                        .key = "nodes",
                                        .prefix = "node-",
                                        .identify = by_name,
                                        .name_it = name_name};

const struct schema_section *resource_section(const struct resource *resource)
{
    const struct schema_section *in = resource->parent ? resource_section(resource->parent) : &schema_config;
    return schema_find(in, slice_str(resource->key))->section;
}

unsigned resource_depth(const struct resource *resource)
{
    return resource->parent ? resource_depth(resource->parent) + 1 : 1;
}

struct slice resource_id(const struct resource *resource, const struct doc_node *item, struct arena *arena)
{
    return resource->identify(item, item->parent ? item->parent->parent : NULL, arena);
}

const struct doc_node *resource_find(const struct resource *resource, const struct doc_node *list,
                                     struct slice id, struct arena *arena)
{
    if (!list || list->kind != DOC_LIST)
        return NULL;
    for (const struct doc_node *item = list->first; item; item = item->next) {
        struct slice have = resource_id(resource, item, arena);
        if (have.ptr && slice_eq(have, id))
            return item;
    }
    return NULL;
}

const struct doc_node *resource_list(const struct resource *resource, const struct doc_node *root,
                                     const struct slice *ids, struct arena *arena,
                                     const struct doc_node **parent, bool *exists)
{
    *parent = root;
    *exists = true;
    if (resource->parent) {
        const struct doc_node *above;
        const struct doc_node *list = resource_list(resource->parent, root, ids, arena, &above, exists);
        *parent = resource_find(resource->parent, list, ids[resource_depth(resource->parent) - 1], arena);
        *exists = *parent != NULL;
    }
    return *parent ? doc_get(*parent, resource->key) : NULL;
}

const char *resource_new_name(const struct resource *resource, const struct doc_node *list,
                              struct arena *arena)
{
    uint64_t highest = 0, number;
    struct slice prefix = slice_str(resource->prefix);
    for (const struct doc_node *item = list ? list->first : NULL; item; item = item->next) {
        struct slice name = text_of(item, "name");
        if (name.ptr && slice_starts(name, prefix) &&
            slice_u64(slice_of(name.ptr + prefix.len, name.len - prefix.len), &number) && number > highest &&
            number < UINT32_MAX)
            highest = number;
    }
    return arena_printf(arena, "%s%llu", resource->prefix, (unsigned long long)highest + 1);
}
