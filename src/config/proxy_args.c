/* SPDX-License-Identifier: Apache-2.0 */
#include "config/proxy_args.h"

#include "config/endpoint.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    ARGS_MAX = 1000,     /* of each kind; more belong in a file */
    ADDRESSES_MAX = 256, /* of one name */
};

static const char group_name[] = "targets";

/* `--to` taken apart. */
struct target_arg {
    struct slice unix_path; /* ptr NULL: host and port */
    struct slice host, port, weight;
    bool backup;
};

/* Never NULL: ARGS_MAX keeps the document far below its limits. */
static struct doc_node *add_node(struct doc *doc, struct doc_node *parent, const char *key,
                                 enum doc_kind kind)
{
    struct doc_node *node = doc_add(doc, parent, slice_str(key), kind, 0, 0);
    iso_assert(node != NULL);
    return node;
}

static struct doc_node *add_map(struct doc *doc, struct doc_node *parent, const char *key)
{
    return add_node(doc, parent, key, DOC_MAP);
}

static struct doc_node *add_list(struct doc *doc, struct doc_node *parent, const char *key)
{
    return add_node(doc, parent, key, DOC_LIST);
}

/* `number`: what looks like one is one; otherwise the value is a text whatever it looks like. */
static void add_scalar(struct doc *doc, struct doc_node *map, const char *key, struct slice value,
                       bool number)
{
    doc_set_scalar(doc, add_node(doc, map, key, DOC_STRING), value, number);
}

static const char *label(struct doc *doc, const char *option, const char *value)
{
    return arena_printf(&doc->arena, "%s %s", option, value);
}

/* A fault of an option that led to no node of the document. */
static void fault(struct doc *doc, const char *where, const char *message)
{
    diag_add(doc->diag, DIAG_ERROR, doc->name, 0, 0, where, "%s", message);
}

static bool is_number(struct slice s)
{
    uint64_t ignored;
    return slice_u64(s, &ignored);
}

/* NULL when well, else what is wrong. */
static const char *parse_listen(struct doc *doc, struct slice text, struct config_endpoint *endpoint)
{
    if (slice_starts(text, SLICE("http://")))
        text = slice_of(text.ptr + 7, text.len - 7);
    if (is_number(text))
        text = slice_str(arena_printf(&doc->arena, ":%.*s", SLICE_ARG(text)));
    if (slice_starts(text, SLICE("localhost:")))
        text = slice_str(arena_printf(&doc->arena, "127.0.0.1%s", text.ptr + 9));
    const char *why = NULL;
    return endpoint_parse(text, endpoint, &why) ? NULL : why;
}

static void add_listen(struct doc *doc, struct doc_node *load_balancers, const char *arg, uint32_t number)
{
    const char *where = label(doc, "--listen", arg);
    struct config_endpoint endpoint;
    const char *why = parse_listen(doc, slice_str(arg), &endpoint);
    if (why) {
        fault(doc, where,
              arena_printf(&doc->arena,
                           "%s; expected for example :8080, 127.0.0.1:8080, [::1]:8080 or unix:/path", why));
        return;
    }
    struct doc_node *lb = add_map(doc, load_balancers, NULL);
    lb->label = where;
    const char *name = number == 0 ? "proxy" : arena_printf(&doc->arena, "proxy-%u", number + 1);
    add_scalar(doc, lb, "name", slice_str(name), false);
    struct doc_node *listener = add_map(doc, add_list(doc, lb, "listeners"), NULL);
    if (endpoint.unix_path.ptr) {
        add_scalar(doc, listener, "unix", endpoint.unix_path, false);
    } else {
        char ip[IP_TEXT_MAX];
        if (endpoint.ip.family)
            add_scalar(doc, lb, "vip", slice_of(ip, ip_print(&endpoint.ip, ip)), false);
        add_scalar(doc, listener, "port", slice_str(arena_printf(&doc->arena, "%u", endpoint.port)), true);
    }
    add_scalar(doc, listener, "default_target_group", slice_str(group_name), false);
}

