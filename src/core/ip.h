/* SPDX-License-Identifier: Apache-2.0 */
/* IP addresses and prefixes as values: parsing, printing, matching. IPv4-mapped IPv6 addresses are turned
 * into IPv4 on the way in, so that 10.0.0.0/8 matches a client whichever socket it came through. */
#ifndef ISOBAR_CORE_IP_H
#define ISOBAR_CORE_IP_H

#include "core/slice.h"

enum { IP_TEXT_MAX = 46 };

struct ip_addr {
    uint8_t family;    /* 4 or 6; 0: none (a unix socket) */
    uint8_t bytes[16]; /* network order; IPv4 uses the first four */
};

struct ip_prefix {
    struct ip_addr addr;
    uint8_t bits;
};

/* "10.0.0.1", "::1", "[::1]"; nothing else may stand around it. */
bool ip_parse(struct slice text, struct ip_addr *out);
/* "10.0.0.0/8"; a plain address is a prefix of full length. False when bits behind the length are set. */
bool ip_prefix_parse(struct slice text, struct ip_prefix *out);
bool ip_prefix_has(const struct ip_prefix *prefix, const struct ip_addr *addr);
bool ip_eq(const struct ip_addr *a, const struct ip_addr *b);
/* Writes without NUL (IPv6 without brackets, RFC 5952) into out[IP_TEXT_MAX] and returns the length. */
size_t ip_print(const struct ip_addr *addr, char out[IP_TEXT_MAX]);

#endif
