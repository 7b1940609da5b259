/* SPDX-License-Identifier: Apache-2.0 */
/* Lays out the page: one row per object of a scope, one metric per line of the two tables, and each family
 * written over all rows of its scope. */
#include "metrics/metrics.h"

#include "metrics/metrics_row.h"
#include "snapshot/targets.h"
#include "upstream/departure.h"

#include <stdio.h>
#include <stdlib.h>

enum kind { KIND_COUNTER, KIND_SUM, KIND_HISTOGRAM, KIND_VALUE, KIND_CHOICE };

/* One line of counters.def or metrics.def. */
struct metric {
    enum scope scope;
    enum kind kind;
    enum prom_type type;
    const char *name; /* of a counter, it may end in one {label="value"} */
    const char *help;
    const char *label;
    size_t offset; /* in the scope's counters */
    value_fn *value;
    choice_fn *choice;
};

#define OFFSET_WORKER(member)   offsetof(struct worker_counters, member)
#define OFFSET_LISTENER(member) offsetof(struct listener_counters, member)
#define OFFSET_LIMIT(member)    offsetof(struct limit_counters, member)
#define OFFSET_GROUP(member)    offsetof(struct group_counters, member)
#define OFFSET_TARGET(member)   offsetof(struct target_counters, member)
/* Process metrics have whole names in the table, because not all begin with isobar_. */
#define NAME_PROCESS(text)     text
#define NAME_STORE(text)       "isobar_" text
#define NAME_WORKER(text)      "isobar_" text
#define NAME_LISTENER(text)    "isobar_" text
#define NAME_CERTIFICATE(text) "isobar_" text
#define NAME_LIMIT(text)       "isobar_" text
#define NAME_GROUP(text)       "isobar_" text
#define NAME_NAME(text)        "isobar_" text
#define NAME_TARGET(text)      "isobar_" text

