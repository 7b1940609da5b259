/* SPDX-License-Identifier: Apache-2.0 */
/* A rule's JSON Web Tokens: a request passes when it brings one that a key of the rule's JWKS file has
 * signed, that is in force, and that is for us. Keys are read when the snapshot is built; the token is
 * verified on the worker, which costs some ten microseconds (RS256) and needs no other party. Source: RFC
 * 7519, RFC 7515, RFC 6750 3. */
#ifndef ISOBAR_PROXY_JWT_H
#define ISOBAR_PROXY_JWT_H

#include "core/diag.h"
#include "http/message.h"
#include "snapshot/snapshot.h"

struct exchange;
struct jwt_verifier; /* counted; control thread only but for verifying */

enum { JWT_BYTES_MAX = 8192, JWT_ROOM_BYTES = 3 * JWT_BYTES_MAX };

/* Those of a listener's rules, into listener->rule_jwt; the keys of `earlier` (of the same configuration;
 * NULL: none) are taken over. */
iso_err jwt_build(struct snapshot *snapshot, struct snap_listener *listener,
                  const struct snap_listener *earlier, struct iso_diag *diag) ISO_MUST_USE;
void jwt_unref(struct jwt_verifier **verifier);

/* Verifies the request's token and puts what its claims say into the fields that the rule names. True: there
 * is no good one, and the request has been answered with 401. */
bool jwt_refuses(struct exchange *x, const struct jwt_verifier *verifier, struct http_message *msg);

#endif
