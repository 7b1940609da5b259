/* SPDX-License-Identifier: Apache-2.0 */
/* What a session is called: in the table of one process (a keyed hash of the session's id or of the client's
 * address), in the store that nodes share ("session:ID", "client:GROUP/ADDRESS"), and what stands there for
 * its target. An IPv6 client owns its /64. Pure. */
#ifndef ISOBAR_SHARED_SESSION_KEY_H
#define ISOBAR_SHARED_SESSION_KEY_H

#include "core/hash.h"
#include "core/ip.h"

/* In a table. */
uint64_t session_table_key(const struct siphash_key *salt, struct slice id);
uint64_t session_table_key_of_client(const struct siphash_key *salt, const struct ip_addr *ip);

/* In the store, into out[0..cap); the length, or 0 when it does not fit. */
size_t session_key_of_id(char *out, size_t cap, struct slice id);
size_t session_key_of_client(char *out, size_t cap, struct slice group, const struct ip_addr *ip);
/* From the store's name to that in the table of a group with this salt; false: it is none of that group's. */
bool session_key_in_table(struct slice store_key, struct slice group, const struct siphash_key *salt,
                          uint64_t *table_key);

/* A target by a hash of its name, the same on every node and over restarts; a table keeps its upper half. */
uint64_t session_target_id(struct slice name);
static inline uint32_t session_target_half(struct slice name)
{
    return (uint32_t)(session_target_id(name) >> 32);
}

#endif
