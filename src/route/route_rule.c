/* SPDX-License-Identifier: Apache-2.0 */
#include "route/route_rule.h"

static void init_host(struct route_rule *out, struct slice host, struct arena *arena)
{
    struct ip_addr addr;
    if (!host.ptr || slice_eq(host, SLICE("*"))) {
        out->host_class = ROUTE_HOST_ANY;
    } else if (slice_starts(host, SLICE("*."))) {
        out->host_class = ROUTE_HOST_WILDCARD;
        out->host = slice_of(host.ptr + 1, host.len - 1);
    } else if (host.ptr[0] != '[' && ip_parse(host, &addr) && addr.family == 6) { /* in a Host: [::1] */
        out->host_class = ROUTE_HOST_EXACT;
        out->host = slice_str(arena_printf(arena, "[%.*s]", SLICE_ARG(host)));
    } else {
        out->host_class = ROUTE_HOST_EXACT;
        out->host = host;
    }
}

/* The most precise condition on the path places the rule; a pattern beside it is one to check. */
static void init_path(struct route_rule *out, const struct config_match *match)
{
    out->path_class = match->path.ptr          ? ROUTE_PATH_EXACT
                      : match->path_prefix.ptr ? ROUTE_PATH_PREFIX
                      : match->path_regex.ptr  ? ROUTE_PATH_REGEX
                                               : ROUTE_PATH_ANY;
    if (out->path_class == ROUTE_PATH_EXACT)
        out->path = match->path;
    else if (out->path_class == ROUTE_PATH_PREFIX)
        out->path = route_prefix_trim(match->path_prefix);
    if (match->path_regex.ptr && out->path_class != ROUTE_PATH_REGEX)
        out->n_conditions++;
}

static void init_methods(struct route_rule *out, const struct config_match *match)
{
    for (uint32_t i = 0; i < match->n_methods; i++) {
        enum http_method method = http_method_lookup(match->methods[i]);
        if (method == HTTP_METHOD_OTHER)
            out->other_methods = true;
        else
            out->methods |= 1u << method;
    }
    out->n_conditions += match->n_methods > 0;
}

static bool wants_any(struct slice value)
{
    return slice_eq(value, SLICE("*"));
}

static void init_headers(struct route_rule *out, const struct config_match *match, struct arena *arena)
{
    out->headers = arena_array(arena, struct route_header, match->n_headers);
    for (uint32_t i = 0; i < match->n_headers; i++) {
        const struct config_pair *want = &match->headers[i];
        out->headers[i] = (struct route_header){
            .id = (uint8_t)http_field_lookup(want->name), .any_value = wants_any(want->value), .want = want};
    }
}

iso_err route_rule_init(const struct config_listener *listener, uint32_t index, struct arena *arena,
                        struct route_rule *out, struct iso_diag *diag)
{
    const struct config_rule *rule = &listener->rules[index];
    const struct config_match *match = &rule->match;
    out->rule = rule;
    out->order = index;
    init_host(out, match->host, arena);
    init_path(out, match);
    init_methods(out, match);
    init_headers(out, match, arena);
    out->n_conditions += match->n_headers + match->n_cookies + match->n_query + (match->n_sources > 0);
    out->is_free = out->n_conditions == 0 && !match->path_regex.ptr;
    if (!match->path_regex.ptr)
        return ISO_OK;
    char fault[PATTERN_FAULT_MAX];
    iso_err err = pattern_compile(match->path_regex, &out->pattern, fault);
    if (err)
        diag_add(diag, DIAG_ERROR, "", 0, 0, arena_printf(arena, "rules/%u/match/path_regex", index),
                 "listener \"%.*s\": \"%.*s\" is no regular expression (PCRE2): %s",
                 SLICE_ARG(listener->name), SLICE_ARG(match->path_regex), fault);
    return err;
}

void route_rule_fini(struct route_rule *rule)
{
    pattern_free(rule->pattern);
    rule->pattern = NULL;
}

static bool method_holds(const struct route_rule *rule, const struct http_message *msg)
{
    if (rule->methods >> msg->method & 1)
        return true;
    if (msg->method != HTTP_METHOD_OTHER || !rule->other_methods)
        return false;
    const struct config_match *match = &rule->rule->match;
    for (uint32_t i = 0; i < match->n_methods; i++)
        if (slice_eq(match->methods[i], msg->method_text))
            return true;
    return false;
}

/* A field that came in several lines matches when one of them does. */
static bool header_holds(const struct route_header *header, const struct http_message *msg)
{
    for (uint32_t i = 0; i < msg->n_fields; i++) {
        const struct http_field *f = &msg->fields[i];
        if (f->id != header->id || f->flags & HTTP_FIELD_DROP)
            continue;
        if (f->id == HTTP_FIELD_OTHER && !slice_caseeq(http_field_name(f), header->want->name))
            continue;
        if (header->any_value || slice_eq(http_field_value(f), header->want->value))
            return true;
    }
    return false;
}

static bool headers_hold(const struct route_rule *rule, struct route_request *request)
{
    for (uint32_t i = 0; i < rule->rule->match.n_headers; i++)
        if (!header_holds(&rule->headers[i], request->message)) {
            request->missed = i;
            return false;
        }
    return true;
}

static bool value_holds(const struct config_pair *want, struct slice value)
{
    return wants_any(want->value) || slice_eq(want->value, value);
}

static bool cookies_hold(const struct config_match *match, struct route_request *request)
{
    struct slice value;
    for (uint32_t i = 0; i < match->n_cookies; i++)
        if (!http_message_cookie(request->message, match->cookies[i].name, &value) ||
            !value_holds(&match->cookies[i], value)) {
            request->missed = i;
            return false;
        }
    return true;
}

static bool query_holds(const struct config_match *match, struct route_request *request)
{
    struct slice value;
    for (uint32_t i = 0; i < match->n_query; i++)
        if (!http_query_find(request->message->query, match->query[i].name, &value) ||
            !value_holds(&match->query[i], value)) {
            request->missed = i;
            return false;
        }
    return true;
}

static bool source_holds(const struct config_match *match, const struct ip_addr *client)
{
    for (uint32_t i = 0; i < match->n_sources; i++)
        if (ip_prefix_has(&match->sources[i], client))
            return true;
    return match->n_sources == 0;
}

/* A pattern that gave up is no match, but for a rule that denies: there it must not open the door. */
static enum route_miss pattern_miss(const struct route_rule *rule, struct route_request *request)
{
    switch (pattern_match(rule->pattern, request->path, request->patterns)) {
    case PATTERN_MATCH:
        return ROUTE_HOLDS;
    case PATTERN_NO_MATCH:
        return ROUTE_MISS_PATTERN;
    case PATTERN_GAVE_UP:
        break;
    }
    request->gave_up++;
    return rule->rule->deny_status ? ROUTE_HOLDS : ROUTE_MISS_PATTERN_LIMIT;
}

enum route_miss route_rule_miss(const struct route_rule *rule, struct route_request *request)
{
    const struct config_match *match = &rule->rule->match;
    if (rule->is_free)
        return ROUTE_HOLDS;
    if (match->n_methods && !method_holds(rule, request->message))
        return ROUTE_MISS_METHOD;
    if (!source_holds(match, request->client))
        return ROUTE_MISS_SOURCE;
    if (!headers_hold(rule, request))
        return ROUTE_MISS_HEADER;
    if (!cookies_hold(match, request))
        return ROUTE_MISS_COOKIE;
    if (!query_holds(match, request))
        return ROUTE_MISS_QUERY;
    return rule->pattern ? pattern_miss(rule, request) : ROUTE_HOLDS;
}
