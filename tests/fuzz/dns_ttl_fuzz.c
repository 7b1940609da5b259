/* SPDX-License-Identifier: Apache-2.0 */
/* The TTL of a DNS message: no read behind its end, a number that a TTL can be, and what stands behind the
 * answers changes nothing. */
#include "net/dns_ttl.h"

#include "core/check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    enum { MORE = 32 };
    uint32_t ttl_s = dns_shortest_ttl(bytes, len);
    iso_assert(ttl_s <= INT32_MAX || ttl_s == UINT32_MAX);
    if (ttl_s == 0 || len < 12)
        return 0;
    unsigned char *longer = malloc(len + MORE);
    iso_assert(longer != NULL);
    memcpy(longer, bytes, len);
    memset(longer + len, 0xff, MORE);
    iso_assert(dns_shortest_ttl(longer, len + MORE) == ttl_s);
    free(longer);
    return 0;
}
