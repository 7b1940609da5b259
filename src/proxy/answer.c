/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/answer.h"

#include "proxy/account.h"
#include "proxy/forward.h"
#include "transform/rewrite.h"

enum {
    RETRY_AFTER_NO_TARGET_S = 5, /* a probe or two later */
    ANSWER_BYTES = 32 * 1024,    /* of the scratch; values are made behind it */
};

/* A deadline is over for the caller whoever missed it; a connection that was not opened in time did no work.
 */
static enum grpc_status status_for_call(const struct exchange *x, unsigned http_status)
{
    bool is_late = x->end == END_GRPC_DEADLINE || x->end == END_RESPONSE_TIMEOUT;
    return is_late ? GRPC_DEADLINE_EXCEEDED : grpc_status_of(http_status);
}

/* A failure as a call understands it: trailers alone, which is a head of status 200 without a body. */
static void answer_call(struct exchange *x, struct h1_answer *how, struct h1_pair *fields)
{
    static const struct slice content_type = {"application/grpc", 16};
    struct scratch scratch = {x->worker->scratch + ANSWER_BYTES, x->worker->scratch + WORKER_SCRATCH_BYTES};
    x->grpc_status = (uint8_t)status_for_call(x, how->status);
    fields[0] = (struct h1_pair){SLICE("grpc-status"), grpc_status_text((enum grpc_status)x->grpc_status)};
    fields[1] = (struct h1_pair){SLICE("grpc-message"), grpc_message(how->body, &scratch)};
    *how = (struct h1_answer){.status = 200, .content_type = content_type, .fields = fields, .n_fields = 2};
}

static void answer(struct exchange *x, struct h1_answer *how)
{
    struct h1_pair call_fields[2];
    struct client *client = x->client;
    struct worker *worker = x->worker;
    size_t n;
    if (x->is_grpc && how->status >= 400)
        answer_call(x, how, call_fields);
    /* A client that waits for 100 may send its body or not: what follows cannot be told apart. */
    if (!x->keep_alive || (x->expects_continue && !x->request.is_done) || worker->says_close)
        client->close_after = true;
    how->head = x->method == HTTP_HEAD;
    how->client_minor = x->client_minor;
    how->close = client->close_after;
    how->date = worker_date(worker);
    how->more = x->listener->security;
    how->n_more = x->listener->n_security;
    x->status = (uint16_t)how->status;
    x->answer_begun = true;
    if (client->downstream->answer(client, how, &n) == CONN_FAILED) {
        exchange_abort(x, END_CLIENT_ABORT);
        return;
    }
    exchange_answered(x);
}

void exchange_answer_bare(struct client *client, unsigned status, const char *word, const char *text,
                          bool json, bool head, unsigned client_minor)
{
    struct worker *worker = client->listener->worker;
    struct h1_answer how = {.status = status,
                            .reason_word = slice_str(word),
                            .body = slice_str(text),
                            .json = json,
                            .head = head,
                            .client_minor = client_minor,
                            .close = client->close_after,
                            .date = worker_date(worker)};
    size_t n;
    enum conn_result written = client->downstream->answer(client, &how, &n);
    struct listener_counters *counters = client->listener->counters;
    counter_add(status >= 500 ? &counters->requests_5xx : &counters->requests_4xx, 1);
    const struct snapshot_log *log = client->listener->current->snapshot->log;
    if (log) {
        struct accesslog_entry entry = {
            .wall_ns = worker->loop.wall_ns,
            .client = client->peer,
            .peer = client->peer,
            .peer_port = client->peer_port,
            .listener = client->listener->current->config->name,
            .protocol = client->downstream->protocol ? client->downstream->protocol : "HTTP/1.1",
            .status = (uint16_t)status,
            .sent_bytes = n,
            .reason = word};
        exchange_write_log(worker, log, &entry);
    }
    if (written == CONN_FAILED)
        client->downstream->cut(client, END_CLIENT_ABORT);
    else
        client->downstream->next(client);
}

