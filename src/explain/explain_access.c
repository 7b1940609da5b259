/* SPDX-License-Identifier: Apache-2.0 */
/* Who may come in: what accept.c, arrival.c and exchange_begin() ask of a connection and of a request, in
 * their order, each by the same functions of guard/ that they use, without taking anything. A stage that is
 * not configured is not listed. */
#include "explain/explain_internal.h"

#include "core/clock.h"
#include "guard/admit.h"
#include "guard/jwt.h"
#include "guard/ratelimit.h"
#include "guard/sources.h"
#include "shared/state.h"
#include "tls/server.h"

static void add(struct explain *out, const char *name, enum explain_verdict verdict, const char *why)
{
    iso_assert(out->n_stages < EXPLAIN_STAGES_MAX);
    out->stages[out->n_stages++] = (struct explain_stage){name, verdict, why};
    if (verdict == EXPLAIN_REFUSES)
        out->refused_by = name;
}

static bool judge(struct explain *out, const char *name, bool passes, const char *good, const char *bad)
{
    add(out, name, passes ? EXPLAIN_PASSES : EXPLAIN_REFUSES, passes ? good : bad);
    return passes;
}

static const char *print_ip(struct explain *out, const struct ip_addr *ip)
{
    char text[IP_TEXT_MAX];
    size_t n = ip_print(ip, text);
    return arena_printf(&out->arena, "%.*s", (int)n, text);
}

/* ---- connections ---- */

static bool has_room(struct explain *out)
{
    const struct snap_listener *listener = out->listener;
    uint32_t limit = listener->config->limits.connections;
    if (!limit || listener->config->protocol == CONFIG_UDP)
        return true;
    uint32_t n = atomic_load_explicit(&listener->runtime->connections, memory_order_relaxed);
    const char *why = arena_printf(&out->arena, "%u of limits.connections %u are open", n, limit);
    return judge(out, "connections", n < limit, why, why);
}

/* Without `via` the question is about a client that a proxy tells of. */
static bool is_proxied_well(struct explain *out)
{
    const struct config_proxy_protocol *proxy = &out->listener->config->proxy_protocol;
    const struct ip_addr *via = &out->query->via;
    bool is_known = false;
    if (!proxy->set)
        return true;
    if (!via->family) {
        add(out, "proxy_protocol", EXPLAIN_ASSUMED,
            "a proxy that is believed tells the client's address; name it by via to have it judged");
        return true;
    }
    for (uint32_t i = 0; i < proxy->n_from; i++)
        is_known |= ip_prefix_has(&proxy->from[i], via);
    if (!is_known && proxy->others == CONFIG_OTHERS_PLAIN)
        out->peer = *via; /* what it says of others is data */
    return judge(out, "proxy_protocol", is_known || proxy->others == CONFIG_OTHERS_PLAIN,
                 is_known ? arena_printf(&out->arena, "%s is believed", print_ip(out, via))
                          : "it is no proxy that is believed: the client is who connects",
                 arena_printf(&out->arena, "%s is not among proxy_protocol.from", print_ip(out, via)));
}

static bool may_connect(struct explain *out, uint64_t now_ns)
{
    const struct snap_listener *listener = out->listener;
    struct limiter_verdict verdict;
    const char *ip = print_ip(out, &out->peer);
    if (listener->sources &&
        !judge(out, "sources", sources_allow(listener->sources, &out->peer),
               arena_printf(&out->arena, "the listener lets %s connect", ip),
               arena_printf(&out->arena, "the listener lets %s not connect: it is closed at once", ip)))
        return false;
    if (!admit_peek_rate(listener, &out->peer, now_ns, &verdict))
        return true;
    return judge(out, "connection_rate", verdict.passes,
                 arena_printf(&out->arena, "%u of %u connections are left to %s", verdict.remaining,
                              verdict.limit, ip),
                 arena_printf(&out->arena, "no connection is left to %s for %.3f s: it is closed at once", ip,
                              (double)verdict.retry_ns / 1e9));
}

static void note_handshake(struct explain *out, struct slice server_name)
{
    bool is_required;
    if (!out->listener->tls || !tls_server_asks(out->listener->tls, server_name, &is_required))
        return;
    add(out, "client_certificate", EXPLAIN_ASSUMED,
        is_required ? "a good one is required; without it the handshake fails"
                    : "one may be shown; one that is not good fails the handshake");
}

bool explain_connection(struct explain *out, struct slice server_name, uint64_t now_ns)
{
    if (!has_room(out) || !is_proxied_well(out) || !may_connect(out, now_ns))
        return false;
    note_handshake(out, server_name);
    return true;
}

/* ---- requests ---- */

