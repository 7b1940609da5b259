/* SPDX-License-Identifier: Apache-2.0 */
/* /api/sessions: which server a client is bound to, since when and for how long; and letting it go. A
 * session's id is the value of its cookie, or the client's address where that is what binds it. Source: 001
 * "Session Management"; G5, C2. */
#include "onepool/handlers.h"

#include "core/clock.h"
#include "onepool/onepool.h"
#include "proxy/affinity.h"
#include "shared/state.h"

/* Does the group keep sessions at all? What a cookie says itself is kept by the client. */
static bool has_sessions(struct api_call *call, const struct snap_group *group)
{
    if (group->config->affinity.type == CONFIG_AFFINITY_SESSION ||
        group->config->affinity.type == CONFIG_AFFINITY_CLIENT_IP)
        return true;
    api_fail(call, 404, "not_found", "target_group",
             group->config->affinity.type == CONFIG_AFFINITY_COOKIE
                 ? "target group %.*s keeps no sessions: its cookie names the server itself"
                 : "target group %.*s has no affinity, so no sessions",
             SLICE_ARG(group->config->name));
    return false;
}

/* `session` NULL: it is known from the store that nodes share, which says no more than the server. */
static void write_session(struct api_call *call, struct slice group, struct slice id, struct slice server,
                          const struct affinity_view *session)
{
    struct text *out = &call->reply.body;
    struct ip_addr ip;
    text_printf(out, "{\"session_id\":");
    text_json(out, id);
    text_printf(out, ",\"client_ip\":");
    if (ip_parse(id, &ip))
        text_json(out, id);
    else
        text_printf(out, "null");
    text_printf(out, ",\"server_id\":");
    text_json(out, server);
    text_printf(out, ",\"created_at\":");
    onepool_write_time(out, session ? clock_wall_ns() / NS_PER_MS - session->age_s * 1000ull : 0);
    if (session)
        text_printf(out, ",\"ttl_remaining_seconds\":%u", session->left_s);
    else
        text_printf(out, ",\"ttl_remaining_seconds\":null");
    text_printf(out, ",\"target_group\":");
    text_json(out, group);
    text_printf(out, "}\n");
}

static void fail_unbound(struct api_call *call, struct slice id)
{
    struct slice any;
    api_fail(call, 404, "not_found", api_query(call, "client_ip", &any) ? "client_ip" : "session_id",
             "no server is bound to \"%.*s\"", SLICE_ARG(id));
}

/* A question to the store that nodes share: another one may have bound the client. */
struct shared_question {
    struct shared_call call; /* lent while it is asked */
    struct api_call *api;
    struct slice group, id;
};

static void on_shared_answer(struct loop *loop, void *arg)
{
    struct shared_question *question = container_of((struct shared_call *)arg, struct shared_question, call);
    struct api_call *call = question->api;
    const struct shared_call *asked = &question->call;
    switch (asked->answer) {
    case SHARED_FOUND:
        write_session(call, question->group, question->id, slice_of(asked->value, asked->value_len), NULL);
        break;
    case SHARED_NONE:
        fail_unbound(call, question->id);
        break;
    case SHARED_NO_ANSWER:
        api_fail(call, 503, "no_answer", "",
                 "this process knows no such session, and the shared store does not answer");
        call->reply.retry_after_s = 1;
        break;
    }
    api_finish(call);
}

/* False: there is nobody to ask. */
static bool ask_shared(struct api_call *call, const struct snap_group *group, struct slice id)
{
    struct shared_question *question = arena_new(&call->arena, struct shared_question);
    struct shared_call *ask = &question->call;
    struct ip_addr ip;
    if (!group->shared || !call->view->loop)
        return false;
    *question = (struct shared_question){
        .api = call, .group = arena_slice(&call->arena, group->config->name), .id = id};
    *ask = (struct shared_call){.home = call->view->loop, .answered = on_shared_answer, .op = SHARED_FIND};
    if (ip_parse(id, &ip) ? !shared_key_of_client(ask, group->config->name, &ip)
                          : !shared_key_of_session(ask, id))
        return false;
    api_defer(call);
    shared_state_post(group->shared, ask);
    return true;
}

void api_sessions_find(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    struct affinity_view session;
    struct slice id;
    struct ip_addr ip;
    if (!group)
        return;
    bool by_address = api_query(call, "client_ip", &id);
    if (!by_address && !api_query(call, "session_id", &id)) {
        api_fail(call, 400, "invalid", "client_ip", "say whose: client_ip=ADDRESS or session_id=ID");
        return;
    }
    if (by_address && !ip_parse(id, &ip)) {
        api_fail(call, 400, "invalid", "client_ip", "is \"%.*s\", expected an IP address", SLICE_ARG(id));
        return;
    }
    if (!has_sessions(call, group))
        return;
    if (affinity_session_find(group, id, clock_mono_ns(), &session))
        write_session(call, group->config->name, id, group->settings[session.target].endpoint.text, &session);
    else if (!ask_shared(call, group, id))
        fail_unbound(call, id);
}

void api_sessions_end(struct api_call *call)
{
    const struct snap_group *group = onepool_group(call);
    if (!group || !has_sessions(call, group))
        return;
    /* What nodes share is forgotten everywhere, whether it was known here or not. */
    bool was_here = affinity_session_end(group, call->params[0]);
    if (was_here || group->shared)
        call->reply.status = 204;
    else
        api_fail(call, 404, "not_found", "session_id", "there is no session \"%.*s\"",
                 SLICE_ARG(call->params[0]));
}