/* "HOST:PORT", with brackets around an IPv6 address. NULL when well, else what is wrong. */
static const char *split_host_port(struct slice text, struct target_arg *target)
{
    size_t colon = text.len;
    while (colon > 0 && text.ptr[colon - 1] != ':' && text.ptr[colon - 1] != ']')
        colon--;
    bool has_port = colon > 0 && text.ptr[colon - 1] == ':';
    target->host = has_port ? slice_of(text.ptr, colon - 1) : text;
    if (has_port)
        target->port = slice_of(text.ptr + colon, text.len - colon);
    if (target->host.len && target->host.ptr[0] != '[' && slice_find(target->host, ':') < target->host.len)
        return "an IPv6 address must stand in brackets: [::1]:9001";
    if (!target->port.ptr)
        return "has no port, expected HOST:PORT";
    return NULL;
}

static const char *split_scheme(struct slice text, struct target_arg *target)
{
    bool http = slice_starts(text, SLICE("http://"));
    if (http)
        text = slice_of(text.ptr + 7, text.len - 7);
    if (!http && slice_find(text, '/') < text.len)
        return slice_starts(text, SLICE("https://"))
                   ? "TLS to targets is not spoken, expected http:// or HOST:PORT"
                   : "expected HOST:PORT, http://HOST:PORT or unix:/path";
    if (text.len && text.ptr[text.len - 1] == '/')
        text.len--;
    if (slice_find(text, '/') < text.len)
        return "has a path; requests keep their own, expected http://HOST:PORT alone";
    if (http)
        target->port = SLICE("80");
    return split_host_port(text, target);
}

/* NULL when well, else what is wrong. */
static const char *parse_target(struct slice text, struct target_arg *target)
{
    struct slice rest = text, option;
    slice_next(&rest, ',', &text);
    while (slice_next(&rest, ',', &option)) {
        if (slice_starts(option, SLICE("weight=")))
            target->weight = slice_of(option.ptr + 7, option.len - 7);
        else if (slice_eq(option, SLICE("backup")))
            target->backup = true;
        else
            return "has an unknown option behind the comma, expected weight=N or backup";
    }
    if (slice_starts(text, SLICE("unix:"))) {
        target->unix_path = slice_of(text.ptr + 5, text.len - 5);
        return NULL;
    }
    return split_scheme(text, target);
}

static void add_target(struct doc *doc, struct doc_node *targets, const struct target_arg *target,
                       struct slice ip, const char *where)
{
    struct doc_node *node = add_map(doc, targets, NULL);
    node->label = where;
    if (target->unix_path.ptr) {
        add_scalar(doc, node, "unix", target->unix_path, false);
    } else {
        add_scalar(doc, node, "ip", ip, false);
        add_scalar(doc, node, "port", target->port, true);
    }
    if (target->weight.ptr)
        add_scalar(doc, node, "weight", target->weight, true);
    if (target->backup)
        add_scalar(doc, node, "backup", SLICE("true"), true);
}

static bool to_ip(const struct addrinfo *info, struct ip_addr *out)
{
    *out = (struct ip_addr){0};
    if (info->ai_family == AF_INET) {
        out->family = 4;
        memcpy(out->bytes, &((const struct sockaddr_in *)(const void *)info->ai_addr)->sin_addr, 4);
    } else if (info->ai_family == AF_INET6) {
        out->family = 6;
        memcpy(out->bytes, &((const struct sockaddr_in6 *)(const void *)info->ai_addr)->sin6_addr, 16);
    }
    return out->family != 0;
}

static bool is_known(const struct ip_addr *addrs, uint32_t n, const struct ip_addr *addr)
{
    for (uint32_t i = 0; i < n; i++)
        if (ip_eq(&addrs[i], addr))
            return true;
    return false;
}

/* A name with both kinds of addresses nearly always has the same servers behind both, so one kind is taken;
 * and a server started by hand on "localhost" more often listens on 127.0.0.1. That name is never asked for
 * (RFC 6761 6.3): small systems have no /etc/hosts. */
