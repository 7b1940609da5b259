/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/admit.h"

#include "config/schema.h"
#include "core/clock.h"
#include "guard/sources.h"

void admit_build(struct snapshot *snapshot, struct registry *registry, struct snap_listener *listener)
{
    const struct config_listener *config = listener->config;
    const struct config_connection_rate *rate = &config->connection_rate;
    listener->sources = sources_compile(&config->sources, &snapshot->arena);
    listener->rule_sources =
        arena_alloc(&snapshot->arena, sizeof(*listener->rule_sources) * (config->n_rules + 1));
    for (uint32_t i = 0; i < config->n_rules; i++)
        listener->rule_sources[i] = sources_compile(&config->rules[i].sources, &snapshot->arena);
    if (!rate->set)
        return;
    const struct limiter_policy policy = {.algorithm = LIMITER_TOKEN_BUCKET,
                                          .requests = rate->connections,
                                          .period_ns = rate->period_ms * NS_PER_MS,
                                          .burst = rate->burst ? rate->burst : rate->connections};
    struct text name;
    text_init(&name);
    text_printf(&name, "%.*s\nconnection_rate %u/%u %u %u", SLICE_ARG(config->name), rate->connections,
                rate->period_ms, rate->burst, rate->max_clients);
    listener->connection_limit = registry_limit(registry, text_slice(&name), &policy, rate->max_clients);
    text_fini(&name);
}

/* The client's share of the rate. */
static uint64_t share_of(const struct limit_runtime *limit, const struct ip_addr *addr)
{
    return siphash(&limit->salt, slice_of((const char *)addr->bytes, addr->family == 6 ? 8 : 4));
}

bool admit(struct worker_listener *listener, const struct ip_addr *addr)
{
    const struct snap_listener *current = listener->current;
    struct limit_runtime *limit = current->connection_limit;
    struct limiter_verdict verdict;
    if (!sources_allow(current->sources, addr)) {
        counter_add(&listener->counters->connections_denied, 1);
        return false;
    }
    if (!limit || addr->family == 0)
        return true;
    limiter_take(limit->limiter, share_of(limit, addr), listener->worker->loop.now_ns, &verdict);
    if (!verdict.passes)
        counter_add(&listener->counters->connections_limited, 1);
    return verdict.passes;
}

bool admit_peek_rate(const struct snap_listener *listener, const struct ip_addr *addr, uint64_t now_ns,
                     struct limiter_verdict *verdict)
{
    const struct limit_runtime *limit = listener->connection_limit;
    if (!limit || addr->family == 0)
        return false;
    limiter_peek(limit->limiter, share_of(limit, addr), now_ns, verdict);
    return true;
}
