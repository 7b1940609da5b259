/* SPDX-License-Identifier: Apache-2.0 */
#include "store/migrations.h"

#include "core/check.h"

#define MIGRATION(number, sql) {number, sql},
const struct migration migrations[] = {
#include "store/migrations.def"
};
#undef MIGRATION
const size_t migrations_n = iso_countof(migrations);
