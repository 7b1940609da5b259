/* SPDX-License-Identifier: Apache-2.0 */
/* Which target of a group a request would go to: the group's own method is asked in a corner of moving state
 * made for this, once where a hash decides, many times where turns or chance do, so that the shares come out.
 */
#include "explain/explain_internal.h"

#include "health/states.h"
#include "proxy/select.h"

/* Divisible by every number of targets up to 10, so that turns come out even. */
enum { DRAWS = 5040, LOOKED_AT_MAX = 4 * 1000 * 1000, DRAWS_LEAST = 60 };

struct choice {
    struct explain *explain;
    struct explain_group *out;
    struct snap_group_worker corner;
    struct rng rng;
    uint64_t now_ns;
};

static bool is_full(const struct explain_group *out, uint32_t target)
{
    uint32_t limit = out->group->config->limits.requests;
    return limit && out->targets[target].in_flight >= limit;
}

/* As forward.c goes: the method's target, or another when it has no room. */
static uint32_t draw(struct choice *choice, const uint16_t *tried, uint32_t n_tried)
{
    uint16_t all[SELECT_TRIED_MAX];
    for (uint32_t i = 0; i < n_tried; i++)
        all[i] = tried[i];
    for (;;) {
        uint32_t target = select_in(choice->out->group, &choice->corner, choice->now_ns, &choice->rng,
                                    choice->out->hash, all, n_tried);
        if (target == BALANCE_NONE || !is_full(choice->out, target) || n_tried == SELECT_TRIED_MAX)
            return target;
        for (uint32_t i = 0; i < n_tried; i++)
            if (all[i] == target)
                return target; /* all that could be chosen are full: it waits */
        all[n_tried++] = (uint16_t)target;
    }
}

static const char *describe_hash(const struct explain *explain, const struct config_target_group *config)
{
    static const char *const kinds[] = {[CONFIG_HASH_CLIENT_IP] = "client_ip",
                                        [CONFIG_HASH_HEADER] = "header",
                                        [CONFIG_HASH_COOKIE] = "cookie",
                                        [CONFIG_HASH_QUERY] = "query",
                                        [CONFIG_HASH_PATH] = "path"};
    char ip[IP_TEXT_MAX];
    size_t n = ip_print(&explain->client, ip);
    struct arena *arena = (struct arena *)&explain->arena;
    if (config->hash_kind == CONFIG_HASH_PATH)
        return arena_printf(arena, "path %.*s", SLICE_ARG(explain->msg.path));
    if (config->hash_kind == CONFIG_HASH_CLIENT_IP)
        return arena_printf(arena, "client_ip %.*s", (int)n, ip);
    return arena_printf(arena, "%s %.*s, or client_ip %.*s where it is absent", kinds[config->hash_kind],
                        SLICE_ARG(config->hash_name), (int)n, ip);
}

static void read_targets(struct choice *choice)
{
    struct explain_group *out = choice->out;
    const struct snap_group *group = out->group;
    bool by_load = group->config->algorithm == BALANCE_LEAST_CONNECTIONS ||
                   group->config->algorithm == BALANCE_P2C_LEAST_REQUEST;
    out->targets = arena_array(&choice->explain->arena, struct explain_target, group->n_targets);
    for (uint32_t i = 0; i < group->n_targets; i++) {
        struct backend *backend = group->targets[i];
        struct explain_target *target = &out->targets[i];
        *target = (struct explain_target){
            .config = &group->settings[i],
            .state = atomic_load_explicit(&backend->health.state, memory_order_relaxed),
            .in_flight = atomic_load_explicit(&backend->in_flight, memory_order_relaxed),
            .connections = atomic_load_explicit(&backend->connections, memory_order_relaxed),
            .weight_pct = 100,
            .has_score = by_load && group->settings[i].weight,
        };
    }
}

