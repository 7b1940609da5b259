/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens whose signature was found good by a set of keys, one cache per worker: a client sends the same token
 * with every request until it expires, and verifying costs many times what all else about it does. Known is
 * the signature alone; times, issuer, audience and claims are looked at in every request. Nothing but a hash
 * of 128 bits under keys of this worker is kept, and only tokens that were good come in, so nobody without
 * one can push others out. Of fixed size; where a token finds no room, the one of its four neighbours that
 * came first goes. Threads: owner worker. */
#ifndef ISOBAR_GUARD_JWT_CACHE_H
#define ISOBAR_GUARD_JWT_CACHE_H

#include "core/slice.h"

struct jwt_cache;

enum { JWT_CACHE_TOKENS = 8192 }; /* 24 bytes each */

/* NULL: the kernel has no random numbers; everything is verified then. Aborts when memory ends. Threads:
 * control. */
struct jwt_cache *jwt_cache_new(void);
void jwt_cache_free(struct jwt_cache **cache); /* NULL is fine */

/* What a token is known by: with which set of keys, and which token. */
struct jwt_tag {
    uint64_t keys, low, high;
};

/* `keys` is a number that no other set of keys of this process has or had, and not 0. */
void jwt_cache_tag(const struct jwt_cache *cache, uint64_t keys, struct slice token, struct jwt_tag *out);
bool jwt_cache_knows(const struct jwt_cache *cache, const struct jwt_tag *tag);
/* It is good. */
void jwt_cache_add(struct jwt_cache *cache, const struct jwt_tag *tag);

#endif
