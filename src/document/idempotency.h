/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that may be sent twice (G5): a POST with an Idempotency-Key is carried out once, and whoever sends
 * it again within a day gets the answer that the first one got. Bounded: beyond it what is oldest is
 * forgotten. Source: draft-ietf-httpapi-idempotency-key-header. */
#ifndef ISOBAR_DOCUMENT_IDEMPOTENCY_H
#define ISOBAR_DOCUMENT_IDEMPOTENCY_H

#include "api/api.h"

struct idempotency_table;
struct idempotency;

enum {
    IDEMPOTENCY_KEY_MAX = 256,
    IDEMPOTENCY_ENTRIES = 1000,
    IDEMPOTENCY_BYTES = 8 << 20,
    IDEMPOTENCY_S = 86400,
};

struct idempotency_table *idempotency_table_new(void);
void idempotency_table_free(struct idempotency_table **table);

/* True: carry the request out; *pending, NULL without a key, is then due to idempotency_end(). False: the
 * call has its answer, that of the first time or a refusal. */
bool idempotency_begin(struct api_call *call, struct idempotency **pending);
/* The request was answered: keeps the answer when it is a success, forgets the key otherwise. */
void idempotency_end(struct idempotency **pending, const struct api_call *call);

#endif
