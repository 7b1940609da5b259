/* SPDX-License-Identifier: Apache-2.0 */
/* Writes metrics in the text formats that Prometheus reads: its own (0.0.4) and OpenMetrics 1.0, which differ
 * in the name of a counter's family, in the end mark and in the content type. A family is opened once and
 * then gets all its samples; the writer refuses to mix. Names and label names are ours, label values
 * are anybody's and are escaped. Source: K1; case C-145; the OpenMetrics specification. */
#ifndef ISOBAR_OBSERVE_PROMETHEUS_H
#define ISOBAR_OBSERVE_PROMETHEUS_H

#include "core/text.h"
#include "observe/counters.h"

enum prom_type { PROM_COUNTER, PROM_GAUGE, PROM_HISTOGRAM };

struct prom_label {
    const char *name;
    struct slice value;
};

struct prom {
    struct text *text; /* borrows; where the page grows */
    bool is_openmetrics;
    enum prom_type type;            /* of the open family */
    const char *family;             /* borrows until the next one; without _total */
    char le[HISTOGRAM_BUCKETS][24]; /* the bounds as they are printed */
};

/* Sums over workers, as plain numbers. */
struct prom_histogram {
    uint64_t buckets[HISTOGRAM_BUCKETS]; /* each for itself, as in struct histogram */
    uint64_t sum_us;
};

void prom_begin(struct prom *prom, struct text *text, bool is_openmetrics);
/* The last line, where the format has one. */
void prom_end(struct prom *prom);
/* The value of Content-Type. */
struct slice prom_content_type(bool is_openmetrics);
/* Does this Accept value ask for OpenMetrics? */
bool prom_wants_openmetrics(struct slice accept);

/* Opens a family: one HELP and one TYPE line. `name` without _total, which counters get here. */
void prom_family(struct prom *prom, enum prom_type type, const char *name, const char *help);
/* Samples of the open family; labels[0..n). */
void prom_u64(struct prom *prom, const struct prom_label *labels, uint32_t n, uint64_t value);
void prom_double(struct prom *prom, const struct prom_label *labels, uint32_t n, double value);
/* Buckets summed up from the left, in seconds, then _sum and _count. */
void prom_histogram(struct prom *prom, const struct prom_label *labels, uint32_t n,
                    const struct prom_histogram *histogram);

#endif
