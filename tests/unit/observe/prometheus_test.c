/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/prometheus.h"

#include "promlint.h"

static void write_sample_page(struct text *text, bool is_openmetrics)
{
    struct prom prom;
    struct prom_label labels[] = {{"listener", SLICE("a \"quoted\"\\\nname")}, {"class", SLICE("2xx")}};
    struct prom_histogram histogram = {.buckets = {[0] = 1, [3] = 2, [HISTOGRAM_BUCKETS - 1] = 4},
                                       .sum_us = 1234567};
    text_init(text);
    prom_begin(&prom, text, is_openmetrics);
    prom_family(&prom, PROM_COUNTER, "isobar_requests", "Requests \\ by\nclass");
    prom_u64(&prom, labels, 2, UINT64_MAX);
    prom_family(&prom, PROM_GAUGE, "isobar_up", "Is it up");
    prom_u64(&prom, NULL, 0, 1);
    prom_family(&prom, PROM_COUNTER, "process_cpu_seconds", "CPU");
    prom_double(&prom, NULL, 0, 0.25);
    prom_family(&prom, PROM_HISTOGRAM, "isobar_seconds", "Latency");
    prom_histogram(&prom, labels, 1, &histogram);
    prom_histogram(&prom, NULL, 0, &histogram);
    prom_end(&prom);
}

static void the_page_is_in_the_text_format_C_145(void **state)
{
    struct text text;
    write_sample_page(&text, false);
    assert_int_equal(promlint(text_slice(&text), false), 3 + 2 * (HISTOGRAM_BUCKETS + 2));
    assert_non_null(strstr(text.data,
                           "# HELP isobar_requests_total Requests \\\\ by\\nclass\n"
                           "# TYPE isobar_requests_total counter\n"
                           "isobar_requests_total{listener=\"a \\\"quoted\\\"\\\\\\nname\",class=\"2xx\"} "
                           "18446744073709551615\n"));
    text_fini(&text);
}

static void the_page_is_in_openmetrics_C_145(void **state)
{
    struct text text;
    write_sample_page(&text, true);
    assert_int_equal(promlint(text_slice(&text), true), 3 + 2 * (HISTOGRAM_BUCKETS + 2));
    assert_non_null(strstr(text.data, "# TYPE isobar_requests counter\nisobar_requests_total{"));
    assert_true(slice_ends(text_slice(&text), SLICE("\n# EOF\n")));
    text_fini(&text);
}

static void histograms_are_cumulative_seconds(void **state)
{
    struct text text;
    write_sample_page(&text, false);
    struct slice page = text_slice(&text);
    assert_true(promlint_value(page, "isobar_seconds_bucket{le=\"0.00025\"}") == 1);
    assert_true(promlint_value(page, "isobar_seconds_bucket{le=\"0.001\"}") == 1);
    assert_true(promlint_value(page, "isobar_seconds_bucket{le=\"0.0025\"}") == 3);
    assert_true(promlint_value(page, "isobar_seconds_bucket{le=\"1.0\"}") == 3);
    assert_true(promlint_value(page, "isobar_seconds_bucket{le=\"30.0\"}") == 3);
    assert_true(promlint_value(page, "isobar_seconds_bucket{le=\"+Inf\"}") == 7);
    assert_true(promlint_value(page, "isobar_seconds_count") == 7);
    assert_true(promlint_value(page, "isobar_seconds_sum") == 1.234567);
    text_fini(&text);
}

static void openmetrics_is_for_those_who_ask(void **state)
{
    assert_true(prom_wants_openmetrics(SLICE("application/openmetrics-text;version=1.0.0;q=0.5,application/"
                                             "openmetrics-text;version=0.0.1;q=0.4,text/"
                                             "plain;version=0.0.4;q=0.3,*/*;q=0.2")));
    assert_false(prom_wants_openmetrics(SLICE("text/plain;version=0.0.4, */*")));
    assert_false(prom_wants_openmetrics(SLICE("*/*")));
    assert_false(prom_wants_openmetrics(SLICE("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_in_the_text_format_C_145),
        cmocka_unit_test(the_page_is_in_openmetrics_C_145),
        cmocka_unit_test(histograms_are_cumulative_seconds),
        cmocka_unit_test(openmetrics_is_for_those_who_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