static const char *why_eligible(const struct choice *choice, uint32_t i)
{
    const struct explain_target *target = &choice->out->targets[i];
    const struct health_status *health = &choice->out->group->targets[i]->health;
    enum health_reason reason =
        atomic_load_explicit(&((struct health_status *)health)->reason, memory_order_relaxed);
    bool is_panicking = choice->corner.is_panicking;
    struct arena *arena = &choice->explain->arena;
    if (target->is_eligible)
        return is_full(choice->out, i)          ? "limits.requests is reached: only when all are"
               : target->state != TARGET_ACTIVE ? "its health is ignored: too few are healthy (panic)"
               : target->config->backup         ? "a backup: no other target is usable"
               : target->weight_pct < 100       ? "it starts slowly"
                                                : "it may take work";
    if (!target->config->enabled)
        return "it is disabled";
    if (!(is_panicking ? health_is_usable_in_panic(health, true) : health_is_usable(health)))
        return target->state == TARGET_UNHEALTHY
                   ? arena_printf(arena, "unhealthy: %s", health_reason_word(reason))
                   : arena_printf(arena, "%s", target_state_word(target->state));
    if (target->config->weight == 0)
        return "its weight is 0";
    return target->config->backup ? "a backup: others are usable" : "others are known to be better";
}

static void judge_targets(struct choice *choice)
{
    struct explain_group *out = choice->out;
    const struct snap_group_worker *corner = &choice->corner;
    for (uint32_t i = 0; i < out->group->n_targets; i++) {
        struct explain_target *target = &out->targets[i];
        uint32_t ramp = corner->ramp_due_ns ? corner->ramp[i] : BALANCE_RAMP_FULL;
        target->is_eligible = corner->n_usable && balance_is_eligible(corner->eligible, i);
        target->weight_pct = (ramp * 100 + BALANCE_RAMP_FULL / 2) / BALANCE_RAMP_FULL;
        if (target->has_score)
            target->score = target->in_flight / (target->config->weight * ((double)ramp / BALANCE_RAMP_FULL));
        target->why = why_eligible(choice, i);
    }
}

/* Has none of those that may take work room for a request? Then requests wait, as many as limits.pending. */
static bool are_full(const struct explain_group *out)
{
    for (uint32_t i = 0; i < out->group->n_targets; i++)
        if (out->targets[i].is_eligible && !is_full(out, i))
            return false;
    return true;
}

/* Shares of the targets; the one that has everything, or BALANCE_NONE. */
static uint32_t draw_all(struct choice *choice)
{
    struct explain_group *out = choice->out;
    uint32_t n = out->group->n_targets, draws = out->hash_of ? 1 : DRAWS, only = BALANCE_NONE;
    uint32_t *drawn = arena_array(&choice->explain->arena, uint32_t, n + 1);
    if (n && draws > LOOKED_AT_MAX / n)
        draws = LOOKED_AT_MAX / n > DRAWS_LEAST ? LOOKED_AT_MAX / n : DRAWS_LEAST;
    for (uint32_t i = 0; i < draws; i++) {
        uint32_t target = draw(choice, NULL, 0);
        if (target == BALANCE_NONE)
            return BALANCE_NONE;
        drawn[target]++;
    }
    for (uint32_t i = 0; i < n; i++) {
        out->targets[i].share_pct = 100.0 * drawn[i] / draws;
        if (drawn[i] == draws)
            only = i;
    }
    return only;
}

static void draw_retries(struct choice *choice, uint32_t first)
{
    struct explain_group *out = choice->out;
    uint16_t tried[SELECT_TRIED_MAX] = {(uint16_t)first};
    uint32_t n = 1;
    while (n < out->group->config->retry.attempts && n < SELECT_TRIED_MAX) {
        uint32_t target = draw(choice, tried, n);
        if (target == BALANCE_NONE)
            return;
        tried[n++] = (uint16_t)target;
        out->next[out->n_next++] = target;
    }
}

