/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics/metrics.h"

#include "golden.h"
#include "health/status.h"
#include "metrics/fixture.h"
#include "promlint.h"
#include "store/store.h"

#include <fcntl.h>
#include <unistd.h>

static struct text page_of(const struct fixture *f)
{
    struct text text;
    text_init(&text);
    metrics_write(&text, &f->view, false);
    return text;
}

static void the_page_is_in_both_formats_C_145(void **state)
{
    struct fixture *f = fixture_new();
    struct text text = page_of(f);
    unsigned long n = promlint(text_slice(&text), false);
    text_fini(&text);
    text_init(&text);
    metrics_write(&text, &f->view, true);
    assert_int_equal(promlint(text_slice(&text), true), n);
    text_fini(&text);
    fixture_free(f);
}

static void every_series_is_there_with_0_before_the_first_event_C_145(void **state)
{
    struct fixture *f = fixture_new();
    struct text text = page_of(f);
    struct slice page = text_slice(&text);
    static const char *const series[] = {
        "isobar_listener_requests_total{listener=\"shop/8080\",class=\"5xx\"}",
        "isobar_listener_request_duration_seconds_count{listener=\"shop/8080\"}",
        "isobar_target_group_no_target_total{target_group=\"web\"}",
        "isobar_target_requests_total{target_group=\"web\",target=\"[::1]:80\",class=\"2xx\"}",
        "isobar_target_connect_errors_total{target_group=\"web\",target=\"10.0.0.1:80\"}",
        "isobar_target_state{target_group=\"web\",target=\"10.0.0.1:80\",state=\"active\"}",
        "isobar_config_reloads_total{result=\"failure\"}",
        "isobar_loop_turns_total{worker=\"1\"}",
        "isobar_access_log_dropped_total{worker=\"0\"}",
        "isobar_access_log_lost_total",
    };
    for (size_t i = 0; i < iso_countof(series); i++)
        assert_true(promlint_value(page, series[i]) == 0);
    text_fini(&text);
    fixture_free(f);
}

static void counters_are_summed_over_workers(void **state)
{
    struct fixture *f = fixture_new();
    counter_add(&f->listener_counters[0].requests_2xx, 3);
    counter_add(&f->listener_counters[1].requests_2xx, 4);
    counter_add(&f->backend_workers[1][0].counters.connects, 1);
    counter_add(&f->backend_workers[1][1].counters.connects, 1);
    histogram_add(&f->listener_counters[0].latency, 300);
    histogram_add(&f->listener_counters[1].latency, 1000000);
    struct text text = page_of(f);
    struct slice page = text_slice(&text);
    assert_true(
        promlint_value(page, "isobar_listener_requests_total{listener=\"shop/8080\",class=\"2xx\"}") == 7);
    assert_true(promlint_value(
                    page, "isobar_target_connects_total{target_group=\"web\",target=\"10.0.0.2:80\"}") == 2);
    assert_true(promlint_value(
                    page, "isobar_target_connects_total{target_group=\"web\",target=\"10.0.0.1:80\"}") == 0);
    assert_true(
        promlint_value(
            page, "isobar_listener_request_duration_seconds_bucket{listener=\"shop/8080\",le=\"0.0005\"}") ==
        1);
    assert_true(
        promlint_value(page, "isobar_listener_request_duration_seconds_count{listener=\"shop/8080\"}") == 2);
    assert_true(promlint_value(
                    page, "isobar_listener_request_duration_seconds_sum{listener=\"shop/8080\"}") == 1.0003);
    text_fini(&text);
    fixture_free(f);
}

static void a_gauge_may_rise_on_one_worker_and_fall_on_another(void **state)
{
    struct fixture *f = fixture_new();
    gauge_add(&f->listener_counters[0].active_connections, 5);
    gauge_add(&f->listener_counters[1].active_connections, -2);
    gauge_add(&f->group_counters[0].pending, -1); /* seen before its counterpart */
    struct text text = page_of(f);
    struct slice page = text_slice(&text);
    assert_true(promlint_value(page, "isobar_listener_active_connections{listener=\"shop/8080\"}") == 3);
    assert_true(promlint_value(page, "isobar_target_group_pending{target_group=\"web\"}") == 0);
    text_fini(&text);
    fixture_free(f);
}

