/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: look-ups and renewals, each one command, and bindings, which go through the outbox. */
#include "shared/state_internal.h"

#include "core/clock.h"
#include "shared/session_key.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    SEND_AT_ONCE = 256, /* writes under way at the same time, so that look-ups find room */
    RESEND_MS = 100,    /* until writes that failed are sent again */
};

/* The server's word wins; without one ours is put back. Nil: it is ours now. */
static const char renew_script[] = "local v = redis.call('GET', KEYS[1]) "
                                   "if v and v ~= ARGV[1] then return v end "
                                   "redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) return false";

static uint32_t now_s(const struct shared_state *state)
{
    return (uint32_t)(state->loop.now_ns / NS_PER_S);
}

static void give_back(struct shared_call *call, enum shared_answer answer)
{
    call->answer = answer;
    call->post = (struct loop_call){.fn = call->answered, .arg = call};
    loop_post(call->home, &call->post);
}

/* ---- writes ---- */

static void show_outbox(struct shared_state *state)
{
    atomic_store_explicit(&state->counters.waiting, outbox_count(state->outbox), memory_order_relaxed);
    atomic_store_explicit(&state->counters.lost, outbox_lost(state->outbox), memory_order_relaxed);
}

static void on_written(void *owner, void *arg, const struct resp_value *reply)
{
    struct shared_state *state = owner;
    bool is_stored = reply && reply->type != RESP_ERROR;
    if (reply && !is_stored)
        state_count(&state->counters.errors);
    if (is_stored)
        state_count(&state->counters.stored);
    state->n_writes--;
    outbox_done(state->outbox, arg, is_stored);
    show_outbox(state);
    if (is_stored)
        state_send_writes(state);
    else if (!state->resend_timer.due_ns)
        loop_timer_set(&state->loop, &state->resend_timer, state->loop.now_ns + RESEND_MS * NS_PER_MS);
}

static bool send_write(struct shared_state *state, struct outbox_entry *entry)
{
    char ttl[24];
    if (!entry->value.ptr)
        return redis_call(state->calls, (struct slice[]){SLICE("DEL"), entry->key}, 2, on_written, entry);
    uint64_t left_s = (entry->expires_ns - state->loop.now_ns + NS_PER_S - 1) / NS_PER_S;
    snprintf(ttl, sizeof(ttl), "%lu", left_s);
    struct slice args[] = {SLICE("SET"), entry->key, entry->value, SLICE("EX"), slice_str(ttl)};
    return redis_call(state->calls, args, iso_countof(args), on_written, entry);
}

void state_send_writes(struct shared_state *state)
{
    struct outbox_entry *entry;
    while (state->calls && redis_health(state->calls) == REDIS_GOOD && state->n_writes < SEND_AT_ONCE &&
           (entry = outbox_next(state->outbox, state->loop.now_ns))) {
        if (!send_write(state, entry)) {
            outbox_done(state->outbox, entry, false);
            return;
        }
        state->n_writes++;
    }
}

void state_on_resend(struct loop *loop, struct loop_timer *timer)
{
    state_send_writes(container_of(timer, struct shared_state, resend_timer));
}

void state_put_write(struct shared_state *state, struct slice key, struct slice value, uint32_t ttl_s)
{
    if (!state->calls)
        return;
    outbox_put(state->outbox, key, value, state->loop.now_ns + ttl_s * NS_PER_S);
    state_send_writes(state);
    show_outbox(state);
}

/* ---- calls of workers ---- */

static void on_found(void *owner, void *arg, const struct resp_value *reply)
{
    struct shared_state *state = owner;
    struct shared_call *call = arg;
    if (reply && reply->type == RESP_BULK && reply->text.len <= sizeof(call->value)) {
        memcpy(call->value, reply->text.ptr, reply->text.len);
        call->value_len = (uint16_t)reply->text.len;
        state_count(&state->counters.found);
        give_back(call, SHARED_FOUND);
        return;
    }
    bool is_error = reply && reply->type != RESP_NIL;
    state_count(is_error ? &state->counters.errors
                : reply  ? &state->counters.none
                         : &state->counters.unanswered);
    give_back(call, reply && !is_error ? SHARED_NONE : SHARED_NO_ANSWER);
}

/* What a renewal has to be put right with, when the server knows better. */
struct renewal {
    struct local_sessions *table;
    uint64_t key;
    uint32_t ttl_s;
};

static const struct shared_table *find_table(const struct shared_state *state,
                                             const struct local_sessions *table)
{
    for (uint32_t i = 0; i < state->n_tables; i++)
        if (state->tables[i].table == table)
            return &state->tables[i];
    return NULL;
}

static void on_renewed(void *owner, void *arg, const struct resp_value *reply)
{
    struct shared_state *state = owner;
    struct renewal *renewal = arg;
    if (reply && reply->type == RESP_ERROR)
        state_count(&state->counters.errors);
    else if (reply && reply->type == RESP_BULK && find_table(state, renewal->table))
        local_sessions_put(renewal->table, renewal->key, now_s(state), renewal->ttl_s,
                           session_target_half(reply->text));
    else if (reply)
        state_count(&state->counters.stored);
    free(renewal);
}

static void renew(struct shared_state *state, const struct shared_call *call)
{
    char ttl[16];
    struct renewal *renewal = malloc(sizeof(*renewal));
    iso_assert(renewal != NULL);
    *renewal = (struct renewal){call->table, call->table_key, call->ttl_s};
    snprintf(ttl, sizeof(ttl), "%u", call->ttl_s);
    struct slice args[] = {SLICE("EVAL"),
                           slice_str(renew_script),
                           SLICE("1"),
                           slice_of(call->key, call->key_len),
                           slice_of(call->value, call->value_len),
                           slice_str(ttl)};
    if (!state->calls || redis_health(state->calls) != REDIS_GOOD ||
        !redis_call(state->calls, args, iso_countof(args), on_renewed, renewal))
        free(renewal); /* the next use renews it, or a look-up finds that it has expired */
}

static void on_call(struct loop *loop, void *arg)
{
    struct shared_call *call = arg;
    struct shared_state *state = container_of(loop, struct shared_state, loop);
    struct slice key = slice_of(call->key, call->key_len), value = slice_of(call->value, call->value_len);
    switch (call->op) {
    case SHARED_FIND:
        if (state->calls && redis_health(state->calls) == REDIS_GOOD &&
            redis_call(state->calls, (struct slice[]){SLICE("GET"), key}, 2, on_found, call))
            return;
        state_count(&state->counters.unanswered);
        give_back(call, SHARED_NO_ANSWER);
        return;
    case SHARED_BIND:
        state_put_write(state, key, value, call->ttl_s);
        break;
    case SHARED_RENEW:
        renew(state, call);
        break;
    }
    give_back(call, SHARED_NONE);
}

bool shared_state_answers(const struct shared_state *state)
{
    return atomic_load_explicit(&((struct shared_state *)state)->health, memory_order_relaxed) == REDIS_GOOD;
}

void shared_state_post(struct shared_state *state, struct shared_call *call)
{
    call->post = (struct loop_call){.fn = on_call, .arg = call};
    loop_post(&state->loop, &call->post);
}

bool shared_key_of_session(struct shared_call *call, struct slice id)
{
    call->key_len = (uint16_t)session_key_of_id(call->key, sizeof(call->key), id);
    return call->key_len > 0;
}

bool shared_key_of_client(struct shared_call *call, struct slice group, const struct ip_addr *ip)
{
    call->key_len = (uint16_t)session_key_of_client(call->key, sizeof(call->key), group, ip);
    return call->key_len > 0;
}
