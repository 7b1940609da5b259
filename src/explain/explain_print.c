/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation as JSON, for the API, and as text, for people; the same facts in the same order. */
#include "explain/explain.h"

#include "health/states.h"

#include <stdio.h>

static void add_key(struct text *out, const char *key, struct slice value)
{
    text_printf(out, "\"%s\":", key);
    if (value.ptr)
        text_json(out, value);
    else
        text_printf(out, "null");
}

static struct slice print_ip(const struct ip_addr *ip, char out[IP_TEXT_MAX])
{
    return ip->family ? slice_of(out, ip_print(ip, out)) : SLICE("-");
}

static struct slice name_of_target(const struct explain_group *group, uint32_t target)
{
    return target == BALANCE_NONE ? (struct slice){0} : group->targets[target].config->endpoint.text;
}

static const char *action_of(const struct explain *e)
{
    return e->n_groups                  ? "forward"
           : e->is_closed               ? "close"
           : e->end == END_RATE_LIMITED ? "rate_limit"
           : e->refused_by              ? "refuse"
           : e->end == END_REDIRECT     ? "redirect"
           : e->end == END_RESPOND      ? "respond"
           : e->end == END_DENY         ? "deny"
                                        : "error";
}

static const char *word_of_answer(const struct explain *e)
{
    return e->reject ? http_reject_word(e->reject) : exchange_end_word(e->end);
}

static const char *text_of_answer(const struct explain *e)
{
    return e->reject ? http_reject_text(e->reject) : exchange_end_text(e->end);
}

static const char *protocol_word(enum config_protocol protocol)
{
    static const char *const words[] = {
        [CONFIG_HTTP] = "HTTP", [CONFIG_HTTPS] = "HTTPS", [CONFIG_TCP] = "TCP",   [CONFIG_TLS] = "TLS",
        [CONFIG_UDP] = "UDP",   [CONFIG_H2C] = "H2C",     [CONFIG_GRPC] = "GRPC",
    };
    return words[protocol];
}

static const char *verdict_word(enum explain_verdict verdict)
{
    static const char *const words[] = {[EXPLAIN_PASSES] = "passes",
                                        [EXPLAIN_REFUSES] = "refuses",
                                        [EXPLAIN_WOULD_REFUSE] = "would_refuse",
                                        [EXPLAIN_ASSUMED] = "assumed"};
    return words[verdict];
}

/* ---- JSON ---- */

static void json_stages(const struct explain *e, struct text *out)
{
    text_printf(out, ",\"stages\":[");
    for (uint32_t i = 0; i < e->n_stages; i++) {
        const struct explain_stage *stage = &e->stages[i];
        text_printf(out, "%s{\"stage\":\"%s\",\"verdict\":\"%s\",", i ? "," : "", stage->name,
                    verdict_word(stage->verdict));
        add_key(out, "why", slice_str(stage->why));
        text_printf(out, "}");
    }
    text_printf(out, "],");
    add_key(out, "refused_by", slice_str(e->refused_by));
}

static void json_rules(const struct explain *e, struct text *out)
{
    text_printf(out, "\"rules\":[");
    for (uint32_t i = 0; i < e->n_rules; i++) {
        const struct explain_rule *rule = &e->rules[i];
        text_printf(out, "%s{\"index\":%u,", i ? "," : "", rule->index);
        add_key(out, "name", rule->name);
        text_printf(out, ",\"taken\":%s,", rule->is_taken ? "true" : "false");
        add_key(out, "why", slice_str(rule->why));
        text_printf(out, "}");
    }
    text_printf(out, "]");
}

static const char *limit_algorithm(const struct config_rate_limit *config)
{
    return config->algorithm == CONFIG_LIMIT_TOKEN_BUCKET ? "token_bucket" : "sliding_window";
}

static const char *limit_key(const struct config_rate_limit *config, uint32_t i, struct slice *key)
{
    *key = config->n_key ? config->key[i] : SLICE("client_ip");
    return i ? "," : "";
}