static void health_is_shown_per_target_and_group(void **state)
{
    struct fixture *f = fixture_new();
    f->backends[0].health.state = TARGET_ACTIVE;
    f->backends[1].health.state = TARGET_UNHEALTHY;
    f->backends[1].health.last_reason = HEALTH_REASON_REFUSED;
    f->backends[1].health.checks = 9;
    f->backends[1].health.failures = 3;
    struct text text = page_of(f);
    struct slice page = text_slice(&text);
    assert_true(promlint_value(page, "isobar_target_up{target_group=\"web\",target=\"10.0.0.1:80\"}") == 1);
    assert_true(promlint_value(page, "isobar_target_up{target_group=\"web\",target=\"10.0.0.2:80\"}") == 0);
    assert_true(
        promlint_value(
            page, "isobar_target_state{target_group=\"web\",target=\"10.0.0.2:80\",state=\"unhealthy\"}") ==
        1);
    assert_true(
        promlint_value(
            page, "isobar_target_state{target_group=\"web\",target=\"10.0.0.2:80\",state=\"active\"}") == 0);
    assert_true(promlint_value(page,
                               "isobar_target_health_last_check{target_group=\"web\",target=\"10.0.0.2:80\","
                               "reason=\"connect-refused\"}") == 1);
    assert_true(
        promlint_value(
            page, "isobar_target_health_check_failures_total{target_group=\"web\",target=\"10.0.0.2:80\"}") ==
        3);
    assert_true(promlint_value(page, "isobar_target_group_targets{target_group=\"web\"}") == 3);
    assert_true(promlint_value(page, "isobar_target_group_healthy_targets{target_group=\"web\"}") == 1);
    text_fini(&text);
    fixture_free(f);
}

static void series_of_a_removed_target_are_gone_at_once_C_142(void **state)
{
    struct fixture *f = fixture_new();
    struct text text = page_of(f);
    assert_non_null(strstr(text.data, "[::1]:80"));
    text_fini(&text);
    f->snap_group.n_targets = 2;
    text = page_of(f);
    assert_null(strstr(text.data, "[::1]:80"));
    promlint(text_slice(&text), false);
    text_fini(&text);
    fixture_free(f);
}

static void the_process_tells_of_itself(void **state)
{
    struct fixture *f = fixture_new();
    int fd = open("/dev/null", O_RDONLY);
    struct text text = page_of(f);
    struct slice page = text_slice(&text);
    assert_true(promlint_value(page, "isobar_build_info{version=\"1.2.3\"}") == 1);
    assert_true(promlint_value(page, "isobar_config_version") == 7);
    assert_true(promlint_value(page, "process_resident_memory_bytes") > 100000);
    assert_true(promlint_value(page, "process_open_fds") >= 4);
    assert_true(promlint_value(page, "process_start_time_seconds") > 1e9);
    assert_true(promlint_value(page, "process_start_time_seconds") <= (double)time(NULL) + 1);
    assert_true(promlint_value(page, "process_threads") >= 1);
    assert_true(promlint_value(page, "isobar_worker_cpu_seconds_total{worker=\"0\"}") >= 0);
    text_fini(&text);
    close(fd);
    fixture_free(f);
}

static void before_the_first_snapshot_there_is_a_page(void **state)
{
    static const struct control_view zeroed;
    struct text text;
    text_init(&text);
    metrics_write(&text, &zeroed, false);
    assert_true(promlint(text_slice(&text), false) > 10);
    text_fini(&text);
}

/* The names of the labels of the first series in `line` of `family`, as `a`, `b`. */
static void add_labels(struct text *out, struct slice line)
{
    struct slice rest = slice_of(line.ptr, slice_find(line, ' '));
    const char *separator = "";
    size_t open = slice_find(rest, '{');
    if (open == rest.len)
        return;
    rest = slice_of(rest.ptr + open + 1, rest.len - open - 2);
    for (struct slice part; slice_next(&rest, ',', &part); separator = ", ") {
        struct slice name = slice_of(part.ptr, slice_find(part, '='));
        if (!slice_eq(name, SLICE("le")))
            text_printf(out, "%s`%.*s`", separator, SLICE_ARG(name));
    }
}

