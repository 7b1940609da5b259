/* SPDX-License-Identifier: Apache-2.0 */
/* The health of targets in the store's table of backends, for whoever asks there: every few seconds the
 * targets whose state changed since, as this node sees them. It is a picture for people and no source of
 * truth: nothing reads it back, it makes no version, and while the store is away nothing is queued. Source:
 * 003 "TABLE backends". */
#include "process/process_internal.h"

#include "core/clock.h"
#include "store/store.h"
#include "store/tables.h"

#include <stdlib.h>

enum { RECORD_MS = 5000 };

struct stored_states {
    struct process *process; /* borrows */
    struct store *store;     /* borrows */
    struct loop_timer timer;
    bool is_asked;
    uint64_t recorded_wall_ns; /* changes before this are in the store */
    uint64_t asked_wall_ns;
};

static const char *word_of(enum target_state state)
{
    static const char *const words[TARGET_STATE_COUNT] = {[TARGET_PENDING] = "PENDING",
                                                          [TARGET_ACTIVE] = "ACTIVE",
                                                          [TARGET_UNHEALTHY] = "UNHEALTHY",
                                                          [TARGET_DRAINING] = "DRAINING",
                                                          [TARGET_REMOVED] = "REMOVED"};
    return words[state];
}

#define LOAD(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* A name that has several addresses is one backend in the table, and the last of them speaks for it. */
static void add_target(const struct stored_states *states, const struct snap_group *group, uint32_t index,
                       struct text *rows)
{
    const struct health_status *health = &group->targets[index]->health;
    if (LOAD(health->changed_wall_ns) < states->recorded_wall_ns)
        return;
    tables_add_state(rows, group->config->name, group->config->targets[index].endpoint.text,
                     word_of(LOAD(health->state)), LOAD(health->checked_wall_ns) / NS_PER_MS,
                     LOAD(health->failures_in_row), LOAD(health->passes_in_row));
}

static void on_recorded(void *owner, const struct store_answer *answer)
{
    struct stored_states *states = owner;
    states->is_asked = false;
    if (answer->outcome == STORE_DONE)
        states->recorded_wall_ns = states->asked_wall_ns;
}

static void record(struct stored_states *states)
{
    const struct snapshot *snapshot = states->process->current;
    struct text rows;
    uint64_t now_ns = clock_wall_ns();
    text_init(&rows);
    for (uint32_t g = 0; g < snapshot->n_groups; g++)
        for (uint32_t t = 0; t < snapshot->groups[g].n_targets; t++)
            add_target(states, &snapshot->groups[g], t, &rows);
    if (rows.len) {
        text_printf(&rows, "]");
        states->is_asked = true;
        states->asked_wall_ns = now_ns;
        store_record_states(states->store, text_slice(&rows), on_recorded, states);
    }
    text_fini(&rows);
}

static void on_timer(struct loop *loop, struct loop_timer *timer)
{
    struct stored_states *states = container_of(timer, struct stored_states, timer);
    if (!states->is_asked && store_is_available(states->store))
        record(states);
    loop_timer_set(loop, timer, loop->now_ns + RECORD_MS * NS_PER_MS);
}

struct stored_states *stored_states_new(struct process *process, struct store *store)
{
    struct stored_states *states = calloc(1, sizeof(*states));
    struct loop *loop = control_loop(process->control);
    iso_assert(states != NULL);
    states->process = process;
    states->store = store;
    loop_timer_init(&states->timer, on_timer);
    loop_timer_set(loop, &states->timer, loop->now_ns + RECORD_MS * NS_PER_MS);
    return states;
}

void stored_states_free(struct stored_states **taken)
{
    struct stored_states *states = *taken;
    *taken = NULL;
    loop_timer_remove(control_loop(states->process->control), &states->timer);
    free(states);
}
