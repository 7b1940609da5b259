/* SPDX-License-Identifier: Apache-2.0 */
/* All rules of a listener stand in one array, sorted by host, then by where on the path they apply, then by
 * precedence, so that every list that matching walks is a range of it. Matching tries the hosts from the most
 * precise on; under each the exact path, prefixes from the longest on, patterns, and the rules for any path.
 */
#include "route/route.h"

#include "core/hash.h"
#include "route/route_rule.h"
#include "route/route_tree.h"

#include <stdlib.h>

enum { HOST_MAX = 255 };

/* The rules of one host. */
struct route_host {
    struct slice name;
    const struct route_node *tree;
    struct route_range patterns, any;
};

struct host_map {
    const struct route_host **slots; /* open addressing; NULL when the map is empty */
    uint32_t mask;
};

struct route_table {
    struct route_rule *rules; /* owns their patterns */
    uint32_t n_rules;
    struct host_map exact, wildcards;
    uint64_t wildcard_lengths[(HOST_MAX + 64) / 64]; /* bits: a wildcard of this length exists */
    const struct route_host *any;                    /* NULL: none */
};

struct route_scratch {
    struct pattern_scratch *patterns; /* owns */
    counter *gave_up;                 /* borrows from the worker; may be NULL */
};

/* Exact paths and prefixes share a tree, hence come first and mixed, by path. */
static int path_rank(const struct route_rule *rule)
{
    return rule->path_class == ROUTE_PATH_EXACT ? ROUTE_PATH_PREFIX : rule->path_class;
}

static int compare_rules(const void *left, const void *right)
{
    const struct route_rule *a = left, *b = right;
    int order;
    if ((order = a->host_class - b->host_class))
        return order;
    if ((order = slice_compare(a->host, b->host)))
        return order;
    if ((order = path_rank(a) - path_rank(b)))
        return order;
    if ((order = slice_compare(a->path, b->path)))
        return order;
    if ((order = a->path_class - b->path_class))
        return order;
    if (a->path_class != ROUTE_PATH_REGEX && a->n_conditions != b->n_conditions)
        return a->n_conditions > b->n_conditions ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static uint32_t run_of_host(const struct route_rule *rules, uint32_t n)
{
    uint32_t i = 1;
    while (i < n && rules[i].host_class == rules[0].host_class && slice_eq(rules[i].host, rules[0].host))
        i++;
    return i;
}

/* Takes the rules at the front of `*rest` whose class is at most `last`. */
static struct route_range take_run(struct route_range *rest, enum route_path_class last)
{
    struct route_range run = {rest->rules, 0};
    while (run.n < rest->n && rest->rules[run.n].path_class <= last)
        run.n++;
    rest->rules += run.n;
    rest->n -= run.n;
    return run;
}

static const struct route_host *compile_host(const struct route_rule *rules, uint32_t n, struct arena *arena)
{
    struct route_host *host = arena_new(arena, struct route_host);
    struct route_range rest = {rules, n};
    struct route_range in_tree = take_run(&rest, ROUTE_PATH_PREFIX);
    host->name = rules[0].host;
    host->tree = route_tree_build(in_tree.rules, in_tree.n, arena);
    host->patterns = take_run(&rest, ROUTE_PATH_REGEX);
    host->any = take_run(&rest, ROUTE_PATH_ANY);
    return host;
}

static void map_init(struct host_map *map, uint32_t n, struct arena *arena)
{
    uint32_t size = 2;
    while (size < n * 2)
        size *= 2;
    map->slots = arena_array(arena, const struct route_host *, size);
    map->mask = size - 1;
}

static void map_add(struct host_map *map, const struct route_host *host)
{
    uint32_t at = (uint32_t)iso_hash64(host->name, 0) & map->mask;
    while (map->slots[at])
        at = (at + 1) & map->mask;
    map->slots[at] = host;
}

static const struct route_host *map_find(const struct host_map *map, struct slice name)
{
    uint32_t at = (uint32_t)iso_hash64(name, 0) & map->mask;
    while (map->slots[at] && !slice_eq(map->slots[at]->name, name))
        at = (at + 1) & map->mask;
    return map->slots[at];
}

static void compile_hosts(struct route_table *table, struct arena *arena)
{
    uint32_t n_hosts[3] = {0};
    for (uint32_t at = 0; at < table->n_rules; at += run_of_host(table->rules + at, table->n_rules - at))
        n_hosts[table->rules[at].host_class]++;
    if (n_hosts[ROUTE_HOST_EXACT])
        map_init(&table->exact, n_hosts[ROUTE_HOST_EXACT], arena);
    if (n_hosts[ROUTE_HOST_WILDCARD])
        map_init(&table->wildcards, n_hosts[ROUTE_HOST_WILDCARD], arena);
    for (uint32_t at = 0, run; at < table->n_rules; at += run) {
        run = run_of_host(table->rules + at, table->n_rules - at);
        const struct route_host *host = compile_host(table->rules + at, run, arena);
        switch ((enum route_host_class)table->rules[at].host_class) {
        case ROUTE_HOST_EXACT:
            map_add(&table->exact, host);
            break;
        case ROUTE_HOST_WILDCARD:
            map_add(&table->wildcards, host);
            if (host->name.len <= HOST_MAX) /* no longer one can match */
                table->wildcard_lengths[host->name.len / 64] |= 1ull << host->name.len % 64;
            break;
        case ROUTE_HOST_ANY:
            table->any = host;
            break;
        }
    }
}

iso_err route_compile(const struct config_listener *listener, struct arena *arena, struct route_table **table,
                      struct iso_diag *diag)
{
    struct route_table *new = arena_new(arena, struct route_table);
    iso_err result = ISO_OK;
    new->n_rules = listener->n_rules;
    new->rules = arena_array(arena, struct route_rule, new->n_rules);
    for (uint32_t i = 0; i < new->n_rules; i++) {
        iso_err err = route_rule_init(listener, i, arena, &new->rules[i], diag);
        result = result ? result : err;
    }
    if (result) {
        route_table_fini(new);
        return result;
    }
    if (new->n_rules)
        qsort(new->rules, new->n_rules, sizeof(new->rules[0]), compare_rules);
    compile_hosts(new, arena);
    *table = new;
    return ISO_OK;
}

void route_table_fini(struct route_table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < table->n_rules; i++)
        route_rule_fini(&table->rules[i]);
    table->n_rules = 0;
}

