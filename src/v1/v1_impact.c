/* SPDX-License-Identifier: Apache-2.0 */
/* What a change of the configuration would do to traffic, worked out before it is made: targets that come and
 * go, capacity, and how many keys of the hashing methods would move to another target. */
#include "v1/v1.h"

#include "balance/churn.h"
#include "config/names.h"

enum {
    KEYS = 10000,       /* tried for each group whose method hashes */
    MEASURED_MAX = 32,  /* such groups: one takes some ms */
    LISTED_MAX = 10000, /* targets named */
};

struct impact {
    struct arena arena;
    struct text added, removed, drained, restored, reweighted, groups;
    uint32_t n_listed, n_measured;
};

static void list_target(struct impact *impact, struct text *list, struct slice group, struct slice target)
{
    if (++impact->n_listed > LISTED_MAX)
        return;
    text_add(list, list->len ? SLICE(",{\"target_group\":") : SLICE("{\"target_group\":"));
    text_json(list, group);
    text_add(list, SLICE(",\"target\":"));
    text_json(list, target);
    text_add(list, SLICE("}"));
}

static void collect(struct names *names, const struct config_target_group *group)
{
    names_init(names);
    for (uint32_t i = 0; group && i < group->n_targets; i++)
        names_add(names, group->targets[i].endpoint.text, i, NULL);
    names_sort(names);
}

/* Of what takes new work. */
static uint64_t capacity_of(const struct config_target_group *group)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; group && i < group->n_targets; i++)
        if (group->targets[i].enabled && !group->targets[i].backup)
            sum += group->targets[i].weight;
    return sum;
}

static struct balance_pool pool_of(struct impact *impact, const struct config_target_group *group)
{
    uint32_t *weights = arena_array(&impact->arena, uint32_t, group->n_targets + 1);
    struct slice *names = arena_array(&impact->arena, struct slice, group->n_targets + 1);
    for (uint32_t i = 0; i < group->n_targets; i++) {
        weights[i] = group->targets[i].enabled && !group->targets[i].backup ? group->targets[i].weight : 0;
        names[i] = group->targets[i].endpoint.text;
    }
    return (struct balance_pool){.n = group->n_targets, .weights = weights, .names = names};
}

/* The share of hash keys that would go to another target, in per cent; below 0: not known, or nothing is
 * hashed. */
static double moved_pct(struct impact *impact, const struct config_target_group *before,
                        const struct config_target_group *after)
{
    enum churn_scheme scheme = CHURN_SCHEME_COUNT;
    struct churn churn;
    if (!before || !after)
        return -1;
    if (after->algorithm == BALANCE_IP_HASH)
        scheme = CHURN_IP_HASH;
    else if (after->algorithm == BALANCE_CONSISTENT_HASH)
        scheme = CHURN_RING;
    else if (after->algorithm == BALANCE_MAGLEV)
        scheme = CHURN_MAGLEV;
    if (scheme == CHURN_SCHEME_COUNT)
        return -1;
    if (before->algorithm != after->algorithm || before->hash_kind != after->hash_kind ||
        !slice_eq(before->hash_name, after->hash_name))
        return 100; /* another key or table: no client keeps its target but by chance */
    if (++impact->n_measured > MEASURED_MAX)
        return -1;
    struct balance_pool from = pool_of(impact, before), to = pool_of(impact, after);
    if (churn_measure(&from, &to, KEYS, &churn))
        return -1;
    return 100.0 * churn.moved[scheme] / churn.keys;
}

