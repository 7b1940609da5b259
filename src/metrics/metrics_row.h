/* SPDX-License-Identifier: Apache-2.0 */
/* Between metrics.c, which lays out the page, and metrics_values.c, which knows where each value is. */
#ifndef ISOBAR_METRICS_METRICS_ROW_H
#define ISOBAR_METRICS_METRICS_ROW_H

#include "api/view.h"
#include "metrics/process.h"
#include "net/resolve.h"
#include "observe/prometheus.h"

enum scope {
    SCOPE_PROCESS,
    SCOPE_STORE,
    SCOPE_WORKER,
    SCOPE_LISTENER,
    SCOPE_LIMIT,
    SCOPE_CERTIFICATE,
    SCOPE_GROUP,
    SCOPE_NAME,
    SCOPE_TARGET,
    SCOPE_COUNT
};

/* One object of a scope: its labels, its counters, and where the values beside them are. */
struct row {
    struct prom_label labels[3]; /* one more than any scope has: for the label of a family */
    uint32_t n_labels;
    const char *counters; /* borrows; of worker 0; NULL: none */
    size_t stride;        /* from one worker's to the next one's */
    uint32_t n_workers;
    uint32_t index; /* of the worker or the target */
    const struct snap_listener *listener;
    const struct snap_limit *limit;
    const struct snap_group *group;
    const struct tls_cert *cert;
    struct resolve_view view;
    struct backend *target; /* only read */
    char name[12];          /* of a worker */
};

struct page {
    struct prom prom;
    const struct control_view *view;
    struct process_figures process;
    struct shared_figures shared;
    struct row *rows[SCOPE_COUNT]; /* owns */
    uint32_t n_rows[SCOPE_COUNT];
};

typedef double value_fn(const struct page *page, const struct row *row);
/* The i-th value of the family's label and its sample; false behind the last. */
typedef bool choice_fn(const struct page *page, const struct row *row, uint32_t i, struct slice *label,
                       uint64_t *value);

#define VALUE(scope, type, id, name, help)         value_fn value_##scope##_##id;
#define CHOICE(scope, type, id, label, name, help) choice_fn choices_##scope##_##id;
#include "metrics/metrics.def"

#endif