struct route_scratch *route_scratch_new(void)
{
    struct route_scratch *scratch = calloc(1, sizeof(*scratch));
    iso_assert(scratch != NULL);
    scratch->patterns = pattern_scratch_new();
    return scratch;
}

void route_scratch_free(struct route_scratch *scratch)
{
    if (!scratch)
        return;
    pattern_scratch_free(scratch->patterns);
    free(scratch);
}

void route_scratch_count(struct route_scratch *scratch, counter *gave_up)
{
    scratch->gave_up = gave_up;
}

static const struct config_rule *match_range(struct route_range range, struct route_request *request)
{
    for (uint32_t i = 0; i < range.n; i++) {
        enum route_miss miss = route_rule_miss(&range.rules[i], request);
        if (iso_unlikely(request->trace != NULL))
            request->trace[request->n_traced++] =
                (struct route_verdict){range.rules[i].rule, miss, request->missed, true};
        if (miss == ROUTE_HOLDS)
            return range.rules[i].rule;
    }
    return NULL;
}

static const struct config_rule *match_host(const struct route_host *host, struct route_request *request)
{
    const struct config_rule *found;
    struct route_range exact;
    const struct route_node *prefix = route_tree_find(host->tree, request->path, &exact);
    if ((found = match_range(exact, request)))
        return found;
    for (; prefix; prefix = prefix->shorter)
        if ((found = match_range(prefix->prefix, request)))
            return found;
    if ((found = match_range(host->patterns, request)))
        return found;
    return match_range(host->any, request);
}

/* The rules of wildcards from the longest on. Only suffixes of a length that some wildcard has are looked up.
 */
static const struct config_rule *match_wildcards(const struct route_table *table, struct slice host,
                                                 struct route_request *request)
{
    for (size_t at = 1; at < host.len; at++) {
        size_t len = host.len - at;
        if (host.ptr[at] != '.' || !(table->wildcard_lengths[len / 64] >> len % 64 & 1))
            continue;
        const struct route_host *hit = map_find(&table->wildcards, slice_of(host.ptr + at, len));
        const struct config_rule *found = hit ? match_host(hit, request) : NULL;
        if (found)
            return found;
    }
    return NULL;
}

/* The host asked for in lower case, as rules are compared with it. A longer one than any name in the DNS
 * loses its beginning, for its end may still belong to a wildcard; `*is_whole` is false then. */
