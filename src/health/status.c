/* SPDX-License-Identifier: Apache-2.0 */
#include "health/status.h"

#include "core/check.h"

const char *health_reason_word(enum health_reason reason)
{
    static const char *const words[] = {
#define HEALTH_REASON(id, kind, word, text) [HEALTH_REASON_##id] = word,
#include "health/reasons.def"
#undef HEALTH_REASON
    };
    iso_assert(reason < HEALTH_REASON_COUNT);
    return words[reason];
}
