/* SPDX-License-Identifier: Apache-2.0 */
/* The state machine of a target (D3): states.def as one stepping function. Pure; whoever steps stores the
 * state and does the action. */
#ifndef ISOBAR_HEALTH_STATES_H
#define ISOBAR_HEALTH_STATES_H

#include "health/status.h"

enum target_event {
#define EVENT(id, word, when) TARGET_EVENT_##id,
#include "health/states.def"
    TARGET_EVENT_COUNT
};

enum target_action {
#define ACTION(id, what) TARGET_ACTION_##id,
#include "health/states.def"
    TARGET_ACTION_COUNT
};

struct target_step {
    enum target_state to;
    enum target_action action;
};

/* Where an event leads from a state and what is to be done then; every pair has an answer. */
struct target_step target_step(enum target_state from, enum target_event event);

/* "active"; for logs, metrics and the API. */
const char *target_state_word(enum target_state state);
const char *target_event_word(enum target_event event);

#endif
