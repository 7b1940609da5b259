/* SPDX-License-Identifier: Apache-2.0 */
#include "health/states.h"

#include "core/check.h"

static const struct target_step cells[TARGET_STATE_COUNT][TARGET_EVENT_COUNT] = {
#define CELL(from, event, to, action)                                                                        \
    [TARGET_##from][TARGET_EVENT_##event] = {TARGET_##to, TARGET_ACTION_##action},
#include "health/states.def"
};

struct target_step target_step(enum target_state from, enum target_event event)
{
    iso_assert(from < TARGET_STATE_COUNT && event < TARGET_EVENT_COUNT);
    return cells[from][event];
}

const char *target_state_word(enum target_state state)
{
    static const char *const words[] = {
#define STATE(id, word, what) [TARGET_##id] = word,
#include "health/states.def"
    };
    iso_assert(state < TARGET_STATE_COUNT);
    return words[state];
}

const char *target_event_word(enum target_event event)
{
    static const char *const words[] = {
#define EVENT(id, word, when) [TARGET_EVENT_##id] = word,
#include "health/states.def"
    };
    iso_assert(event < TARGET_EVENT_COUNT);
    return words[event];
}
