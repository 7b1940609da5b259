/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy/access.h"

#include "core/clock.h"
#include "guard/basic_auth.h"
#include "guard/jwt.h"
#include "guard/ratelimit.h"
#include "guard/sources.h"
#include "proxy/affinity_share.h"
#include "proxy/answer.h"
#include "proxy/forward.h"

static uint32_t rule_index(const struct exchange *x)
{
    return (uint32_t)(x->rule - x->listener->config->rules);
}

static bool rate_refuses(struct exchange *x, const struct snap_limit *limit, struct http_message *msg)
{
    char texts[RATELIMIT_FIELDS][RATELIMIT_VALUE_MAX];
    struct h1_pair fields[RATELIMIT_FIELDS];
    struct limiter_verdict verdict;
    switch (ratelimit_take(limit, x->worker, msg, &x->client_ip, &verdict)) {
    case END_RATE_UNKNOWN:
        exchange_fail(x, END_RATE_UNKNOWN);
        return true;
    case END_RATE_LIMITED:
        break;
    case END_WOULD_RATE_LIMIT:
        x->end = END_WOULD_RATE_LIMIT;
        return false;
    default:
        if (limit->config->tells_all) {
            x->limit_told = verdict.remaining + 1;
            x->limit_reset_s = ratelimit_seconds(verdict.reset_ns);
        }
        return false;
    }
    uint32_t retry_s = ratelimit_seconds(verdict.retry_ns);
    ratelimit_print(limit, 0, retry_s, ratelimit_seconds(verdict.reset_ns), texts, fields);
    exchange_answer_limited(x, retry_s, fields, RATELIMIT_FIELDS);
    return true;
}

static bool jwt_refuses(struct exchange *x, const struct jwt_verifier *verifier, struct http_message *msg)
{
    struct worker *worker = x->worker;
    enum exchange_end end = jwt_check(verifier, &x->rule->jwt, worker->loop.wall_ns / NS_PER_S, msg,
                                      worker->token, worker->tokens);
    if (end == END_NORMAL)
        return false;
    exchange_answer_challenge(x, end, jwt_challenge(end));
    return true;
}

static void refuse_pair(struct exchange *x, enum exchange_end end)
{
    char room[BASIC_AUTH_CHALLENGE_MAX];
    exchange_answer_challenge(x, end, basic_auth_challenge(&x->rule->basic_auth, room));
}

static void on_compared(void *arg, bool is_good)
{
    struct exchange *x = arg;
    x->auth = NULL;
    if (!is_good)
        refuse_pair(x, END_BAD_CREDENTIALS);
    else if (!share_is_asking(x))
        forward_again(x);
}

static bool basic_auth_refuses(struct exchange *x, struct passwords *passwords, struct http_message *msg)
{
    enum exchange_end end =
        basic_auth_check(x->worker, passwords, &x->rule->basic_auth, msg, on_compared, x, &x->auth);
    if (end == END_NORMAL)
        return false;
    if (end == END_NO_CREDENTIALS)
        refuse_pair(x, end);
    else
        exchange_fail(x, end);
    return true;
}

bool access_refuses(struct exchange *x, struct http_message *msg)
{
    const struct snap_listener *listener = x->listener;
    if (!x->rule)
        return false;
    uint32_t rule = rule_index(x);
    if (!sources_allow(listener->rule_sources[rule], &x->client_ip)) {
        exchange_fail(x, END_DENIED_SOURCE);
        return true;
    }
    return (listener->rule_limits[rule] && rate_refuses(x, listener->rule_limits[rule], msg)) ||
           (listener->rule_jwt[rule] && jwt_refuses(x, listener->rule_jwt[rule], msg)) ||
           (listener->rule_passwords[rule] && basic_auth_refuses(x, listener->rule_passwords[rule], msg));
}

bool access_note_answer(struct exchange *x, struct http_message *msg, struct scratch *scratch)
{
    char(*texts)[RATELIMIT_VALUE_MAX] = (void *)scratch_take(scratch, RATELIMIT_FIELDS * RATELIMIT_VALUE_MAX);
    struct h1_pair fields[RATELIMIT_FIELDS];
    if (!texts)
        return false;
    ratelimit_print(x->listener->rule_limits[rule_index(x)], x->limit_told - 1, x->limit_reset_s,
                    x->limit_reset_s, texts, fields);
    for (int i = 0; i < RATELIMIT_FIELDS; i++)
        if (!http_message_add(msg, fields[i].name, fields[i].value))
            return false;
    return true;
}

bool access_is_asking(const struct exchange *x)
{
    return x->auth != NULL;
}

void access_leave(struct exchange *x)
{
    basic_auth_leave(&x->auth);
}