/* A target that is a name nobody has answered for. */
static struct resolve *add_name(struct fixture *f)
{
    struct resolve *resolve = resolve_new(NULL, NULL, NULL);
    f->target_configs[0].host = SLICE("app.internal");
    f->target_configs[0].endpoint.text = SLICE("app.internal:80");
    resolve_add(resolve, &(struct resolve_name){RESOLVE_HOST, "app.internal"}, 1);
    f->view.resolve = resolve;
    return resolve;
}

static void a_name_without_addresses_is_shown_C_116(void **state)
{
    struct fixture *f = fixture_new();
    struct resolve *resolve = add_name(f);
    struct text text = page_of(f);
    assert_true(promlint_value(text_slice(&text),
                               "isobar_dns_name_addresses{target_group=\"web\",target=\"app."
                               "internal:80\"}") == 0);
    text_fini(&text);
    resolve_free(&resolve);
    fixture_free(f);
}

/* Away for ever, so its metrics are there and the same each time. */
static struct store *open_no_store(struct loop *loop)
{
    const struct config_store config = {.url = SLICE("sqlite:/proc/no/such/folder"), .timeout_ms = 1000};
    struct store *store = NULL;
    struct iso_diag diag;
    diag_init(&diag);
    assert_int_equal(loop_init(loop), ISO_OK);
    assert_int_equal(store_open(&config, 0, loop, &(struct store_events){0}, &store, &diag), ISO_OK);
    diag_fini(&diag);
    return store;
}

static void the_documented_metrics_are_the_page(void **state)
{
    struct fixture *f = fixture_new();
    struct resolve *resolve = add_name(f);
    struct loop loop;
    struct store *store = open_no_store(&loop);
    f->view.store = store;
    struct text text = page_of(f), table;
    store_close(&store);
    loop_fini(&loop);
    struct slice rest = text_slice(&text), line = {0}, help = {0}, name = {0}, type = {0};
    text_init(&table);
    text_printf(&table, "| metric | type | labels | what it is |\n|---|---|---|---|\n");
    while (rest.len && slice_next(&rest, '\n', &line)) {
        struct slice words = slice_of(line.ptr + 2, line.len ? line.len - 2 : 0), word = {0};
        if (slice_starts(line, SLICE("# HELP "))) {
            slice_next(&words, ' ', &word);
            slice_next(&words, ' ', &name);
            help = words;
        } else if (slice_starts(line, SLICE("# TYPE "))) {
            slice_next(&words, ' ', &word);
            slice_next(&words, ' ', &word);
            type = words;
        } else if (help.len) {
            text_printf(&table, "| `%.*s` | %.*s | ", SLICE_ARG(name), SLICE_ARG(type));
            add_labels(&table, line);
            text_printf(&table, " | %.*s |\n", SLICE_ARG(help));
            help.len = 0;
        }
    }
    golden_check("docs/metrics.md", "metrics", text_slice(&table));
    text_fini(&table);
    text_fini(&text);
    resolve_free(&resolve);
    fixture_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_in_both_formats_C_145),
        cmocka_unit_test(every_series_is_there_with_0_before_the_first_event_C_145),
        cmocka_unit_test(counters_are_summed_over_workers),
        cmocka_unit_test(a_gauge_may_rise_on_one_worker_and_fall_on_another),
        cmocka_unit_test(health_is_shown_per_target_and_group),
        cmocka_unit_test(series_of_a_removed_target_are_gone_at_once_C_142),
        cmocka_unit_test(the_process_tells_of_itself),
        cmocka_unit_test(before_the_first_snapshot_there_is_a_page),
        cmocka_unit_test(a_name_without_addresses_is_shown_C_116),
        cmocka_unit_test(the_documented_metrics_are_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
