/* SPDX-License-Identifier: Apache-2.0 */
/* How many keys a change of a pool moves to another target, under each way of hashing. Source: B4. */
#ifndef ISOBAR_BALANCE_CHURN_H
#define ISOBAR_BALANCE_CHURN_H

#include "balance/method.h"

/* hash mod N is no method of ours; it is what the others are compared with. */
enum churn_scheme { CHURN_MODULO, CHURN_IP_HASH, CHURN_RING, CHURN_MAGLEV, CHURN_SCHEME_COUNT };

struct churn {
    uint32_t keys;                      /* tried */
    uint32_t moved[CHURN_SCHEME_COUNT]; /* to a target of another name, or to or from none */
    double least;                       /* the part of all keys that has to move for the new shares to hold */
};

/* Tries `keys` keys on both pools, all targets eligible. ISO_ERR_INVALID when a pool cannot be served (see
 * balance_method.build). Threads: any. */
iso_err churn_measure(const struct balance_pool *before, const struct balance_pool *after, uint32_t keys,
                      struct churn *churn) ISO_MUST_USE;

#endif
