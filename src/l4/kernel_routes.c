/* SPDX-License-Identifier: Apache-2.0 */
#include "l4/kernel_routes.h"

#include "core/arena.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <time.h>

struct routes {
    struct mnl_socket *socket;
    uint32_t table, sequence;
    struct arena arena;
    struct ip_prefix *found; /* ours, as the kernel has them */
    uint32_t n_found, cap;
    char *buffer;
    size_t bytes;
};

static bool is_same(const struct ip_prefix *a, const struct ip_prefix *b)
{
    return a->bits == b->bits && ip_eq(&a->addr, &b->addr);
}

static bool has(const struct ip_prefix *prefixes, uint32_t n, const struct ip_prefix *wanted)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_same(&prefixes[i], wanted))
            return true;
    return false;
}

static int on_attribute(const struct nlattr *attribute, void *arg)
{
    const struct nlattr **by_type = arg;
    if (mnl_attr_type_valid(attribute, RTA_MAX) >= 0)
        by_type[mnl_attr_get_type(attribute)] = attribute;
    return MNL_CB_OK;
}

static void keep(struct routes *routes, const struct ip_prefix *prefix)
{
    if (routes->n_found == routes->cap) {
        uint32_t cap = routes->cap ? 2 * routes->cap : 64;
        struct ip_prefix *larger = arena_array(&routes->arena, struct ip_prefix, cap);
        if (routes->n_found)
            memcpy(larger, routes->found, routes->n_found * sizeof(*larger));
        routes->found = larger;
        routes->cap = cap;
    }
    routes->found[routes->n_found++] = *prefix;
}

static int on_route(const struct nlmsghdr *header, void *arg)
{
    struct routes *routes = arg;
    const struct rtmsg *message = mnl_nlmsg_get_payload(header);
    const struct nlattr *by_type[RTA_MAX + 1] = {0};
    mnl_attr_parse(header, sizeof(*message), on_attribute, by_type);
    uint32_t table = by_type[RTA_TABLE] ? mnl_attr_get_u32(by_type[RTA_TABLE]) : message->rtm_table;
    struct ip_prefix prefix = {.addr.family = message->rtm_family == AF_INET6 ? 6 : 4,
                               .bits = message->rtm_dst_len};
    size_t bytes = prefix.addr.family == 6 ? 16 : 4;
    if (message->rtm_protocol != L4_ROUTE_PROTOCOL || table != routes->table || !by_type[RTA_DST] ||
        mnl_attr_get_payload_len(by_type[RTA_DST]) != bytes)
        return MNL_CB_OK;
    memcpy(prefix.addr.bytes, mnl_attr_get_payload(by_type[RTA_DST]), bytes);
    keep(routes, &prefix);
    return MNL_CB_OK;
}

static struct nlmsghdr *begin(struct routes *routes, uint16_t type, uint16_t flags, uint8_t family)
{
    struct nlmsghdr *header = mnl_nlmsg_put_header(routes->buffer);
    header->nlmsg_type = type;
    header->nlmsg_flags = NLM_F_REQUEST | flags;
    header->nlmsg_seq = ++routes->sequence;
    struct rtmsg *message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
    message->rtm_family = family;
    return header;
}

/* Sends and takes the answers, up to the last. An errno value, 0: well. */
static int exchange(struct routes *routes, const struct nlmsghdr *header, mnl_cb_t on_answer)
{
    uint32_t port = mnl_socket_get_portid(routes->socket), sequence = header->nlmsg_seq;
    if (mnl_socket_sendto(routes->socket, header, header->nlmsg_len) < 0)
        return errno;
    for (;;) {
        ssize_t n = mnl_socket_recvfrom(routes->socket, routes->buffer, routes->bytes);
        if (n < 0)
            return errno;
        int result = mnl_cb_run(routes->buffer, (size_t)n, sequence, port, on_answer, routes);
        if (result <= MNL_CB_STOP)
            return result < 0 ? errno : 0;
    }
}

static int read_ours(struct routes *routes)
{
    int error = exchange(routes, begin(routes, RTM_GETROUTE, NLM_F_DUMP, AF_INET), on_route);
    return error ? error : exchange(routes, begin(routes, RTM_GETROUTE, NLM_F_DUMP, AF_INET6), on_route);
}

static int change(struct routes *routes, uint16_t type, uint16_t flags, const struct ip_prefix *prefix)
{
    bool is_v6 = prefix->addr.family == 6;
    struct nlmsghdr *header = begin(routes, type, (uint16_t)(NLM_F_ACK | flags), is_v6 ? AF_INET6 : AF_INET);
    struct rtmsg *message = mnl_nlmsg_get_payload(header);
    message->rtm_dst_len = prefix->bits;
    message->rtm_protocol = L4_ROUTE_PROTOCOL;
    message->rtm_type = RTN_BLACKHOLE;
    message->rtm_scope = RT_SCOPE_UNIVERSE;
    mnl_attr_put(header, RTA_DST, is_v6 ? 16 : 4, prefix->addr.bytes);
    mnl_attr_put_u32(header, RTA_TABLE, routes->table);
    return exchange(routes, header, NULL);
}

static iso_err complain(struct iso_diag *diag, const char *what, const struct ip_prefix *prefix, int error)
{
    char text[IP_TEXT_MAX];
    int n = prefix ? (int)ip_print(&prefix->addr, text) : 0;
    diag_add(diag, DIAG_ERROR, "", 0, 0, "/l4/announce/kernel_table", "cannot %s %.*s: %s", what, n, text,
             strerror(error));
    return ISO_ERR_SYSTEM;
}

static iso_err reconcile(struct routes *routes, const struct ip_prefix *wanted, uint32_t n,
                         struct iso_diag *diag)
{
    int error = read_ours(routes);
    if (error)
        return complain(diag, "read the kernel's routes", NULL, error);
    for (uint32_t i = 0; i < n; i++) {
        error = has(routes->found, routes->n_found, &wanted[i])
                    ? 0
                    : change(routes, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, &wanted[i]);
        if (error)
            return complain(diag, "make a route to", &wanted[i], error);
    }
    for (uint32_t i = 0; i < routes->n_found; i++) {
        error = has(wanted, n, &routes->found[i]) ? 0 : change(routes, RTM_DELROUTE, 0, &routes->found[i]);
        if (error && error != ESRCH)
            return complain(diag, "remove the route to", &routes->found[i], error);
    }
    return ISO_OK;
}

iso_err l4_kernel_routes_set(uint32_t table, const struct ip_prefix *wanted, uint32_t n,
                             struct iso_diag *diag)
{
    struct routes routes = {.table = table, .sequence = (uint32_t)time(NULL)};
    routes.socket = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
    if (!routes.socket || mnl_socket_bind(routes.socket, 0, MNL_SOCKET_AUTOPID) < 0) {
        iso_err err = complain(diag, "reach the kernel's routes", NULL, errno);
        if (routes.socket)
            mnl_socket_close(routes.socket);
        return err;
    }
    arena_init(&routes.arena);
    routes.bytes = (size_t)MNL_SOCKET_BUFFER_SIZE > 32768 ? (size_t)MNL_SOCKET_BUFFER_SIZE : 32768;
    routes.buffer = arena_alloc(&routes.arena, routes.bytes);
    iso_err err = reconcile(&routes, wanted, n, diag);
    arena_fini(&routes.arena);
    mnl_socket_close(routes.socket);
    return err;
}