/* True when something about its targets differs. */
static bool compare_targets(struct impact *impact, const struct config_target_group *before,
                            const struct config_target_group *after)
{
    struct slice group = after ? after->name : before->name;
    struct names old, now;
    bool differs = false;
    collect(&old, before);
    collect(&now, after);
    for (uint32_t i = 0; after && i < after->n_targets; i++) {
        const struct config_target *target = &after->targets[i];
        const struct name *name = names_find(&old, target->endpoint.text);
        const struct config_target *was = name ? &before->targets[name->index] : NULL;
        if (was && was->weight == target->weight && was->enabled == target->enabled &&
            was->backup == target->backup)
            continue;
        differs = true;
        struct text *list = !was                               ? &impact->added
                            : was->enabled && !target->enabled ? &impact->drained
                            : !was->enabled && target->enabled ? &impact->restored
                                                               : &impact->reweighted;
        list_target(impact, list, group, target->endpoint.text);
    }
    for (uint32_t i = 0; before && i < before->n_targets; i++)
        if (!names_find(&now, before->targets[i].endpoint.text)) {
            differs = true;
            list_target(impact, &impact->removed, group, before->targets[i].endpoint.text);
        }
    names_fini(&old);
    names_fini(&now);
    return differs;
}

static void compare_groups(struct impact *impact, const struct config_target_group *before,
                           const struct config_target_group *after)
{
    struct text *out = &impact->groups;
    bool differs = compare_targets(impact, before, after);
    if (!differs && before && after && before->algorithm == after->algorithm &&
        before->hash_kind == after->hash_kind && slice_eq(before->hash_name, after->hash_name))
        return;
    uint64_t from = capacity_of(before), to = capacity_of(after);
    text_add(out, out->len ? SLICE(",{\"target_group\":") : SLICE("{\"target_group\":"));
    text_json(out, after ? after->name : before->name);
    text_printf(out, ",\"capacity_before\":%llu,\"capacity_after\":%llu,\"capacity_change_pct\":",
                (unsigned long long)from, (unsigned long long)to);
    if (from)
        text_printf(out, "%.2f", 100.0 * ((double)to - (double)from) / (double)from);
    else
        text_add(out, SLICE("null"));
    double moved = moved_pct(impact, before, after);
    if (moved >= 0)
        text_printf(out, ",\"hash_keys_moved_pct\":%.2f}", moved);
    else
        text_add(out, SLICE(",\"hash_keys_moved_pct\":null}"));
}

static void write_list(struct text *out, const char *name, struct text *list)
{
    text_printf(out, "\"%s\":[", name);
    text_add(out, text_slice(list));
    text_add(out, SLICE("],"));
    text_fini(list);
}

void v1_write_impact(const struct config *now, const struct config *tried, struct text *out)
{
    struct impact impact = {0};
    struct names old, next;
    arena_init(&impact.arena);
    names_init(&old);
    names_init(&next);
    for (uint32_t g = 0; g < now->n_target_groups; g++)
        names_add(&old, now->target_groups[g].name, g, NULL);
    for (uint32_t g = 0; g < tried->n_target_groups; g++)
        names_add(&next, tried->target_groups[g].name, g, NULL);
    names_sort(&old);
    names_sort(&next);
    for (uint32_t g = 0; g < tried->n_target_groups; g++) {
        const struct name *was = names_find(&old, tried->target_groups[g].name);
        compare_groups(&impact, was ? &now->target_groups[was->index] : NULL, &tried->target_groups[g]);
    }
    for (uint32_t g = 0; g < now->n_target_groups; g++)
        if (!names_find(&next, now->target_groups[g].name))
            compare_groups(&impact, &now->target_groups[g], NULL);
    text_add(out, SLICE("{"));
    write_list(out, "targets_added", &impact.added);
    write_list(out, "targets_removed", &impact.removed);
    write_list(out, "targets_drained", &impact.drained);
    write_list(out, "targets_restored", &impact.restored);
    write_list(out, "targets_reweighted", &impact.reweighted);
    write_list(out, "target_groups", &impact.groups);
    text_printf(out, "\"is_complete\":%s}",
                impact.n_listed <= LISTED_MAX && impact.n_measured <= MEASURED_MAX ? "true" : "false");
    names_fini(&old);
    names_fini(&next);
    arena_fini(&impact.arena);
}
