/* SPDX-License-Identifier: Apache-2.0 */
/* Who the client is, and telling the target (A4): X-Forwarded-For, -Proto, -Host, -Port and X-Request-Id.
 * What an untrusted peer sent in these fields is replaced; what a trusted proxy sent is extended or kept. The
 * client address is the right-most address in X-Forwarded-For that is not a trusted proxy, walking from the
 * right and stopping at an entry that is no address (case C-134). */
#ifndef ISOBAR_TRANSFORM_FORWARDED_H
#define ISOBAR_TRANSFORM_FORWARDED_H

#include "config/model.h"
#include "core/random.h"
#include "core/scratch.h"
#include "http/message.h"

struct forwarded_trust {
    const struct ip_prefix *prefixes; /* borrows from the snapshot */
    uint32_t n;
};

/* Is the address one of the trusted proxies'? */
bool forwarded_is_trusted(const struct forwarded_trust *trust, const struct ip_addr *addr);

/* The client's address: the peer's own unless the peer is trusted. Reads every X-Forwarded-For line,
 * addresses with or without a port; the left-most when all are trusted proxies'. */
struct ip_addr forwarded_client(const struct forwarded_trust *trust, const struct ip_addr *peer,
                                const struct http_message *msg);

struct forwarded_facts {
    const struct ip_addr *peer;
    bool peer_trusted;
    bool tls;                /* the client came over TLS */
    uint16_t local_port;     /* that the client connected to */
    struct slice request_id; /* out: as forwarded (UUIDv7 made here, or the trusted peer's) */
};

/* Replaces or extends the fields on a request that is about to be forwarded; once per request, and before a
 * rule rewrites the host. From an untrusted peer Forwarded, X-Real-IP and X-Client-Cert-* are dropped as
 * well. From a trusted
 * one X-Forwarded-For becomes one field with the peer behind it, X-Request-Id is kept when it is 1 to 128
 * visible characters, and the others are kept as sent. `wall_ms` goes into the UUIDv7 (RFC 9562 5.7), which
 * is unique but no secret. False when scratch or the field array is full. Order of fields kept; ours come
 * last, in one piece. */
bool forwarded_apply(struct forwarded_facts *facts, struct http_message *msg, uint64_t wall_ms,
                     struct rng *rng, struct scratch *scratch);

#endif
