/* SPDX-License-Identifier: Apache-2.0 */
#include "store/tables.h"

#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct config *load(const char *text)
{
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    assert_int_equal(config_load_text(slice_str(text), "test", "/", &config, &diag), ISO_OK);
    diag_fini(&diag);
    return config;
}

static const char *shown(const struct text *text)
{
    return text->len ? text->data : "";
}

/* What is written and deleted in one table. */
static void expect(const char *from_text, const char *to_text, enum table_id table, const char *puts,
                   const char *gone)
{
    struct config *from = from_text ? load(from_text) : NULL, *to = load(to_text);
    struct tables_change change;
    tables_diff(from, to, &change);
    assert_string_equal(shown(&change.puts[table]), puts);
    assert_string_equal(shown(&change.gone[table]), gone);
    tables_change_fini(&change);
    config_free(from);
    config_free(to);
}

#define WEB(more, targets) "target_groups: [{name: web, " more "targets: [" targets "]}]\n"
#define A                  "{ip: 10.0.0.1, port: 80}"
#define A_HEAVY            "{ip: 10.0.0.1, port: 80, weight: 9}"
#define B                  "{ip: \"::1\", port: 81, enabled: false}"
#define UNIX               "{unix: /run/x.sock}"

static void everything_is_written_when_nothing_was_there(void **state)
{
    expect(NULL, WEB("", A ", " B ", " UNIX), TABLE_BACKENDS,
           "[[\"web/10.0.0.1:80\",\"web\",\"10.0.0.1\",80,100,\"PENDING\"],"
           "[\"web/[::1]:81\",\"web\",\"::1\",81,100,\"DRAINING\"],"
           "[\"web/unix:/run/x.sock\",\"web\",\"unix:/run/x.sock\",0,100,\"PENDING\"]]",
           "");
    expect(NULL, WEB("algorithm: maglev, ", A), TABLE_POOLS,
           "[[\"web\",\"web\",\"HTTP\",\"maglev\",\"web\"]]", "");
    expect(NULL, WEB("health_check: {type: tcp, interval_s: 1, timeout_ms: 500}, ", A), TABLE_POLICIES,
           "[[\"web\",\"tcp\",1000,500,3,2]]", "");
}

static void what_is_the_same_is_not_written_again(void **state)
{
    expect(WEB("", A ", " B), WEB("", A ", " B), TABLE_BACKENDS, "", "");
    expect(WEB("", A ", " B), WEB("", B ", " A), TABLE_BACKENDS, "", "");
    expect(WEB("", A), WEB("", A_HEAVY), TABLE_POOLS, "", "");
}

static void only_the_changed_target_is_written(void **state)
{
    expect(WEB("", A ", " B), WEB("", A_HEAVY ", " B), TABLE_BACKENDS,
           "[[\"web/10.0.0.1:80\",\"web\",\"10.0.0.1\",80,9,\"PENDING\"]]", "");
}

static void what_is_gone_is_deleted(void **state)
{
    expect(WEB("", A ", " B), WEB("", A), TABLE_BACKENDS, "", "[[\"web/[::1]:81\"]]");
    expect(WEB("", A), "target_groups: []\n", TABLE_BACKENDS, "", "[[\"web/10.0.0.1:80\"]]");
    expect(WEB("", A), "target_groups: []\n", TABLE_POOLS, "", "[[\"web\"]]");
    expect(WEB("", A), "target_groups: []\n", TABLE_POLICIES, "", "[[\"web\"]]");
}

static void listeners_belong_to_their_load_balancer(void **state)
{
    static const char one[] = "load_balancers: [{name: lb, vip: 10.0.0.9, listeners: [{port: 80, "
                              "default_target_group: web}]}]\n" WEB("", A);
    expect(NULL, one, TABLE_LOAD_BALANCERS, "[[\"lb\",\"10.0.0.9\"]]", "");
    expect(NULL, one, TABLE_LISTENERS, "[[\"lb/80\",\"lb\",\"10.0.0.9:80\",80,\"HTTP\",\"web\"]]", "");
    expect(one, WEB("", A), TABLE_LISTENERS, "", "[[\"lb/80\"]]");
    expect(one, WEB("", A), TABLE_LOAD_BALANCERS, "", "[[\"lb\"]]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_written_when_nothing_was_there),
        cmocka_unit_test(what_is_the_same_is_not_written_again),
        cmocka_unit_test(only_the_changed_target_is_written),
        cmocka_unit_test(what_is_gone_is_deleted),
        cmocka_unit_test(listeners_belong_to_their_load_balancer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