static void json_limit(const struct explain *e, struct text *out)
{
    const struct config_rate_limit *config = e->limit ? e->limit->config : NULL;
    struct slice key;
    text_printf(out, ",\"rate_limit\":");
    if (!config) {
        text_printf(out, "null");
        return;
    }
    text_printf(out, "{\"key\":[");
    for (uint32_t i = 0; i < (config->n_key ? config->n_key : 1); i++) {
        text_printf(out, "%s", limit_key(config, i, &key));
        text_json(out, key);
    }
    text_printf(out,
                "],\"algorithm\":\"%s\",\"requests\":%u,\"per_s\":%g,\"dry_run\":%s,\"passes\":%s,"
                "\"limit\":%u,\"remaining\":%u,\"retry_after_ms\":%llu}",
                limit_algorithm(config), config->requests, config->period_ms / 1000.0,
                config->dry_run ? "true" : "false", e->limited.passes ? "true" : "false", e->limited.limit,
                e->limited.remaining, (unsigned long long)(e->limited.retry_ns / 1000000));
}

static void json_affinity(const struct explain_group *group, struct text *out)
{
    static const char *const types[] = {[CONFIG_AFFINITY_NONE] = "none",
                                        [CONFIG_AFFINITY_COOKIE] = "cookie",
                                        [CONFIG_AFFINITY_SESSION] = "session",
                                        [CONFIG_AFFINITY_CLIENT_IP] = "client_ip"};
    if (!group->has_affinity) {
        text_printf(out, "\"affinity\":null,");
        return;
    }
    text_printf(out, "\"affinity\":{\"type\":\"%s\",", types[group->group->config->affinity.type]);
    add_key(out, "bound_to", name_of_target(group, group->affinity.target));
    text_printf(out, ",\"followed\":%s,\"ttl_left_s\":%u,", group->affinity.may_serve ? "true" : "false",
                group->affinity.left_s);
    add_key(out, "why", slice_str(group->affinity_why));
    text_printf(out, "},");
}

static void json_target(const struct explain_target *target, struct text *out)
{
    text_printf(out, "{");
    add_key(out, "target", target->config->endpoint.text);
    text_printf(out,
                ",\"state\":\"%s\",\"enabled\":%s,\"backup\":%s,\"weight\":%u,\"weight_in_force_pct\":%u,"
                "\"in_flight\":%u,\"connections\":%u,\"eligible\":%s,",
                target_state_word(target->state), target->config->enabled ? "true" : "false",
                target->config->backup ? "true" : "false", target->config->weight, target->weight_pct,
                target->in_flight, target->connections, target->is_eligible ? "true" : "false");
    if (target->has_score)
        text_printf(out, "\"score\":%.6f,", target->score);
    else
        text_printf(out, "\"score\":null,");
    text_printf(out, "\"share_pct\":%.2f,", target->share_pct);
    add_key(out, "why", slice_str(target->why));
    text_printf(out, "}");
}

static void json_group(const struct explain_group *group, struct text *out)
{
    text_printf(out, "{");
    add_key(out, "target_group", group->group->config->name);
    text_printf(out, ",\"share_pct\":%.2f,\"algorithm\":\"%s\",\"panic\":%s,", group->share_pct,
                group->group->method->name, group->is_panicking ? "true" : "false");
    add_key(out, "hash_of", slice_str(group->hash_of));
    if (group->hash_of)
        text_printf(out, ",\"hash\":\"%016lx\",", group->hash);
    else
        text_printf(out, ",\"hash\":null,");
    json_affinity(group, out);
    text_printf(out, "\"candidates\":[");
    for (uint32_t i = 0; i < group->group->n_targets; i++) {
        text_printf(out, "%s", i ? "," : "");
        json_target(&group->targets[i], out);
    }
    text_printf(out, "],");
    add_key(out, "chosen", name_of_target(group, group->chosen));
    text_printf(out, ",\"retries_go_to\":[");
    for (uint32_t i = 0; i < group->n_next; i++) {
        text_printf(out, "%s", i ? "," : "");
        text_json(out, name_of_target(group, group->next[i]));
    }
    text_printf(out, "],\"fails\":");
    if (group->fails)
        text_printf(out, "{\"status\":%u,\"code\":\"%s\"}", exchange_end_status(group->fails),
                    exchange_end_word(group->fails));
    else
        text_printf(out, "null");
    text_printf(out, ",");
    add_key(out, "why", slice_str(group->why));
    text_printf(out, "}");
}