bool explain_head(struct explain *out, struct slice server_name)
{
    uint64_t most = out->listener->config->limits.body_bytes;
    struct slice host;
    uint16_t port;
    if (most && out->msg.framing == HTTP_BODY_LENGTH &&
        !judge(out, "body_bytes", out->msg.content_length <= most,
               "Content-Length is within limits.body_bytes",
               "Content-Length is more than limits.body_bytes")) {
        explain_answer(out, END_BODY_TOO_LARGE, 0);
        return false;
    }
    if (out->listener->tls && http_host_parse(out->msg.authority, &host, &port) &&
        tls_server_parts(out->listener->tls, server_name, host)) {
        add(out, "tls_name", EXPLAIN_REFUSES,
            "the host is under another TLS policy than the name that was connected to");
        explain_answer(out, END_MISDIRECTED, 0);
        return false;
    }
    return true;
}

static bool passes_sources(struct explain *out, uint32_t rule)
{
    const struct sources *sources = out->listener->rule_sources[rule];
    const char *ip = print_ip(out, &out->client);
    if (!sources || judge(out, "rule_sources", sources_allow(sources, &out->client),
                          arena_printf(&out->arena, "the rule lets %s in", ip),
                          arena_printf(&out->arena, "the rule does not let %s in", ip)))
        return true;
    explain_answer(out, END_DENIED_SOURCE, 0);
    return false;
}

static const char *describe_rest(struct explain *out)
{
    const struct limiter_verdict *verdict = &out->limited;
    return verdict->passes ? arena_printf(&out->arena, "%u of %u remain", verdict->remaining, verdict->limit)
                           : arena_printf(&out->arena, "nothing is left to the client for %.3f s",
                                          (double)verdict->retry_ns / 1e9);
}

static bool passes_limit(struct explain *out, uint32_t rule, uint64_t now_ns)
{
    out->limit = out->listener->rule_limits[rule];
    if (!out->limit)
        return true;
    char *scratch = arena_alloc(&out->arena, out->msg.query.len + 1);
    enum exchange_end end =
        ratelimit_peek(out->limit, &out->msg, &out->client, scratch, now_ns, &out->limited);
    switch (end) {
    case END_NORMAL:
        add(out, "rate_limit", EXPLAIN_PASSES, describe_rest(out));
        return true;
    case END_WOULD_RATE_LIMIT:
        add(out, "rate_limit", EXPLAIN_WOULD_REFUSE, describe_rest(out));
        return true;
    case END_RATE_UNKNOWN:
        add(out, "rate_limit", EXPLAIN_REFUSES, exchange_end_text(end));
        break;
    default:
        add(out, "rate_limit", EXPLAIN_REFUSES, describe_rest(out));
    }
    explain_answer(out, end, 0);
    return false;
}

/* What a check came to; claims and names that it adds to the request count from here on. */
static bool passes_check(struct explain *out, const char *name, enum exchange_end end, const char *good)
{
    if (judge(out, name, end == END_NORMAL, good, exchange_end_text(end)))
        return true;
    explain_answer(out, end, 0);
    return false;
}

static bool passes_token(struct explain *out, uint32_t rule, uint64_t wall_ns)
{
    const struct jwt_verifier *verifier = out->listener->rule_jwt[rule];
    return !verifier || passes_check(out, "jwt",
                                     jwt_check(verifier, &out->rule->jwt, wall_ns / NS_PER_S, &out->msg,
                                               arena_alloc(&out->arena, JWT_ROOM_BYTES), NULL),
                                     "the token is good");
}

static bool passes_password(struct explain *out, uint32_t rule)
{
    struct passwords *passwords = out->listener->rule_passwords[rule];
    const struct explain_query *query = out->query;
    if (!passwords)
        return true;
    enum exchange_end end = basic_auth_peek(passwords, &out->rule->basic_auth, &out->msg,
                                            arena_alloc(&out->arena, BASIC_AUTH_ROOM_BYTES), &out->password);
    if (end == END_NORMAL && !out->password.is_known && query->compared == passwords) {
        end = query->is_match ? END_NORMAL : END_BAD_CREDENTIALS;
    } else if (end == END_NORMAL && !out->password.is_known) {
        out->asks = passwords;
        add(out, "basic_auth", EXPLAIN_ASSUMED, "the password was not compared");
        return true;
    }
    return passes_check(out, "basic_auth", end, "the name and the password are good");
}

bool explain_access(struct explain *out, uint64_t now_ns, uint64_t wall_ns)
{
    if (!out->rule)
        return true;
    uint32_t rule = (uint32_t)(out->rule - out->listener->config->rules);
    return passes_sources(out, rule) && passes_limit(out, rule, now_ns) && passes_token(out, rule, wall_ns) &&
           passes_password(out, rule);
}
