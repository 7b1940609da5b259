/* SPDX-License-Identifier: Apache-2.0 */
/* Signatures of JSON Web Signatures (RFC 7515, RFC 7518): HS256, RS256 and ES256. A key verifies the one
 * algorithm that it is for, so no token can choose another. Keys are immutable: any thread may verify. */
#ifndef ISOBAR_TLS_JWS_H
#define ISOBAR_TLS_JWS_H

#include "core/err.h"
#include "core/slice.h"

struct jws_key;

/* ISO_ERR_INVALID: a key that is too short or no key at all. Numbers are big-endian, as in a JWK. Owns: the
 * caller. */
iso_err jws_key_hmac(struct slice secret, struct jws_key **out) ISO_MUST_USE; /* 32 bytes at least */
iso_err jws_key_rsa(struct slice modulus, struct slice exponent,
                    struct jws_key **out) ISO_MUST_USE; /* 2048 bits */
iso_err jws_key_p256(struct slice x, struct slice y, struct jws_key **out) ISO_MUST_USE;
void jws_key_free(struct jws_key *key);

/* "HS256", "RS256" or "ES256". */
struct slice jws_key_algorithm(const struct jws_key *key);
bool jws_verify(const struct jws_key *key, struct slice input, struct slice signature);

#endif