void explain_write_json(const struct explain *e, struct text *out)
{
    char peer[IP_TEXT_MAX], client[IP_TEXT_MAX];
    text_printf(out, "{\"request\":{");
    add_key(out, "method", e->query->method.ptr ? e->query->method : SLICE("GET"));
    text_printf(out, ",");
    add_key(out, "url", e->query->url);
    text_printf(out, ",");
    add_key(out, "host", e->msg.authority);
    text_printf(out, ",");
    add_key(out, "path", e->msg.path);
    text_printf(out, ",");
    add_key(out, "query", e->msg.query);
    text_printf(out, ",");
    add_key(out, "peer", print_ip(&e->peer, peer));
    text_printf(out, ",\"peer_is_trusted\":%s,", e->peer_trusted ? "true" : "false");
    add_key(out, "client_ip", print_ip(&e->client, client));
    text_printf(out, "},\"listener\":{");
    add_key(out, "name", e->listener->config->name);
    text_printf(out, ",");
    add_key(out, "address", e->listener->config->endpoint.text);
    text_printf(out, ",\"protocol\":\"%s\",", protocol_word(e->listener->config->protocol));
    add_key(out, "why", slice_str(e->listener_why));
    text_printf(out, "},");
    json_rules(e, out);
    json_stages(e, out);
    json_limit(e, out);
    text_printf(out, ",\"action\":\"%s\",\"answer\":", action_of(e));
    if (e->end) {
        text_printf(out, "{\"status\":%u,\"code\":\"%s\",", e->status, word_of_answer(e));
        add_key(out, "location", e->location);
        text_printf(out, ",");
        add_key(out, "why", slice_str(text_of_answer(e)));
        text_printf(out, "}");
    } else {
        text_printf(out, "null");
    }
    text_printf(out, ",\"forward\":[");
    for (uint32_t i = 0; i < e->n_groups; i++) {
        text_printf(out, "%s", i ? "," : "");
        json_group(&e->groups[i], out);
    }
    text_printf(out, "]}\n");
}

/* ---- text ---- */

static void text_stages(const struct explain *e, struct text *out)
{
    for (uint32_t i = 0; i < e->n_stages; i++) {
        const struct explain_stage *stage = &e->stages[i];
        bool is_would = stage->verdict == EXPLAIN_WOULD_REFUSE;
        text_printf(out, "%-11s%c %s: %s: %s\n", i ? "" : "access",
                    stage->verdict == EXPLAIN_REFUSES ? 'x' : '-', stage->name,
                    is_would ? "would refuse" : verdict_word(stage->verdict), stage->why);
    }
}

static void text_rules(const struct explain *e, struct text *out)
{
    for (uint32_t i = 0; i < e->n_rules; i++) {
        const struct explain_rule *rule = &e->rules[i];
        text_printf(out, "%-11s%c %u%s%.*s%s: %s%s\n", i ? "" : "rules", rule->is_taken ? '*' : '-',
                    rule->index, rule->name.len ? " \"" : "", SLICE_ARG(rule->name),
                    rule->name.len ? "\"" : "", rule->is_taken ? "taken: " : "", rule->why);
    }
    if (!e->rule && !e->reject && !e->refused_by && e->listener->config->protocol != CONFIG_TCP &&
        e->listener->config->protocol != CONFIG_UDP)
        text_printf(out, "%-11snone takes it: the listener's default\n", e->n_rules ? "" : "rules");
}

static void text_limit(const struct explain *e, struct text *out)
{
    const struct config_rate_limit *config = e->limit ? e->limit->config : NULL;
    struct slice key;
    if (!config)
        return;
    text_printf(out, "rate limit %u requests in %g s by ", config->requests, config->period_ms / 1000.0);
    for (uint32_t i = 0; i < (config->n_key ? config->n_key : 1); i++) {
        text_printf(out, "%s", limit_key(config, i, &key));
        text_printf(out, "%.*s", SLICE_ARG(key));
    }
    text_printf(out, " (%s): ", limit_algorithm(config));
    if (e->limited.passes)
        text_printf(out, "passes, %u of %u remain\n", e->limited.remaining, e->limited.limit);
    else
        text_printf(out, "%s, one passes in %.3f s\n",
                    config->dry_run ? "would be refused (dry run)" : "refused",
                    (double)e->limited.retry_ns / 1e9);
}