static struct slice lower_host(const struct http_message *request, char out[HOST_MAX], bool *is_whole)
{
    struct slice host = route_host(request->authority);
    *is_whole = host.len <= HOST_MAX;
    if (!*is_whole)
        host = slice_of(host.ptr + host.len - HOST_MAX, HOST_MAX);
    for (size_t i = 0; i < host.len; i++)
        out[i] = ascii_lower(host.ptr[i]);
    return slice_of(out, host.len);
}

static const struct config_rule *match_named(const struct route_table *table, struct route_request *request)
{
    char lower[HOST_MAX];
    bool is_whole;
    struct slice host = lower_host(request->message, lower, &is_whole);
    const struct route_host *hit = table->exact.slots && is_whole ? map_find(&table->exact, host) : NULL;
    const struct config_rule *found = hit ? match_host(hit, request) : NULL;
    if (!found && table->wildcards.slots)
        found = match_wildcards(table, host, request);
    return found;
}

static const struct config_rule *match_all(const struct route_table *table, struct route_request *request)
{
    const struct config_rule *found = NULL;
    if (table->exact.slots || table->wildcards.slots)
        found = match_named(table, request);
    return found || !table->any ? found : match_host(table->any, request);
}

const struct config_rule *route_match(const struct route_table *table, struct http_message *request,
                                      const struct ip_addr *client, struct route_scratch *scratch)
{
    if (table->n_rules == 0)
        return NULL;
    struct route_request tried = {
        .message = request, .client = client, .path = request->path, .patterns = scratch->patterns};
    const struct config_rule *found = match_all(table, &tried);
    if (iso_unlikely(tried.gave_up) && scratch->gave_up)
        counter_add(scratch->gave_up, tried.gave_up);
    return found;
}

static bool host_fits(const struct route_rule *rule, struct slice host, bool is_whole)
{
    return rule->host_class == ROUTE_HOST_ANY ||
           (rule->host_class == ROUTE_HOST_EXACT ? is_whole && slice_eq(rule->host, host)
                                                 : host.len > rule->host.len && slice_ends(host, rule->host));
}

static bool path_fits(const struct route_rule *rule, struct slice path)
{
    return rule->path_class == ROUTE_PATH_EXACT    ? slice_eq(rule->path, path)
           : rule->path_class == ROUTE_PATH_PREFIX ? route_prefix_has(rule->path, path)
                                                   : true;
}

/* What would have become of a rule that was not reached. */
static struct route_verdict judge_unreached(const struct route_rule *rule, struct route_request *request)
{
    char lower[HOST_MAX];
    bool is_whole;
    struct slice host = lower_host(request->message, lower, &is_whole);
    enum route_miss miss = !host_fits(rule, host, is_whole)  ? ROUTE_MISS_HOST
                           : !path_fits(rule, request->path) ? ROUTE_MISS_PATH
                                                             : route_rule_miss(rule, request);
    return (struct route_verdict){rule->rule, miss, request->missed, false};
}

const struct config_rule *route_explain(const struct route_table *table, struct http_message *request,
                                        const struct ip_addr *client, struct route_scratch *scratch,
                                        struct route_verdict *verdicts)
{
    struct route_request tried = {.message = request,
                                  .client = client,
                                  .path = request->path,
                                  .patterns = scratch->patterns,
                                  .trace = verdicts};
    const struct config_rule *found = match_all(table, &tried);
    uint32_t n = tried.n_traced;
    bool *was_tried = calloc(table->n_rules + 1, sizeof(*was_tried)); /* by their place in the file */
    iso_assert(was_tried != NULL);
    for (uint32_t t = 0; t < n; t++)
        was_tried[verdicts[t].rule - (table->rules[0].rule - table->rules[0].order)] = true;
    for (uint32_t i = 0; i < table->n_rules; i++)
        if (!was_tried[table->rules[i].order])
            verdicts[n++] = judge_unreached(&table->rules[i], &tried);
    free(was_tried);
    return found;
}

int32_t route_forward(const struct config_rule *rule, struct rng *rng)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < rule->n_forward; i++)
        total += rule->forward[i].weight;
    if (total == 0)
        return -1;
    uint64_t drawn = rule->n_forward == 1 ? 0 : (uint64_t)((unsigned __int128)rng_next(rng) * total >> 64);
    for (uint32_t i = 0; i < rule->n_forward; i++) {
        if (drawn < rule->forward[i].weight)
            return (int32_t)rule->forward[i].target_group;
        drawn -= rule->forward[i].weight;
    }
    iso_unreachable("what is drawn lies below the sum of the weights");
}
