/* SPDX-License-Identifier: Apache-2.0 */
/* The set of targets that are watched, as the configuration in force has it: a new one is merged with what
 * there is, so that who stays keeps its state, who is new begins, and who has gone ends. */
#include "health/watch.h"

#include <stdlib.h>

static int identity_compare(struct slice group_a, struct slice name_a, struct slice group_b,
                            struct slice name_b)
{
    int order = slice_compare(group_a, group_b);
    return order ? order : slice_compare(name_a, name_b);
}

static int spec_compare(const void *a, const void *b)
{
    const struct health_spec *x = *(const struct health_spec *const *)a,
                             *y = *(const struct health_spec *const *)b;
    return identity_compare(x->group, x->name, y->group, y->name);
}

static int name_compare(const void *a, const void *b)
{
    return slice_compare(**(const struct slice *const *)a, **(const struct slice *const *)b);
}

/* A new set in the making; both sides are sorted by group and name. */
struct merge {
    struct health *health;
    const struct health_spec **specs;
    uint32_t n_specs, spec;     /* how many, the next one */
    uint32_t old_group, old;    /* of health->groups and health->watches: the next one */
    const struct slice **names; /* of the groups that change; NULL: all do */
    uint32_t n_names;
    struct watch_group **groups;
    uint32_t n_groups;
    struct watch **watches;
    uint32_t n_watches;
};

static bool stays(const struct merge *merge, const struct watch_group *group)
{
    const struct slice *name = &group->name;
    return merge->names && !bsearch(&name, merge->names, merge->n_names, sizeof(*merge->names), name_compare);
}

/* The group's watches as they are, to another place. */
static void move_group(struct merge *merge, struct watch_group *group)
{
    memcpy(merge->watches + merge->n_watches, merge->health->watches + merge->old,
           group->n * sizeof(*merge->watches));
    group->watches = merge->watches + merge->n_watches;
    merge->old += group->n;
    merge->n_watches += group->n;
    merge->groups[merge->n_groups++] = group;
}

static void end_group(struct merge *merge, struct watch_group *group)
{
    uint32_t end = merge->old + group->n;
    group->n = 0;
    while (merge->old < end)
        watch_leave(merge->health->watches[merge->old++]);
    group_free(group);
}

/* Walks the old targets of a group and its new ones side by side. `group`: NULL, a new one. */
static void merge_group(struct merge *merge, struct watch_group *group)
{
    struct health *health = merge->health;
    const struct health_spec *first = merge->specs[merge->spec];
    uint32_t end = merge->old + (group ? group->n : 0), from = merge->n_watches;
    if (!group)
        group = group_new(health, first->group);
    group->n = 0;
    group_set(group, first);
    for (; merge->spec < merge->n_specs && slice_eq(merge->specs[merge->spec]->group, first->group);
         merge->spec++) {
        const struct health_spec *spec = merge->specs[merge->spec];
        int order = -1;
        while (merge->old < end && (order = slice_compare(health->watches[merge->old]->name, spec->name)) < 0)
            watch_leave(health->watches[merge->old++]);
        /* With another status it is another target: the old one ended in between. */
        bool is_same = merge->old < end && order == 0 && health->watches[merge->old]->status == spec->status;
        struct watch *watch = is_same ? health->watches[merge->old++] : watch_new(health, group, spec);
        merge->watches[merge->n_watches++] = watch;
        group_set_watch(watch, spec);
        if (is_same)
            watch_update(watch, spec);
        else
            watch_enter(watch, spec);
    }
    while (merge->old < end)
        watch_leave(health->watches[merge->old++]);
    merge->groups[merge->n_groups++] = group;
    group_fill(group, merge->watches + from, merge->n_watches - from);
}

static void merge_all(struct merge *merge)
{
    struct health *health = merge->health;
    while (merge->old_group < health->n_groups || merge->spec < merge->n_specs) {
        struct watch_group *old =
            merge->old_group < health->n_groups ? health->groups[merge->old_group] : NULL;
        int order = !old ? 1
                    : merge->spec == merge->n_specs
                        ? -1
                        : slice_compare(old->name, merge->specs[merge->spec]->group);
        merge->old_group += order <= 0;
        if (order < 0 && stays(merge, old))
            move_group(merge, old);
        else if (order < 0)
            end_group(merge, old);
        else
            merge_group(merge, order == 0 ? old : NULL);
    }
}

void set_apply(struct health *health, const struct health_spec *specs, uint32_t n, const struct slice *groups,
               uint32_t n_groups)
{
    struct merge merge = {.health = health,
                          .specs = calloc(n + 1, sizeof(struct health_spec *)),
                          .n_specs = n,
                          .names = groups ? calloc(n_groups + 1, sizeof(struct slice *)) : NULL,
                          .n_names = n_groups,
                          .groups = calloc(health->n_groups + n + 1, sizeof(struct watch_group *)),
                          .watches = calloc(health->n_watches + n + 1, sizeof(struct watch *))};
    iso_assert(merge.specs && merge.groups && merge.watches && (merge.names || !groups));
    for (uint32_t i = 0; i < n; i++)
        merge.specs[i] = &specs[i];
    qsort(merge.specs, n, sizeof(struct health_spec *), spec_compare);
    for (uint32_t i = 0; groups && i < n_groups; i++)
        merge.names[i] = &groups[i];
    if (merge.names)
        qsort(merge.names, n_groups, sizeof(struct slice *), name_compare);
    merge_all(&merge);
    free(merge.specs);
    free(merge.names);
    free(health->watches);
    free(health->groups);
    health->watches = merge.watches;
    health->n_watches = merge.n_watches;
    health->groups = merge.groups;
    health->n_groups = merge.n_groups;
}

void set_free(struct health *health)
{
    for (uint32_t i = 0; i < health->n_watches; i++)
        watch_free(health->watches[i]);
    for (uint32_t g = 0; g < health->n_groups; g++)
        group_free(health->groups[g]);
    free(health->watches);
    free(health->groups);
}