static void fail_with(struct exchange *x, enum exchange_end end, unsigned status, const char *word,
                      const char *text)
{
    x->end = (uint8_t)end;
    x->discard = true;
    forward_leave_pending(x);
    exchange_drop_upstream(x, false);
    if (x->answer_begun || status == 0) {
        exchange_abort(x, end);
        return;
    }
    struct h1_answer how = {.status = status,
                            .reason_word = slice_str(word),
                            .body = slice_str(text),
                            .json = x->wants_json,
                            .retry_after_s = status == 503 ? RETRY_AFTER_NO_TARGET_S : 0};
    answer(x, &how);
}

void exchange_fail(struct exchange *x, enum exchange_end end)
{
    fail_with(x, end, exchange_end_status(end), exchange_end_word(end), exchange_end_text(end));
}

void exchange_reject_body(struct exchange *x, enum http_reject why)
{
    x->reject = (uint8_t)why;
    x->client->close_after = x->client->unread_request = true;
    fail_with(x, END_BAD_BODY, http_reject_status(why), http_reject_word(why), http_reject_text(why));
}

void exchange_answer_limited(struct exchange *x, uint32_t retry_after_s, const struct h1_pair *fields,
                             uint32_t n_fields)
{
    struct h1_answer how = {.status = exchange_end_status(END_RATE_LIMITED),
                            .reason_word = slice_str(exchange_end_word(END_RATE_LIMITED)),
                            .body = slice_str(exchange_end_text(END_RATE_LIMITED)),
                            .json = x->wants_json,
                            .retry_after_s = retry_after_s,
                            .fields = fields,
                            .n_fields = n_fields};
    x->end = END_RATE_LIMITED;
    x->discard = true;
    answer(x, &how);
}

void exchange_answer_challenge(struct exchange *x, enum exchange_end end, struct slice challenge)
{
    const struct h1_pair field = {SLICE("WWW-Authenticate"), challenge};
    unsigned status = exchange_end_status(end);
    struct h1_answer how = {.status = status,
                            .reason_word = slice_str(exchange_end_word(end)),
                            .body = slice_str(exchange_end_text(end)),
                            .json = x->wants_json,
                            .fields = &field,
                            .n_fields = status == 401};
    x->end = (uint8_t)end;
    x->discard = true;
    answer(x, &how);
}

static void redirect(struct exchange *x, const struct config_redirect *to, const struct http_message *msg)
{
    struct scratch scratch = {x->worker->scratch + ANSWER_BYTES, x->worker->scratch + WORKER_SCRATCH_BYTES};
    struct slice location;
    if (!rewrite_redirect(to, msg, x->listener->tls != NULL, &scratch, &location)) {
        exchange_fail(x, END_HEAD_GREW);
        return;
    }
    struct h1_answer how = {.status = to->status, .reason_word = SLICE("redirect"), .location = location};
    x->end = END_REDIRECT;
    answer(x, &how);
}

static void respond(struct exchange *x, const struct config_respond *with)
{
    struct h1_answer how = {.status = with->status,
                            .body = with->body,
                            .fields = (const struct h1_pair *)with->headers,
                            .n_fields = with->n_headers};
    x->end = END_RESPOND;
    answer(x, &how);
}

_Static_assert(sizeof(struct h1_pair) == sizeof(struct config_pair), "one is the other's twin below config/");

/* What a rule or the listener says to do; false: forward. */
bool exchange_answer_by_rule(struct exchange *x, const struct http_message *msg)
{
    const struct config_rule *rule = x->rule;
    const struct config_listener *listener = x->listener->config;
    int32_t group;
    switch (route_action(listener, rule)) {
    case ROUTE_REDIRECT:
        redirect(x, rule ? &rule->redirect : &listener->redirect, msg);
        return true;
    case ROUTE_RESPOND:
        respond(x, &rule->respond);
        return true;
    case ROUTE_DENY:
        fail_with(x, END_DENY, rule->deny_status, exchange_end_word(END_DENY),
                  http_status_reason(rule->deny_status));
        return true;
    case ROUTE_FORWARD:
        break;
    }
    group = rule ? route_forward(rule, &x->worker->rng) : listener->default_target_group;
    if (group < 0) {
        exchange_fail(x, rule ? END_ALL_WEIGHTS_ZERO : END_NO_ROUTE);
        return true;
    }
    x->group = &x->snapshot->groups[group];
    return false;
}
