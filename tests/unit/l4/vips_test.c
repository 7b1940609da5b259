/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to what the packet tier is to do. */
#include "l4/vips.h"

#include "config/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static struct {
    struct arena arena;
    struct config *config;
    struct l4_spec spec;
    struct iso_diag diag;
} t;

static int start(void **state)
{
    t.config = NULL;
    arena_init(&t.arena);
    diag_init(&t.diag);
    return 0;
}

static int stop(void **state)
{
    config_free(t.config);
    arena_fini(&t.arena);
    diag_fini(&t.diag);
    return 0;
}

static void spec_of(const char *yaml)
{
    iso_err err = config_load_text(slice_str(yaml), "f", "/", &t.config, &t.diag);
    if (err)
        fail_msg("%s: %s", t.diag.first->path, t.diag.first->message);
    assert_int_equal(l4_spec_from_config(t.config, &t.arena, &t.spec, &t.diag), ISO_OK);
}

static const struct l4_spec_vip *vip_of_port(uint16_t port)
{
    for (uint32_t i = 0; i < t.spec.n_vips; i++)
        if (t.spec.vips[i].port == port)
            return &t.spec.vips[i];
    fail_msg("no VIP of port %u", port);
    return NULL;
}

static const struct l4_spec_real *real_of(const struct l4_spec_set *set, uint32_t i)
{
    return &t.spec.reals[set->reals[i]];
}

#define TWO_GROUPS                                                                                           \
    "nodes:\n"                                                                                               \
    "  - { name: l7-1, ip: 10.0.0.11 }\n"                                                                    \
    "load_balancers:\n"                                                                                      \
    "  - name: lb\n"                                                                                         \
    "    vip: 203.0.113.10\n"                                                                                \
    "    listeners:\n"                                                                                       \
    "      - { port: 80, default_target_group: web }\n"                                                      \
    "      - { port: 5432, protocol: TCP, default_target_group: db }\n"                                      \
    "      - { port: 6379, protocol: TCP, default_target_group: cache }\n"                                   \
    "target_groups:\n"                                                                                       \
    "  - { name: web, targets: [ { ip: 10.0.0.21, port: 8080 } ] }\n"                                        \
    "  - name: db\n"                                                                                         \
    "    protocol: TCP\n"                                                                                    \
    "    targets: [ { ip: 10.0.0.31, port: 5432, weight: 3 }, { ip: 10.0.0.32, port: 5432 } ]\n"             \
    "  - name: cache\n"                                                                                      \
    "    protocol: TCP\n"                                                                                    \
    "    targets: [ { ip: 10.0.0.32, port: 6379, weight: 7 },\n"                                             \
    "               { ip: 10.0.0.11, port: 6379, enabled: false } ]\n"

static void a_tcp_listener_may_name_its_targets_as_reals(void **state)
{
    spec_of(TWO_GROUPS "l4: { interfaces: [eth0], reals: targets }\n");
    const struct l4_spec_set *web = &t.spec.sets[vip_of_port(80)->set];
    assert_int_equal(web->n_reals, 1);
    assert_true(slice_eq(real_of(web, 0)->name, SLICE("l7-1")));

    const struct l4_spec_set *db = &t.spec.sets[vip_of_port(5432)->set];
    assert_int_equal(db->n_reals, 2);
    assert_true(slice_eq(real_of(db, 0)->name, SLICE("10.0.0.31")));
    assert_int_equal(l4_set_weight(&t.spec, db, 0), 3);
    assert_int_equal(l4_set_weight(&t.spec, db, 1), 100);
}

static void an_address_in_two_groups_is_one_real_with_a_weight_in_each(void **state)
{
    spec_of(TWO_GROUPS "l4: { interfaces: [eth0], reals: targets }\n");
    const struct l4_spec_set *db = &t.spec.sets[vip_of_port(5432)->set];
    const struct l4_spec_set *cache = &t.spec.sets[vip_of_port(6379)->set];
    assert_int_equal(db->reals[1], cache->reals[0]);
    assert_int_equal(l4_set_weight(&t.spec, cache, 0), 7);
    assert_int_equal(t.spec.n_reals, 3);
}

static void a_disabled_target_takes_no_new_flows_and_a_node_keeps_its_name(void **state)
{
    spec_of(TWO_GROUPS "l4: { interfaces: [eth0], reals: targets }\n");
    const struct l4_spec_set *cache = &t.spec.sets[vip_of_port(6379)->set];
    assert_true(slice_eq(real_of(cache, 1)->name, SLICE("l7-1")));
    assert_int_equal(l4_set_weight(&t.spec, cache, 1), 0);
    assert_true(real_of(cache, 1)->usable);
}

static void without_it_every_listener_goes_to_the_nodes(void **state)
{
    spec_of(TWO_GROUPS "l4: { interfaces: [eth0] }\n");
    assert_int_equal(t.spec.n_reals, 1);
    assert_int_equal(vip_of_port(5432)->set, vip_of_port(80)->set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_tcp_listener_may_name_its_targets_as_reals, start, stop),
        cmocka_unit_test_setup_teardown(an_address_in_two_groups_is_one_real_with_a_weight_in_each, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_disabled_target_takes_no_new_flows_and_a_node_keeps_its_name, start,
                                        stop),
        cmocka_unit_test_setup_teardown(without_it_every_listener_goes_to_the_nodes, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
