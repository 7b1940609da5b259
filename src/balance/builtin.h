/* SPDX-License-Identifier: Apache-2.0 */
/* The methods by their ids, for method.c and the files that define them: balance_method_RANDOM and so on. */
#ifndef ISOBAR_BALANCE_BUILTIN_H
#define ISOBAR_BALANCE_BUILTIN_H

#include "balance/method.h"

typedef iso_err balance_build_fn(const struct balance_pool *pool, struct arena *arena,
                                 struct balance_table **table);
typedef size_t balance_state_bytes_fn(const struct balance_pool *pool);
typedef uint32_t balance_pick_fn(const struct balance_pool *pool, const struct balance_table *table,
                                 struct balance_state *state, const struct balance_pick *how);

#define METHOD(id, name, needs_hash, text) extern const struct balance_method balance_method_##id;
#include "balance/methods.def"
#undef METHOD

/* For methods that keep nothing between picks. */
balance_state_bytes_fn balance_no_state;

#endif