static const char *describe_affinity(const struct choice *choice)
{
    const struct explain_group *out = choice->out;
    const struct config_affinity *config = &out->group->config->affinity;
    const struct affinity_view *view = &out->affinity;
    struct arena *arena = &choice->explain->arena;
    if (config->type == CONFIG_AFFINITY_COOKIE && !view->has_cookie)
        return arena_printf(arena, "there is no cookie %.*s", SLICE_ARG(config->cookie));
    if (config->type == CONFIG_AFFINITY_COOKIE && view->target == BALANCE_NONE)
        return arena_printf(arena, "cookie %.*s names no target of the group", SLICE_ARG(config->cookie));
    const char *known = view->has_cookie ? "its cookie" : "its address";
    if (view->target == BALANCE_NONE && out->group->shared)
        return arena_printf(arena, "%s is not known here; a request asks the store that nodes share first",
                            known);
    if (view->target == BALANCE_NONE)
        return arena_printf(arena, "the client is not bound by %s", known);
    const char *bound = arena_printf(arena, "the client is bound to %.*s by %s",
                                     SLICE_ARG(out->targets[view->target].config->endpoint.text), known);
    return view->may_serve ? bound
                           : arena_printf(arena, "%s, which may not serve: it will be bound anew", bound);
}

static const char *describe_choice(const struct choice *choice)
{
    const struct explain_group *out = choice->out;
    const char *method = out->group->method->name;
    struct arena *arena = &choice->explain->arena;
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->group->n_targets; i++)
        n += out->targets[i].share_pct > 0;
    if (out->fails)
        return exchange_end_text(out->fails);
    if (out->has_affinity && out->affinity.may_serve)
        return out->affinity_why;
    if (out->hash_of)
        return arena_printf(arena, "%s of %s", method, out->hash_of);
    if (out->chosen == BALANCE_NONE)
        return arena_printf(arena, "%s: one of %u, each by its share", method, n);
    return choice->corner.n_usable == 1 ? arena_printf(arena, "%s: the only one that may take work", method)
                                        : arena_printf(arena, "%s: it stands before all others now", method);
}

void explain_choice(struct explain *explain, struct explain_group *out, uint64_t now_ns, uint64_t wall_ns)
{
    const struct snap_group *group = out->group;
    bool is_relay = config_is_relayed(explain->listener->config->protocol);
    struct choice choice = {.explain = explain, .out = out, .now_ns = now_ns};
    rng_init(&choice.rng, 1); /* the same question gets the same answer */
    snapshot_corner_init(group, &choice.corner, &explain->arena);
    read_targets(&choice);
    if (is_relay || group->method->needs_hash) {
        out->hash = is_relay ? select_hash_address(&explain->client)
                             : select_hash(group, &explain->msg, &explain->client);
        if (group->method->needs_hash)
            out->hash_of = is_relay ? "the client's address" : describe_hash(explain, group->config);
    }
    out->chosen = draw_all(&choice);
    judge_targets(&choice);
    out->is_panicking = choice.corner.is_panicking;
    if (choice.corner.n_usable == 0)
        out->fails = choice.corner.n_weightless ? END_ALL_WEIGHTS_ZERO : END_NO_TARGET;
    else if (!is_relay && are_full(out) &&
             atomic_load_explicit(&group->runtime->pending, memory_order_relaxed) >=
                 group->config->limits.pending)
        out->fails = END_TARGETS_FULL;
    out->has_affinity = group->affinity && !is_relay;
    if (out->has_affinity) {
        affinity_peek(group, &explain->msg, &explain->client, now_ns, wall_ns, &out->affinity);
        out->affinity_why = describe_affinity(&choice);
        if (out->affinity.may_serve) {
            out->chosen = out->affinity.target;
            out->fails = END_NORMAL;
        }
    }
    if (out->hash_of && out->chosen != BALANCE_NONE)
        draw_retries(&choice, out->chosen);
    out->why = describe_choice(&choice);
}
