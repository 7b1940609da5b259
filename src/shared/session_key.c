/* SPDX-License-Identifier: Apache-2.0 */
#include "shared/session_key.h"

#include <stdio.h>

static const uint64_t target_seed = 0x69736f6261725f31ull;

static const struct slice of_id = {"session:", 8}, of_client = {"client:", 7};

uint64_t session_table_key(const struct siphash_key *salt, struct slice id)
{
    return siphash(salt, id);
}

uint64_t session_table_key_of_client(const struct siphash_key *salt, const struct ip_addr *ip)
{
    /* Mixed, so that no cookie's bytes are an address's. */
    return hash_mix64(siphash(salt, slice_of((const char *)ip->bytes, ip->family == 6 ? 8 : 4)) + 1);
}

size_t session_key_of_id(char *out, size_t cap, struct slice id)
{
    int n = snprintf(out, cap, "%.*s%.*s", SLICE_ARG(of_id), SLICE_ARG(id));
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

size_t session_key_of_client(char *out, size_t cap, struct slice group, const struct ip_addr *ip)
{
    struct ip_addr network = *ip;
    char text[IP_TEXT_MAX];
    if (network.family == 6)
        memset(network.bytes + 8, 0, 8);
    size_t len = ip_print(&network, text);
    int n = snprintf(out, cap, "%.*s%.*s/%.*s", SLICE_ARG(of_client), SLICE_ARG(group), (int)len, text);
    return n > 0 && (size_t)n < cap ? (size_t)n : 0;
}

bool session_key_in_table(struct slice key, struct slice group, const struct siphash_key *salt,
                          uint64_t *table_key)
{
    struct ip_addr ip;
    if (slice_starts(key, of_id)) {
        *table_key = session_table_key(salt, slice_of(key.ptr + of_id.len, key.len - of_id.len));
        return true;
    }
    size_t front = of_client.len + group.len + 1;
    if (!slice_starts(key, of_client) || key.len <= front || key.ptr[front - 1] != '/' ||
        !slice_eq(slice_of(key.ptr + of_client.len, group.len), group) ||
        !ip_parse(slice_of(key.ptr + front, key.len - front), &ip))
        return false;
    *table_key = session_table_key_of_client(salt, &ip);
    return true;
}

uint64_t session_target_id(struct slice name)
{
    return iso_hash64(name, target_seed);
}
