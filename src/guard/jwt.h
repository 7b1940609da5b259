/* SPDX-License-Identifier: Apache-2.0 */
/* A rule's JSON Web Tokens: a request passes when it brings one that a key of the rule's JWKS file has
 * signed, that is in force, and that is for us. Keys are read when the snapshot is built; the token is
 * verified on the worker, which costs some ten microseconds (RS256), once for as long as jwt_cache.h
 * remembers it, and needs no other party. Source: RFC 7519, RFC 7515, RFC 6750 3. */
#ifndef ISOBAR_GUARD_JWT_H
#define ISOBAR_GUARD_JWT_H

#include "core/diag.h"
#include "http/message.h"
#include "observe/ends.h"
#include "snapshot/snapshot.h"

struct jwt_cache;
struct jwt_verifier; /* counted; control thread only but for verifying */

enum { JWT_BYTES_MAX = 8192, JWT_ROOM_BYTES = 3 * JWT_BYTES_MAX };

/* Those of a listener's rules, into listener->rule_jwt; the keys of `earlier` (of the same configuration;
 * NULL: none) are taken over. */
iso_err jwt_build(struct snapshot *snapshot, struct snap_listener *listener,
                  const struct snap_listener *earlier, struct iso_diag *diag) ISO_MUST_USE;
void jwt_unref(struct jwt_verifier **verifier);

/* Verifies the request's token, unless `cache` (NULL: none) knows it, and puts what its claims say into the
 * fields that the rule names; their texts stand in `room` (JWT_ROOM_BYTES). END_NORMAL: it is good; else why
 * it is not. Units: `now_s` is wall time. Threads: any that the cache belongs to. */
enum exchange_end jwt_check(const struct jwt_verifier *verifier, const struct config_jwt *config,
                            uint64_t now_s, struct http_message *msg, char *room,
                            struct jwt_cache *cache) ISO_MUST_USE;
/* The value of WWW-Authenticate that goes with it. Static. */
struct slice jwt_challenge(enum exchange_end end);

#endif