static void text_targets(const struct explain_group *group, struct text *out)
{
    int width = 6;
    for (uint32_t i = 0; i < group->group->n_targets; i++) {
        int len = (int)group->targets[i].config->endpoint.text.len;
        width = len > width ? len : width;
    }
    text_printf(out, "             %-*s  %-9s %6s %9s %9s %7s\n", width, "target", "state", "weight",
                "in flight", "score", "share");
    for (uint32_t i = 0; i < group->group->n_targets; i++) {
        const struct explain_target *target = &group->targets[i];
        char score[24] = "-";
        if (target->has_score)
            snprintf(score, sizeof(score), "%.4f", target->score);
        text_printf(out, "           %c %-*.*s  %-9s %6u %9u %9s %6.1f%%  %s\n",
                    i == group->chosen ? '*' : ' ', width, SLICE_ARG(target->config->endpoint.text),
                    target_state_word(target->state), target->config->weight, target->in_flight, score,
                    target->share_pct, target->why);
    }
}

static void text_group(const struct explain_group *group, struct text *out)
{
    text_printf(out, "forward    to target group %.*s", SLICE_ARG(group->group->config->name));
    text_printf(out, group->share_pct < 100 ? ", %.1f%% of the requests\n" : "\n", group->share_pct);
    text_printf(out, "algorithm  %s%s%s\n", group->group->method->name, group->hash_of ? " of " : "",
                group->hash_of ? group->hash_of : "");
    if (group->has_affinity)
        text_printf(out, "affinity   %s\n", group->affinity_why);
    if (group->is_panicking)
        text_printf(out, "panic      too few targets are healthy: health is ignored\n");
    text_printf(out, "candidates\n");
    text_targets(group, out);
    if (group->fails)
        text_printf(out, "answer     %u %s: %s\n", exchange_end_status(group->fails),
                    exchange_end_word(group->fails), group->why);
    else if (group->chosen == BALANCE_NONE)
        text_printf(out, "chosen     %s\n", group->why);
    else
        text_printf(out, "chosen     %.*s: %s\n", SLICE_ARG(name_of_target(group, group->chosen)),
                    group->why);
    for (uint32_t i = 0; i < group->n_next; i++)
        text_printf(out, "%s%.*s%s", i ? ", then " : "retries    go to ",
                    SLICE_ARG(name_of_target(group, group->next[i])), i + 1 == group->n_next ? "\n" : "");
}

void explain_write_text(const struct explain *e, struct text *out)
{
    char peer[IP_TEXT_MAX], client[IP_TEXT_MAX];
    struct slice from = print_ip(&e->peer, peer), who = print_ip(&e->client, client);
    text_printf(out, "request    %.*s %.*s from %.*s\n",
                SLICE_ARG(e->query->method.ptr ? e->query->method : SLICE("GET")), SLICE_ARG(e->query->url),
                SLICE_ARG(from));
    text_printf(out, "listener   %.*s (%.*s, %s): %s\n", SLICE_ARG(e->listener->config->name),
                SLICE_ARG(e->listener->config->endpoint.text), protocol_word(e->listener->config->protocol),
                e->listener_why);
    if (e->peer_trusted)
        text_printf(out, "client     %.*s, as the trusted proxy says\n", SLICE_ARG(who));
    text_rules(e, out);
    text_stages(e, out);
    text_limit(e, out);
    if (e->is_closed)
        text_printf(out, "answer     none: the connection is closed\n");
    if (e->end) {
        text_printf(out, "answer     %u %s: %s\n", e->status, word_of_answer(e), text_of_answer(e));
        if (e->location.len)
            text_printf(out, "location   %.*s\n", SLICE_ARG(e->location));
    }
    for (uint32_t i = 0; i < e->n_groups; i++)
        text_group(&e->groups[i], out);
}
