/* SPDX-License-Identifier: Apache-2.0 */
#include "balance/builtin.h"
#include "core/check.h"

static const struct balance_method *const methods[BALANCE_METHOD_COUNT] = {
#define METHOD(id, name, needs_hash, text) [BALANCE_##id] = &balance_method_##id,
#include "balance/methods.def"
#undef METHOD
};

const struct balance_method *balance_method_get(enum balance_method_id id)
{
    iso_assert(id < BALANCE_METHOD_COUNT);
    return methods[id];
}

bool balance_method_lookup(struct slice name, enum balance_method_id *id)
{
    for (unsigned i = 0; i < BALANCE_METHOD_COUNT; i++) {
        if (!slice_eq(name, slice_str(methods[i]->name)))
            continue;
        *id = (enum balance_method_id)i;
        return true;
    }
    return false;
}

size_t balance_no_state(const struct balance_pool *pool)
{
    return 0;
}
