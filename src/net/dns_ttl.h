/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ISOBAR_NET_DNS_TTL_H
#define ISOBAR_NET_DNS_TTL_H

#include <stddef.h>
#include <stdint.h>

/* The shortest TTL in the answer section of a DNS message, in seconds; one that is negative as a signed
 * number counts as 0, and so does a message that cannot be read, since it says nothing about how long it
 * holds. UINT32_MAX: it has no answers. Pure. Source: RFC 1035 4.1; RFC 2181 8. */
uint32_t dns_shortest_ttl(const unsigned char *message, size_t len);

#endif
