/* SPDX-License-Identifier: Apache-2.0 */
#include "net/addr.h"

void net_addr_ip(struct net_addr *out, const struct ip_addr *ip, uint16_t port)
{
    memset(out, 0, sizeof(*out));
    if (ip->family == 4) {
        out->in4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
        memcpy(&out->in4.sin_addr, ip->bytes, 4);
        out->len = sizeof(out->in4);
    } else {
        out->in6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(port)};
        if (ip->family == 6)
            memcpy(&out->in6.sin6_addr, ip->bytes, 16);
        out->len = sizeof(out->in6);
    }
}

bool net_addr_unix(struct net_addr *out, struct slice path)
{
    memset(out, 0, sizeof(*out));
    if (path.len == 0 || path.len >= sizeof(out->un.sun_path))
        return false;
    out->un.sun_family = AF_UNIX;
    memcpy(out->un.sun_path, path.ptr, path.len);
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.len + 1);
    return true;
}

struct ip_addr net_addr_to_ip(const struct net_addr *addr)
{
    struct ip_addr ip = {0};
    if (addr->sa.sa_family == AF_INET) {
        ip.family = 4;
        memcpy(ip.bytes, &addr->in4.sin_addr, 4);
    } else if (addr->sa.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&addr->in6.sin6_addr)) {
        ip.family = 4;
        memcpy(ip.bytes, addr->in6.sin6_addr.s6_addr + 12, 4);
    } else if (addr->sa.sa_family == AF_INET6) {
        ip.family = 6;
        memcpy(ip.bytes, &addr->in6.sin6_addr, 16);
    }
    return ip;
}

uint16_t net_addr_port(const struct net_addr *addr)
{
    if (addr->sa.sa_family == AF_INET)
        return ntohs(addr->in4.sin_port);
    return addr->sa.sa_family == AF_INET6 ? ntohs(addr->in6.sin6_port) : 0;
}
