/* SPDX-License-Identifier: Apache-2.0 */
#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char sample[] = "workers: 1\n"
                             "admin: { listen: \"127.0.0.1:0\" }\n"
                             "load_balancers:\n"
                             "  - name: bench\n"
                             "    vip: \"127.0.0.1\"\n"
                             "    listeners:\n"
                             "      - { port: 8080, protocol: HTTP, default_target_group: be }\n"
                             "target_groups:\n"
                             "  - name: be\n"
                             "    protocol: HTTP\n"
                             "    algorithm: round_robin\n"
                             "    health_check: { type: none }\n"
                             "    targets:\n"
                             "      - { ip: \"127.0.0.1\", port: 9001 }\n";

static void a_small_file_becomes_a_config_with_defaults(void **state)
{
    struct iso_diag diag;
    struct config *config = NULL;
    diag_init(&diag);
    assert_int_equal(config_load_text(slice_str(sample), "sample", "/", &config, &diag), ISO_OK);
    assert_int_equal(diag.errors + diag.warnings, 0);
    assert_int_equal(config->workers, 1);
    assert_int_equal(config->n_load_balancers, 1);
    const struct config_listener *listener = &config->load_balancers[0].listeners[0];
    assert_string_equal(listener->name.ptr, "bench/8080");
    assert_string_equal(listener->endpoint.text.ptr, "127.0.0.1:8080");
    assert_int_equal(listener->default_target_group, 0);
    assert_int_equal(listener->timeouts.header_ms, 15000);
    assert_int_equal(listener->limits.header_bytes, 32768);
    const struct config_target_group *group = &config->target_groups[0];
    assert_int_equal(group->algorithm, BALANCE_ROUND_ROBIN);
    assert_int_equal(group->health_check.type, CONFIG_HEALTH_NONE);
    assert_int_equal(group->retry.attempts, 2);
    assert_true(group->retry.on_reset && group->retry.on_connect_failure && !group->retry.on_gateway_error);
    assert_string_equal(group->targets[0].endpoint.text.ptr, "127.0.0.1:9001");
    assert_int_equal(group->targets[0].weight, 100);
    assert_true(group->targets[0].enabled && !group->targets[0].backup);
    assert_string_equal(config->access_log.file.ptr, "off");
    assert_int_equal(config->shutdown_ms, 30000);
    config_free(config);
    diag_fini(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_file_becomes_a_config_with_defaults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
