/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/affinity_share.h"

#include "core/clock.h"
#include "proxy/access.h"
#include "proxy/affinity.h"
#include "proxy/exchange.h"
#include "proxy/forward.h"

enum { CALLS_MAX = 4096 }; /* of one worker, under way or held; more requests go without */

struct share_call {
    struct shared_call call;
    struct worker *worker;
    struct exchange *x; /* that holds it; NULL: nobody waits for its return */
    bool is_under_way;
    bool is_renewed;
};

void share_init(struct worker *worker)
{
    slab_init(&worker->share_calls, sizeof(struct share_call));
}

void share_fini(struct worker *worker)
{
    slab_fini(&worker->share_calls);
}

static void give_call(struct share_call *share)
{
    slab_give(&share->worker->share_calls, share);
}

/* A call with the client's name; NULL: too many, no memory, or the name is too long. */
static struct share_call *make_call(struct exchange *x, struct slice session)
{
    struct worker *worker = x->worker;
    struct share_call *share =
        worker->share_calls.live < CALLS_MAX ? slab_try_take(&worker->share_calls) : NULL;
    if (!share)
        return NULL;
    share->worker = worker;
    share->x = NULL;
    share->is_under_way = share->is_renewed = false;
    share->call.home = &worker->loop;
    bool fits = session.ptr ? shared_key_of_session(&share->call, session)
                            : shared_key_of_client(&share->call, x->group->config->name, &x->client_ip);
    if (!fits) {
        give_call(share);
        return NULL;
    }
    return share;
}

void share_note_client(struct exchange *x, struct slice session)
{
    if (!x->group->shared)
        return;
    x->share = make_call(x, session);
    if (!x->share)
        return;
    x->share->x = x;
    x->share->call.table = x->group->runtime->sessions;
    x->share->call.table_key = x->session_key;
}

/* The store's word has come, or its deadline. */
static void on_answer(struct loop *loop, void *arg)
{
    struct share_call *share = container_of((struct shared_call *)arg, struct share_call, call);
    struct exchange *x = share->x;
    share->is_under_way = false;
    if (!x) {
        give_call(share);
        return;
    }
    if (share->call.answer == SHARED_FOUND)
        affinity_adopt(x, slice_of(share->call.value, share->call.value_len));
    if (!access_is_asking(x))
        forward_again(x);
}

static void on_sent(struct loop *loop, void *arg)
{
    give_call(container_of((struct shared_call *)arg, struct share_call, call));
}

static void post(struct exchange *x, struct share_call *share, enum shared_op op, loop_call_fn *answered)
{
    share->call.op = op;
    share->call.answered = answered;
    share->is_under_way = true;
    shared_state_post(x->group->shared, &share->call);
}

void share_ask(struct exchange *x)
{
    if (x->share && shared_state_answers(x->group->shared))
        post(x, x->share, SHARED_FIND, on_answer);
}

bool share_is_asking(const struct exchange *x)
{
    return x->share && x->share->is_under_way;
}

void share_note_renewed(struct exchange *x)
{
    if (x->share)
        x->share->is_renewed = true;
}

/* Sends a call that nobody waits for; it is the store's until it comes back. */
static void tell_store(struct exchange *x, struct share_call *share, enum shared_op op, uint32_t target)
{
    struct slice name = x->group->pool.names[target];
    uint32_t ttl_s = x->group->config->affinity.ttl_ms / 1000;
    share->x = NULL;
    if (name.len > sizeof(share->call.value)) {
        give_call(share);
        return;
    }
    memcpy(share->call.value, name.ptr, name.len);
    share->call.value_len = (uint16_t)name.len;
    share->call.ttl_s = ttl_s ? ttl_s : 1;
    post(x, share, op, on_sent);
}

void share_bind(struct exchange *x, struct slice session, uint32_t target)
{
    struct share_call *share = x->share;
    if (!x->group->shared)
        return;
    if (session.ptr)
        share = make_call(x, session);
    else
        x->share = NULL;
    if (share)
        tell_store(x, share, SHARED_BIND, target);
}

void share_leave(struct exchange *x)
{
    if (!share_is_asking(x))
        return;
    x->share->x = NULL;
    x->share = NULL;
}

void share_end(struct exchange *x)
{
    struct share_call *share = x->share;
    share_leave(x);
    if (!x->share)
        return;
    x->share = NULL;
    if (share->is_renewed && x->bound_target != BALANCE_NONE)
        tell_store(x, share, SHARED_RENEW, x->bound_target);
    else
        give_call(share);
}