static void add_resolved(struct doc *doc, struct doc_node *targets, const struct target_arg *target,
                         const char *where)
{
    if (slice_caseeq(target->host, SLICE("localhost"))) {
        add_target(doc, targets, target, SLICE("127.0.0.1"), where);
        return;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *host = arena_slice(&doc->arena, target->host).ptr;
    int code = getaddrinfo(host, NULL, &hints, &found);
    if (code) {
        fault(doc, where,
              arena_printf(&doc->arena, "the name \"%s\" cannot be resolved: %s", host, gai_strerror(code)));
        return;
    }
    int family = AF_INET6;
    for (const struct addrinfo *info = found; info; info = info->ai_next)
        if (info->ai_family == AF_INET)
            family = AF_INET;
    struct ip_addr addrs[ADDRESSES_MAX];
    uint32_t n = 0;
    for (const struct addrinfo *info = found; info && n < ADDRESSES_MAX; info = info->ai_next)
        if (info->ai_family == family && to_ip(info, &addrs[n]) && !is_known(addrs, n, &addrs[n]))
            n++;
    freeaddrinfo(found);
    for (uint32_t i = 0; i < n; i++) {
        char ip[IP_TEXT_MAX];
        add_target(doc, targets, target, slice_of(ip, ip_print(&addrs[i], ip)), where);
    }
}

static void add_to(struct doc *doc, struct doc_node *targets, const char *arg)
{
    const char *where = label(doc, "--to", arg);
    struct target_arg target = {0};
    const char *wrong = parse_target(slice_str(arg), &target);
    if (wrong) {
        fault(doc, where, wrong);
        return;
    }
    struct ip_addr addr;
    if (target.unix_path.ptr)
        add_target(doc, targets, &target, (struct slice){0}, where);
    else if (target.host.len == 0)
        add_target(doc, targets, &target, SLICE("127.0.0.1"), where);
    else if (ip_parse(target.host, &addr))
        add_target(doc, targets, &target, target.host, where);
    else
        add_resolved(doc, targets, &target, where);
}

/* One option that is one key. */
static void add_option(struct doc *doc, struct doc_node *map, const char *key, const char *option,
                       const char *value, bool number)
{
    if (!value || !map)
        return;
    add_scalar(doc, map, key, slice_str(value), number);
    map->last->label = option;
}

static void build(struct doc *doc, const struct config_proxy_args *args)
{
    struct doc_node *root = add_map(doc, NULL, NULL);
    add_option(doc, root, "workers", "--workers", args->workers, true);
    if (args->admin)
        add_option(doc, add_map(doc, root, "admin"), "listen", "--admin", args->admin, false);
    if (args->access_log)
        add_option(doc, add_map(doc, root, "access_log"), "file", "--access-log", args->access_log, false);

    struct doc_node *load_balancers = add_list(doc, root, "load_balancers");
    for (uint32_t i = 0; i < args->n_listen && i < ARGS_MAX; i++)
        add_listen(doc, load_balancers, args->listen[i], i);
    struct doc_node *groups = add_list(doc, root, "target_groups");
    struct doc_node *group = add_map(doc, groups, NULL);
    add_scalar(doc, group, "name", slice_str(group_name), false);
    add_option(doc, group, "algorithm", "--algorithm", args->algorithm, false);
    if (args->health_path) {
        struct doc_node *check = add_map(doc, group, "health_check");
        add_scalar(doc, check, "type", SLICE("http"), false);
        add_option(doc, check, "path", "--health-path", args->health_path, false);
    }
    struct doc_node *targets = add_list(doc, group, "targets");
    for (uint32_t i = 0; i < args->n_to && i < ARGS_MAX; i++)
        add_to(doc, targets, args->to[i]);
    if (args->n_listen > ARGS_MAX || args->n_to > ARGS_MAX)
        fault(doc, "",
              "more than 1000 --listen or --to are given; expected a file: isobar serve --config FILE");
    if (args->n_listen == 0)
        fault(doc, "--listen", "is missing, expected for example --listen :8080");
    if (args->n_to == 0)
        fault(doc, "--to", "is missing, expected --to HOST:PORT once at least");
}

iso_err config_for_proxy(const struct config_proxy_args *args, struct config_source *out,
                         struct iso_diag *diag)
{
    struct config_source source = {.base_dir = getcwd(NULL, 0)};
    doc_init(&source.doc, "isobar proxy", diag);
    build(&source.doc, args);
    if (!source.base_dir)
        source.base_dir = strdup(".");
    iso_err err = config_load_doc(&source.doc, source.base_dir, &source.config);
    if (err)
        config_source_fini(&source);
    else
        *out = source;
    return err;
}
