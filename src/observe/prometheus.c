/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/prometheus.h"

#include <math.h>
#include <stdio.h>

/* Seconds as OpenMetrics wants a bound: a float even where it is whole. */
static void print_bound(char *out, size_t cap, uint32_t us)
{
    if (us % 1000000 == 0)
        snprintf(out, cap, "%u.0", us / 1000000);
    else
        snprintf(out, cap, "%.9g", us / 1e6);
}

void prom_begin(struct prom *prom, struct text *text, bool is_openmetrics)
{
    static const uint32_t bounds[] = HISTOGRAM_BOUNDS_US;
    _Static_assert(iso_countof(bounds) == HISTOGRAM_BUCKETS - 1, "the last bucket is +Inf");
    *prom = (struct prom){.text = text, .is_openmetrics = is_openmetrics};
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS - 1; i++)
        print_bound(prom->le[i], sizeof(prom->le[i]), bounds[i]);
    strcpy(prom->le[HISTOGRAM_BUCKETS - 1], "+Inf");
}

void prom_end(struct prom *prom)
{
    if (prom->is_openmetrics)
        text_add(prom->text, SLICE("# EOF\n"));
}

struct slice prom_content_type(bool is_openmetrics)
{
    return is_openmetrics ? SLICE("application/openmetrics-text; version=1.0.0; charset=utf-8")
                          : SLICE("text/plain; version=0.0.4; charset=utf-8");
}

bool prom_wants_openmetrics(struct slice accept)
{
    struct slice item;
    while (slice_next(&accept, ',', &item))
        if (slice_caseeq(slice_trim(slice_of(item.ptr, slice_find(item, ';'))),
                         SLICE("application/openmetrics-text")))
            return true;
    return false;
}

/* Source: both formats escape these three in label values, and in HELP at least the last two. */
static void add_escaped(struct text *text, struct slice s, bool is_help)
{
    size_t from = 0;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c != '\\' && c != '\n' && (c != '"' || is_help))
            continue;
        text_add(text, slice_of(s.ptr + from, i - from));
        text_add(text, c == '\n' ? SLICE("\\n") : c == '"' ? SLICE("\\\"") : SLICE("\\\\"));
        from = i + 1;
    }
    text_add(text, slice_of(s.ptr + from, s.len - from));
}

void prom_family(struct prom *prom, enum prom_type type, const char *name, const char *help)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};
    const char *suffix = type == PROM_COUNTER && !prom->is_openmetrics ? "_total" : "";
    prom->type = type;
    prom->family = name;
    text_printf(prom->text, "# HELP %s%s ", name, suffix);
    add_escaped(prom->text, slice_str(help), true);
    text_printf(prom->text, "\n# TYPE %s%s %s\n", name, suffix, types[type]);
}

/* "family_suffix{labels,le="..."} "; le may be NULL. */
static void add_name(struct prom *prom, const char *suffix, const struct prom_label *labels, uint32_t n,
                     const char *le)
{
    struct text *text = prom->text;
    iso_assert(prom->family != NULL);
    text_add(text, slice_str(prom->family));
    text_add(text, slice_str(suffix));
    for (uint32_t i = 0; i < n; i++) {
        text_add(text, i ? SLICE(",") : SLICE("{"));
        text_add(text, slice_str(labels[i].name));
        text_add(text, SLICE("=\""));
        add_escaped(text, labels[i].value, false);
        text_add(text, SLICE("\""));
    }
    if (le) {
        text_add(text, n ? SLICE(",le=\"") : SLICE("{le=\""));
        text_add(text, slice_str(le));
        text_add(text, SLICE("\""));
    }
    text_add(text, n || le ? SLICE("} ") : SLICE(" "));
}

/* By hand: a page has tens of thousands of these, and printf would read its format for each. */
static void add_u64(struct text *text, uint64_t value)
{
    char digits[21], *at = digits + sizeof(digits);
    *--at = '\n';
    do
        *--at = (char)('0' + value % 10);
    while (value /= 10);
    text_add(text, slice_of(at, (size_t)(digits + sizeof(digits) - at)));
}

void prom_u64(struct prom *prom, const struct prom_label *labels, uint32_t n, uint64_t value)
{
    iso_assert(prom->type != PROM_HISTOGRAM);
    add_name(prom, prom->type == PROM_COUNTER ? "_total" : "", labels, n, NULL);
    add_u64(prom->text, value);
}

void prom_double(struct prom *prom, const struct prom_label *labels, uint32_t n, double value)
{
    iso_assert(prom->type != PROM_HISTOGRAM && isfinite(value));
    add_name(prom, prom->type == PROM_COUNTER ? "_total" : "", labels, n, NULL);
    if (value >= 0 && value < 1e15 && value == floor(value))
        add_u64(prom->text, (uint64_t)value);
    else
        text_printf(prom->text, "%.15g\n", value);
}

void prom_histogram(struct prom *prom, const struct prom_label *labels, uint32_t n,
                    const struct prom_histogram *histogram)
{
    uint64_t count = 0;
    iso_assert(prom->type == PROM_HISTOGRAM);
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        count += histogram->buckets[i];
        add_name(prom, "_bucket", labels, n, prom->le[i]);
        add_u64(prom->text, count);
    }
    add_name(prom, "_sum", labels, n, NULL);
    text_printf(prom->text, "%llu.%06u\n", (unsigned long long)(histogram->sum_us / 1000000),
                (unsigned)(histogram->sum_us % 1000000));
    add_name(prom, "_count", labels, n, NULL);
    add_u64(prom->text, count);
}