static const struct metric metrics[] = {
#define COUNTER(in, id, text, what)                                                                          \
    {.scope = SCOPE_##in,                                                                                    \
     .kind = KIND_COUNTER,                                                                                   \
     .type = PROM_COUNTER,                                                                                   \
     .name = "isobar_" text,                                                                                 \
     .help = what,                                                                                           \
     .offset = OFFSET_##in(id)},
#include "observe/counters.def"
#undef COUNTER
#define SUM(in, member, text, what)                                                                          \
    {.scope = SCOPE_##in,                                                                                    \
     .kind = KIND_SUM,                                                                                       \
     .type = PROM_GAUGE,                                                                                     \
     .name = NAME_##in(text),                                                                                \
     .help = what,                                                                                           \
     .offset = OFFSET_##in(member)},
#define HISTOGRAM(in, member, text, what)                                                                    \
    {.scope = SCOPE_##in,                                                                                    \
     .kind = KIND_HISTOGRAM,                                                                                 \
     .type = PROM_HISTOGRAM,                                                                                 \
     .name = NAME_##in(text),                                                                                \
     .help = what,                                                                                           \
     .offset = OFFSET_##in(member)},
#define VALUE(in, prom_type, id, text, what)                                                                 \
    {.scope = SCOPE_##in,                                                                                    \
     .kind = KIND_VALUE,                                                                                     \
     .type = prom_type,                                                                                      \
     .name = NAME_##in(text),                                                                                \
     .help = what,                                                                                           \
     .value = value_##in##_##id},
#define CHOICE(in, prom_type, id, by, text, what)                                                            \
    {.scope = SCOPE_##in,                                                                                    \
     .kind = KIND_CHOICE,                                                                                    \
     .type = prom_type,                                                                                      \
     .name = NAME_##in(text),                                                                                \
     .help = what,                                                                                           \
     .label = by,                                                                                            \
     .choice = choices_##in##_##id},
#include "metrics/metrics.def"
};

static struct row *add_rows(struct page *page, enum scope scope, uint32_t n)
{
    page->rows[scope] = calloc(n + 1, sizeof(struct row));
    iso_assert(page->rows[scope] != NULL);
    page->n_rows[scope] = n;
    return page->rows[scope];
}

static void add_label(struct row *row, const char *name, struct slice value)
{
    row->labels[row->n_labels++] = (struct prom_label){name, value};
}

static void set_counters(struct row *row, const void *counters, size_t stride, uint32_t n_workers)
{
    row->counters = counters;
    row->stride = stride;
    row->n_workers = n_workers;
}

static void add_worker_rows(struct page *page)
{
    struct row *row = add_rows(page, SCOPE_WORKER, page->view->n_workers);
    for (uint32_t i = 0; i < page->view->n_workers; i++, row++) {
        row->index = i;
        snprintf(row->name, sizeof(row->name), "%u", i);
        add_label(row, "worker", slice_str(row->name));
        set_counters(row, page->view->workers[i].counters, 0, 1);
    }
}

static void add_listener_rows(struct page *page, const struct snapshot *snapshot)
{
    struct row *row = add_rows(page, SCOPE_LISTENER, snapshot->n_listeners);
    for (uint32_t i = 0; i < snapshot->n_listeners; i++, row++) {
        const struct listener_runtime *runtime = snapshot->listeners[i].runtime;
        row->listener = &snapshot->listeners[i];
        add_label(row, "listener", snapshot->listeners[i].config->name);
        set_counters(row, runtime->workers, sizeof(*runtime->workers), runtime->n_workers);
    }
}

static void add_limit_rows(struct page *page, const struct snapshot *snapshot)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < snapshot->n_listeners; i++)
        n += snapshot->listeners[i].n_limits;
    struct row *row = add_rows(page, SCOPE_LIMIT, n);
    for (uint32_t i = 0; i < snapshot->n_listeners; i++)
        for (uint32_t l = 0; l < snapshot->listeners[i].n_limits; l++, row++) {
            row->limit = &snapshot->listeners[i].limits[l];
            add_label(row, "listener", snapshot->listeners[i].config->name);
            add_label(row, "rule", row->limit->label);
            set_counters(row, row->limit->runtime->workers, sizeof(*row->limit->runtime->workers),
                         row->limit->runtime->n_workers);
        }
}

static void add_certificate_rows(struct page *page, const struct snapshot *snapshot)
{
    struct row *row = add_rows(page, SCOPE_CERTIFICATE, snapshot->n_certs);
    for (uint32_t i = 0; i < snapshot->n_certs; i++, row++) {
        row->cert = snapshot->certs[i];
        add_label(row, "certificate", snapshot->config->certificates[i].name);
    }
}

static uint32_t count_names(const struct snapshot *snapshot)
{
    uint32_t n = 0;
    for (uint32_t g = 0; g < snapshot->n_groups; g++)
        for (uint32_t i = 0; i < snapshot->groups[g].config->n_targets; i++)
            n += target_is_name(&snapshot->groups[g].config->targets[i]);
    return n;
}

/* Of targets that are names, as they are configured. */
static void add_name_rows(struct page *page, const struct snapshot *snapshot)
{
    struct row *row = add_rows(page, SCOPE_NAME, page->view->resolve ? count_names(snapshot) : 0);
    for (uint32_t g = 0; page->view->resolve && g < snapshot->n_groups; g++) {
        const struct config_target_group *group = snapshot->groups[g].config;
        for (uint32_t i = 0; i < group->n_targets; i++) {
            if (!target_is_name(&group->targets[i]))
                continue;
            struct resolve_name name = target_name(&group->targets[i]);
            add_label(row, "target_group", group->name);
            add_label(row, "target", group->targets[i].endpoint.text);
            resolve_find(page->view->resolve, name.kind, name.name, &row->view);
            row++;
        }
    }
}

static void set_target(struct row *row, struct slice group, struct backend *target)
{
    row->target = target;
    add_label(row, "target_group", group);
    add_label(row, "target", slice_str(target->name));
    set_counters(row, &target->workers->counters, sizeof(*target->workers), target->n_workers);
}

static void add_target_rows(struct row **next, const struct snap_group *group)
{
    for (uint32_t i = 0; i < group->n_targets; i++, ++*next) {
        struct row *row = *next;
        row->group = group;
        row->index = i;
        set_target(row, group->config->name, group->targets[i]);
    }
}

static void add_group_rows(struct page *page, const struct snapshot *snapshot)
{
    struct row *row = add_rows(page, SCOPE_GROUP, snapshot->n_groups);
    uint32_t n_targets = 0;
    for (uint32_t i = 0; i < snapshot->n_groups; i++, row++) {
        const struct group_runtime *runtime = snapshot->groups[i].runtime;
        row->group = &snapshot->groups[i];
        n_targets += row->group->n_targets;
        add_label(row, "target_group", row->group->config->name);
        set_counters(row, runtime->workers, sizeof(*runtime->workers), runtime->n_workers);
    }
    const struct departures *leaving = page->view->departures;
    for (const struct departure *one = leaving ? leaving->first : NULL; one; one = one->next)
        n_targets++;
    row = add_rows(page, SCOPE_TARGET, n_targets);
    for (uint32_t i = 0; i < snapshot->n_groups; i++)
        add_target_rows(&row, &snapshot->groups[i]);
    for (const struct departure *one = leaving ? leaving->first : NULL; one; one = one->next)
        set_target(row++, slice_str(one->backend->group_name), one->backend);
}

/* In one array so that a histogram is a counter with neighbours. */
static void sum_over_workers(const struct row *row, size_t offset, uint64_t *sums, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        sums[i] = 0;
    for (uint32_t worker = 0; worker < row->n_workers; worker++) {
        const counter *counters = (const counter *)(row->counters + worker * row->stride + offset);
        for (uint32_t i = 0; i < n; i++)
            sums[i] += counter_read(&counters[i]);
    }
}

static void write_histogram(struct page *page, const struct row *row, size_t offset)
{
    uint64_t sums[HISTOGRAM_BUCKETS + 1];
    struct prom_histogram out;
    _Static_assert(sizeof(struct histogram) == sizeof(sums) &&
                       offsetof(struct histogram, sum_us) == sizeof(sums) - sizeof(sums[0]),
                   "a histogram is its buckets and their sum");
    sum_over_workers(row, offset, sums, HISTOGRAM_BUCKETS + 1);
    memcpy(out.buckets, sums, sizeof(out.buckets));
    out.sum_us = sums[HISTOGRAM_BUCKETS];
    prom_histogram(&page->prom, row->labels, row->n_labels, &out);
}

/* The number of bytes of a counter's name before its {label="value"}, and that label. */
static size_t split_name(const char *name, struct prom_label *label, char *label_name, size_t cap)
{
    size_t len = strcspn(name, "{");
    label->name = NULL;
    if (!name[len])
        return len;
    const char *equals = strchr(name + len, '=');
    iso_assert(equals && equals[1] == '"');
    snprintf(label_name, cap, "%.*s", (int)(equals - name - len - 1), name + len + 1);
    label->name = label_name;
    label->value = slice_of(equals + 2, strcspn(equals + 2, "\""));
    return len;
}

static void write_sum(struct page *page, struct row *row, const struct metric *metric)
{
    char label_name[32];
    struct prom_label label;
    uint64_t sum;
    sum_over_workers(row, metric->offset, &sum, 1);
    if (metric->kind == KIND_SUM && (int64_t)sum < 0)
        sum = 0; /* read between the two workers that moved something from one to the other */
    split_name(metric->name, &label, label_name, sizeof(label_name));
    row->labels[row->n_labels] = label;
    prom_u64(&page->prom, row->labels, row->n_labels + (label.name != NULL), sum);
}

static void write_choices(struct page *page, struct row *row, const struct metric *metric)
{
    struct prom_label *label = &row->labels[row->n_labels];
    uint64_t value;
    label->name = metric->label;
    for (uint32_t i = 0; metric->choice(page, row, i, &label->value, &value); i++)
        prom_u64(&page->prom, row->labels, row->n_labels + 1, value);
}

static void write_samples(struct page *page, struct row *row, const struct metric *metric)
{
    switch (metric->kind) {
    case KIND_COUNTER:
    case KIND_SUM:
        write_sum(page, row, metric);
        break;
    case KIND_HISTOGRAM:
        write_histogram(page, row, metric->offset);
        break;
    case KIND_VALUE:
        prom_double(&page->prom, row->labels, row->n_labels, metric->value(page, row));
        break;
    case KIND_CHOICE:
        write_choices(page, row, metric);
        break;
    }
}

/* The metrics from `first` on that belong to the same family: counters that differ in their label only. */
static size_t family_size(size_t first)
{
    size_t len = strcspn(metrics[first].name, "{"), n = 1;
    while (first + n < iso_countof(metrics) && metrics[first].name[len] == '{' &&
           strncmp(metrics[first].name, metrics[first + n].name, len + 1) == 0)
        n++;
    return n;
}

static void write_family(struct page *page, size_t first, size_t n)
{
    const struct metric *metric = &metrics[first];
    char name[96];
    if (page->n_rows[metric->scope] == 0)
        return;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(metric->name, "{"), metric->name);
    prom_family(&page->prom, metric->type, name, metric->help);
    for (uint32_t i = 0; i < page->n_rows[metric->scope]; i++)
        for (size_t of = 0; of < n; of++)
            write_samples(page, &page->rows[metric->scope][i], &metrics[first + of]);
}

void metrics_write(struct text *text, const struct control_view *view, bool is_openmetrics)
{
    struct page page = {.view = view};
    process_read(&page.process);
    if (view->shared)
        shared_state_figures(view->shared, &page.shared);
    add_rows(&page, SCOPE_PROCESS, 1);
    add_rows(&page, SCOPE_STORE, view->store != NULL);
    add_worker_rows(&page);
    if (view->snapshot) {
        add_listener_rows(&page, view->snapshot);
        add_limit_rows(&page, view->snapshot);
        add_certificate_rows(&page, view->snapshot);
        add_group_rows(&page, view->snapshot);
        add_name_rows(&page, view->snapshot);
    }
    prom_begin(&page.prom, text, is_openmetrics);
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        for (size_t first = 0, n; first < iso_countof(metrics); first += n) {
            n = family_size(first);
            if (metrics[first].scope == scope)
                write_family(&page, first, n);
        }
    prom_end(&page.prom);
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        free(page.rows[scope]);
}
