/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses: a sockaddr of any family we speak, with its length and its printed forms. */
#ifndef ISOBAR_NET_ADDR_H
#define ISOBAR_NET_ADDR_H

#include "core/ip.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

struct net_addr {
    socklen_t len;
    union {
        struct sockaddr sa;
        struct sockaddr_in in4;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
    };
};

/* family 0 in `ip` gives the IPv6 wildcard (a dual-stack listener). */
void net_addr_ip(struct net_addr *out, const struct ip_addr *ip, uint16_t port);
/* False when the path does not fit a sockaddr_un. */
bool net_addr_unix(struct net_addr *out, struct slice path);
/* The IP part; family 0 for unix sockets. IPv4-mapped IPv6 becomes IPv4. */
struct ip_addr net_addr_to_ip(const struct net_addr *addr);
uint16_t net_addr_port(const struct net_addr *addr);

#endif
