/* SPDX-License-Identifier: Apache-2.0 */
/* A linter of the Prometheus text format for tests: every family has HELP and TYPE once and before its
 * samples, its samples stand together, counters end in _total, histograms have rising buckets up to
 * +Inf with _sum and _count, no series comes twice, values are numbers. Source: C-145. */
#ifndef ISOBAR_TESTS_PROMLINT_H
#define ISOBAR_TESTS_PROMLINT_H

#include "core/check.h"
#include "core/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

enum { PROMLINT_MAX = 20000 };

struct promlint {
    bool is_openmetrics;
    struct slice family; /* the open one, as TYPE names it */
    char type;           /* 'c' 'g' 'h' */
    struct slice families[512];
    size_t n_families;
    struct slice series[PROMLINT_MAX]; /* name with labels */
    size_t n_series;
    struct slice bucket_of; /* labels of the histogram series that is open, without le */
    double last_bound, last_value;
    unsigned long n_samples;
};

static inline struct slice promlint_word(struct slice *rest)
{
    struct slice word = {0};
    slice_next(rest, ' ', &word);
    return word;
}

static inline bool promlint_is_name(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':';
        if (!is_letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return s.len > 0;
}

static inline void promlint_comment(struct promlint *lint, struct slice line)
{
    struct slice rest = slice_of(line.ptr + 2, line.len - 2);
    struct slice kind = promlint_word(&rest), name = promlint_word(&rest);
    assert_true(promlint_is_name(name));
    if (slice_eq(kind, SLICE("HELP"))) {
        assert_true(rest.len > 0);
        for (size_t i = 0; i < lint->n_families; i++)
            assert_false(slice_eq(lint->families[i], name));
        assert_true(lint->n_families < iso_countof(lint->families));
        lint->families[lint->n_families++] = name;
        lint->family = name;
        lint->type = 0;
        return;
    }
    assert_true(slice_eq(kind, SLICE("TYPE")));
    assert_true(slice_eq(lint->family, name) && lint->type == 0);
    assert_true(slice_eq(rest, SLICE("counter")) || slice_eq(rest, SLICE("gauge")) ||
                slice_eq(rest, SLICE("histogram")));
    lint->type = rest.ptr[0];
    lint->bucket_of = (struct slice){0};
    if (lint->type == 'c')
        assert_int_equal(slice_ends(name, SLICE("_total")), !lint->is_openmetrics);
}

/* The end of `name="value",...}` at `at`. */
static inline const char *promlint_labels(const char *at, const char *end)
{
    while (at < end && *at != '}') {
        const char *equals = memchr(at, '=', (size_t)(end - at));
        assert_non_null(equals);
        assert_true(promlint_is_name(slice_of(at, (size_t)(equals - at))));
        at = equals + 1;
        assert_true(at < end && *at == '"');
        for (at++; at < end && *at != '"'; at++)
            if (*at == '\\') {
                at++;
                assert_true(at < end && (*at == '\\' || *at == '"' || *at == 'n'));
            }
        assert_true(at < end);
        at++;
        if (at < end && *at == ',')
            at++;
    }
    assert_true(at < end);
    return at;
}

static inline void promlint_histogram(struct promlint *lint, struct slice suffix, struct slice labels,
                                      double value)
{
    if (slice_eq(suffix, SLICE("_sum")) || slice_eq(suffix, SLICE("_count"))) {
        assert_true(slice_eq(lint->bucket_of, labels) && lint->last_bound > 1e300); /* behind +Inf */
        if (slice_eq(suffix, SLICE("_count")))
            assert_true(value == lint->last_value);
        return;
    }
    assert_true(slice_eq(suffix, SLICE("_bucket")));
    const char *le = memmem(labels.ptr, labels.len, "le=\"", 4);
    assert_non_null(le);
    double bound = strtod(le + 4, NULL);
    assert_true(labels.ptr + labels.len - le < 20); /* the last label */
    size_t without = (size_t)(le - labels.ptr);
    struct slice of = slice_of(labels.ptr, without && le[-1] == ',' ? without - 1 : without);
    if (lint->bucket_of.ptr && slice_eq(of, lint->bucket_of) && lint->last_bound < 1e300)
        assert_true(bound > lint->last_bound && value >= lint->last_value);
    lint->bucket_of = of.ptr ? of : SLICE("");
    lint->last_bound = bound;
    lint->last_value = value;
}

static inline void promlint_sample(struct promlint *lint, struct slice line)
{
    const char *end = line.ptr + line.len, *at = line.ptr;
    while (at < end && *at != '{' && *at != ' ')
        at++;
    struct slice name = slice_of(line.ptr, (size_t)(at - line.ptr)), labels = SLICE("");
    assert_true(promlint_is_name(name));
    if (*at == '{') {
        const char *close = promlint_labels(at + 1, end);
        labels = slice_of(at + 1, (size_t)(close - at - 1));
        at = close + 1;
    }
    struct slice series = slice_of(line.ptr, (size_t)(at - line.ptr));
    assert_true(at < end && *at == ' ');
    char number[64] = "", *stop;
    assert_true((size_t)(end - at - 1) < sizeof(number));
    memcpy(number, at + 1, (size_t)(end - at - 1));
    double value = strtod(number, &stop);
    assert_true(stop != number && *stop == '\0');

    assert_true(lint->type != 0 && slice_starts(name, lint->family));
    struct slice suffix = slice_of(name.ptr + lint->family.len, name.len - lint->family.len);
    if (lint->type == 'h')
        promlint_histogram(lint, suffix, labels, value);
    else
        assert_true(
            slice_eq(suffix, lint->type == 'c' && lint->is_openmetrics ? SLICE("_total") : SLICE("")));
    if (lint->type == 'c')
        assert_true(value >= 0);
    for (size_t i = 0; i < lint->n_series; i++)
        assert_false(slice_eq(lint->series[i], series));
    assert_true(lint->n_series < PROMLINT_MAX);
    lint->series[lint->n_series++] = series;
    lint->n_samples++;
}

/* Fails the test where the page is not in the format; returns its number of samples. */
static inline unsigned long promlint(struct slice page, bool is_openmetrics)
{
    struct promlint *lint = calloc(1, sizeof(*lint));
    struct slice line = {0};
    bool has_ended = false;
    assert_non_null(lint);
    lint->is_openmetrics = is_openmetrics;
    assert_true(page.len > 0 && page.ptr[page.len - 1] == '\n');
    page.len--;
    while (slice_next(&page, '\n', &line)) {
        assert_false(has_ended);
        if (is_openmetrics && slice_eq(line, SLICE("# EOF")))
            has_ended = true;
        else if (slice_starts(line, SLICE("# ")))
            promlint_comment(lint, line);
        else
            promlint_sample(lint, line);
    }
    assert_int_equal(has_ended, is_openmetrics);
    unsigned long n = lint->n_samples;
    free(lint);
    return n;
}

/* The value of the series written exactly so, or -1. */
static inline double promlint_value(struct slice page, const char *series)
{
    struct slice line = {0}, want = slice_str(series);
    while (slice_next(&page, '\n', &line))
        if (slice_starts(line, want) && line.len > want.len && line.ptr[want.len] == ' ')
            return strtod(line.ptr + want.len + 1, NULL);
    return -1;
}

#endif
