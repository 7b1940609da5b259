/* SPDX-License-Identifier: Apache-2.0 */
/* The tables in plain memory: what a publication writes, and that it is all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "l4/routes.h"
#include "l4/tables.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1009, RINGS = 8, FLOW_SETS = 64 };

static struct {
    struct arena arena;
    struct l4_spec spec;
    struct l4_view view;
    struct l4_tables tables;
    struct iso_diag diag;
} t;

static void *zeroed(size_t bytes)
{
    void *at = calloc(1, bytes);
    assert_non_null(at);
    return at;
}

static int start(void **state)
{
    arena_init(&t.arena);
    diag_init(&t.diag);
    t.spec = (struct l4_spec){0};
    l4_node_defaults(&t.spec.node);
    t.spec.reals = arena_array(&t.arena, struct l4_spec_real, 2000);
    t.spec.sets = arena_array(&t.arena, struct l4_spec_set, 64);
    t.spec.vips = arena_array(&t.arena, struct l4_spec_vip, 2000);
    t.view = (struct l4_view){.n_rings = RINGS, .slots = SLOTS, .n_cpus = 2, .flow_sets = FLOW_SETS};
    t.view.region_sets = FLOW_SETS;
    t.view.ring_stride = (2 * SLOTS + 7) & ~7ul;
    t.view.move_stride = 8 * SLOTS;
    t.view.control = zeroed(sizeof(*t.view.control));
    t.view.banks = zeroed(2 * sizeof(*t.view.banks));
    t.view.reals = zeroed(L4_REALS * sizeof(*t.view.reals));
    t.view.rings = zeroed(RINGS * t.view.ring_stride);
    t.view.moves = zeroed(RINGS * t.view.move_stride);
    t.view.flows = zeroed(FLOW_SETS * sizeof(*t.view.flows));
    t.view.vip_count = zeroed(2 * L4_VIPS * sizeof(*t.view.vip_count));
    t.view.real_count = zeroed(2 * L4_REALS * sizeof(*t.view.real_count));
    t.view.cpus = zeroed(2 * sizeof(*t.view.cpus));
    l4_tables_init(&t.tables, &t.view);
    return 0;
}

static int stop(void **state)
{
    l4_tables_fini(&t.tables);
    void *const all[] = {t.view.control, t.view.banks, t.view.reals,     t.view.rings,     t.view.moves,
                         t.view.flows,   t.view.cpus,  t.view.vip_count, t.view.real_count};
    for (size_t i = 0; i < iso_countof(all); i++)
        free(all[i]);
    diag_fini(&t.diag);
    arena_fini(&t.arena);
    return 0;
}

static uint32_t add_real(uint32_t host, uint32_t weight)
{
    t.spec.reals[t.spec.n_reals] =
        (struct l4_spec_real){.name = slice_str(arena_printf(&t.arena, "node-%u", host)),
                              .ip = {.family = 4, .bytes = {10, 0, (uint8_t)(host >> 8), (uint8_t)host}},
                              .weight = weight,
                              .usable = true};
    return t.spec.n_reals++;
}

static void add_set(uint32_t first, uint32_t n)
{
    struct l4_spec_set *set = &t.spec.sets[t.spec.n_sets++];
    set->reals = arena_array(&t.arena, uint32_t, 2000);
    for (set->n_reals = 0; set->n_reals < n; set->n_reals++)
        set->reals[set->n_reals] = first + set->n_reals;
}

static void add_vip(uint8_t last, uint8_t bits, uint16_t port, uint32_t set)
{
    t.spec.vips[t.spec.n_vips++] =
        (struct l4_spec_vip){.name = SLICE("vip"),
                             .prefix = {.addr = {.family = 4, .bytes = {10, 200, 1, last}}, .bits = bits},
                             .port = port,
                             .protocol = 6,
                             .set = set};
}

static iso_err publish(void)
{
    return l4_tables_publish(&t.tables, &t.spec, 1000, &t.diag);
}

static struct l4_vip *vip_of(uint8_t last, uint16_t port)
{
    __u64 addr[2] = {0, 0};
    const uint8_t bytes[4] = {10, 200, 1, last};
    memcpy(addr, bytes, 4);
    return l4_bank_find(l4_bank(&t.view), addr, l4_vip_key(__builtin_bswap16(port), 6, L4_V4));
}

static void count_slots(uint32_t ring, uint32_t *by_id)
{
    memset(by_id, 0, L4_REALS * sizeof(*by_id));
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        by_id[l4_ring(&t.view, ring)[slot] & L4_SLOT_REAL]++;
}

static void vips_of_one_set_share_a_ring_and_shares_follow_weights_I2(void **state)
{
    uint32_t slots[L4_REALS];
    add_real(1, 100);
    add_real(2, 300);
    add_set(0, 2);
    add_vip(1, 32, 80, 0);
    add_vip(2, 32, 443, 0);
    assert_int_equal(publish(), ISO_OK);
    assert_int_equal(vip_of(1, 80)->ring, vip_of(2, 443)->ring);
    count_slots(vip_of(1, 80)->ring, slots);
    uint32_t a = l4_real_id(&t.view, &t.spec.reals[0].ip, false);
    assert_in_range(slots[a], SLOTS / 4 - 1, SLOTS / 4 + 1);
    assert_int_equal(slots[0], 0);
}

static void order_of_the_input_does_not_matter_I2(void **state)
{
    for (uint32_t i = 1; i <= 20; i++)
        add_real(i, 10 + i);
    add_set(0, 20);
    add_vip(1, 32, 80, 0);
    assert_int_equal(publish(), ISO_OK);
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t swap = t.spec.sets[0].reals[i];
        t.spec.sets[0].reals[i] = t.spec.sets[0].reals[19 - i];
        t.spec.sets[0].reals[19 - i] = swap;
    }
    assert_int_equal(publish(), ISO_OK);
    assert_int_equal(t.tables.moved, 0);
    assert_int_equal(t.tables.rebuilt, 0);
}

static void only_the_tables_of_changed_sets_are_computed_again_I2(void **state)
{
    for (uint32_t i = 1; i <= 6; i++)
        add_real(i, 100);
    add_set(0, 3);
    add_set(3, 3);
    add_vip(1, 32, 80, 0);
    add_vip(2, 32, 80, 1);
    assert_int_equal(publish(), ISO_OK);
    assert_int_equal(t.tables.computed, 2);
    assert_int_equal(publish(), ISO_OK);
    assert_int_equal(t.tables.computed, 0);
    uint16_t untouched = vip_of(1, 80)->ring;
    t.spec.reals[4].usable = false;
    assert_int_equal(publish(), ISO_OK);
    assert_int_equal(t.tables.computed, 1);
    assert_int_equal(vip_of(1, 80)->ring, untouched);
    uint32_t slots[L4_REALS];
    count_slots(vip_of(2, 80)->ring, slots);
    assert_int_equal(slots[l4_real_id(&t.view, &t.spec.reals[4].ip, false)], 0);
}

/* A slot may still remember a real whose id is about to mean another one. */
static void a_ring_with_moves_is_looked_at_again(void **state)
{
    for (uint32_t i = 1; i <= 3; i++)
        add_real(i, 100);
    add_set(0, 3);
    add_vip(1, 32, 80, 0);
    t.spec.node.move_window_s = 300;
    assert_int_equal(publish(), ISO_OK);
    t.spec.reals[2].weight = 0; /* drains: its slots move and remember it */
    assert_int_equal(publish(), ISO_OK);
    assert_true(t.tables.moved > 0);
    t.spec.reals[2].usable = false; /* and fails: nothing may remember it */
    assert_int_equal(publish(), ISO_OK);
    uint32_t ring = vip_of(1, 80)->ring, gone = l4_real_id(&t.view, &t.spec.reals[2].ip, false);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        if (l4_ring(&t.view, ring)[slot] & L4_SLOT_MOVED)
            assert_int_not_equal(l4_ring_moves(&t.view, ring)[slot].previous, gone);
}

static void one_store_makes_everything_current_and_a_fault_nothing_I9(void **state)
{
    add_real(1, 1);
    add_set(0, 1);
    add_vip(1, 32, 80, 0);
    assert_int_equal(publish(), ISO_OK);
    struct l4_vip_bank *before = l4_bank(&t.view);
    uint64_t generation = t.view.control->generation;
    add_vip(1, 32, 80, 0); /* a second of the same */
    assert_int_equal(publish(), ISO_ERR_INVALID);
    assert_ptr_equal(l4_bank(&t.view), before);
    assert_int_equal(t.view.control->generation, generation);
    assert_non_null(vip_of(1, 80));
    assert_int_equal(t.diag.errors, 1);
}

static void ids_and_counters_stay_with_their_vip_and_real(void **state)
{
    add_real(1, 1);
    add_real(2, 1);
    add_set(0, 2);
    add_vip(1, 32, 80, 0);
    add_vip(2, 32, 80, 0);
    assert_int_equal(publish(), ISO_OK);
    uint16_t id = vip_of(2, 80)->id;
    uint32_t real = l4_real_id(&t.view, &t.spec.reals[1].ip, false);
    t.view.vip_count[id].packets = 7;
    t.spec.vips[0] = t.spec.vips[1];
    t.spec.n_vips = 1;
    t.spec.reals[0] = t.spec.reals[1];
    t.spec.n_reals = t.spec.sets[0].n_reals = 1;
    assert_int_equal(publish(), ISO_OK);
    assert_null(vip_of(1, 80));
    assert_int_equal(vip_of(2, 80)->id, id);
    assert_int_equal(t.view.vip_count[id].packets, 7);
    assert_int_equal(l4_real_id(&t.view, &t.spec.reals[0].ip, false), real);
}

static void table_of_a_thousand_vips_fits(void **state)
{
    add_real(1, 1);
    add_set(0, 1);
    for (uint32_t i = 0; i < L4_VIPS; i++)
        add_vip((uint8_t)i, 32, (uint16_t)(1 + i / 4), 0);
    assert_int_equal(publish(), ISO_OK);
    for (uint32_t i = 0; i < L4_VIPS; i++)
        assert_non_null(vip_of((uint8_t)i, (uint16_t)(1 + i / 4)));
    add_vip(9, 32, 9999, 0);
    assert_int_equal(publish(), ISO_ERR_LIMIT);
}

static void reals_come_and_go_for_ever(void **state)
{
    add_set(0, 0);
    add_vip(1, 32, 80, 0);
    for (uint32_t round = 0; round < 40; round++) {
        t.spec.n_reals = 0;
        for (uint32_t i = 0; i < 300; i++)
            add_real(1 + (round * 300 + i) % 60000, 1);
        t.spec.sets[0].n_reals = 300;
        for (uint32_t i = 0; i < 300; i++)
            t.spec.sets[0].reals[i] = i;
        assert_int_equal(publish(), ISO_OK);
        const uint16_t *ring = l4_ring(&t.view, vip_of(1, 80)->ring);
        for (uint32_t slot = 0; slot < SLOTS; slot++)
            assert_true(t.view.reals[ring[slot] & L4_SLOT_REAL].flags & L4_REAL_USABLE);
    }
}

static void more_reals_than_slots_is_refused_C_112(void **state)
{
    for (uint32_t i = 0; i < SLOTS + 1; i++)
        add_real(i + 1, 1);
    add_set(0, SLOTS + 1);
    add_vip(1, 32, 80, 0);
    assert_int_equal(publish(), ISO_ERR_INVALID);
    assert_int_equal(t.view.control->generation, 0);
}

static void id_that_is_used_again_catches_no_old_flows(void **state)
{
    add_set(0, 0);
    add_vip(1, 32, 80, 0);
    add_real(1, 1);
    t.spec.sets[0].n_reals = 1;
    assert_int_equal(publish(), ISO_OK);
    uint32_t id = l4_real_id(&t.view, &t.spec.reals[0].ip, false);
    t.view.flows[5].way[2] = (struct l4_flow){.word = 0xabcdef000 | id, .state = L4_FLOW_OPEN};
    for (uint32_t i = 0; i < L4_REALS - 1; i++) { /* every other id was used once */
        if (i + 1 == id)
            continue;
        t.view.reals[i + 1].addr[0] = 0x01000000u + i;
        t.view.reals[i + 1].flags = L4_REAL_USABLE;
    }
    t.spec.n_reals = 0;
    add_real(2, 1);
    t.tables.next_real = id;
    t.spec.sets[0].n_reals = 0;
    t.spec.reals[0].usable = false;
    t.view.reals[id].flags &= ~(uint32_t)L4_REAL_USABLE;
    t.spec.sets[0].n_reals = 1;
    assert_int_equal(publish(), ISO_OK);
    assert_int_equal(l4_real_id(&t.view, &t.spec.reals[0].ip, false), id);
    assert_int_equal(t.view.flows[5].way[2].state, L4_FLOW_NONE);
}

static void longest_prefix_comes_first(void **state)
{
    add_real(1, 1);
    add_set(0, 1);
    add_vip(0, 24, 80, 0);
    add_vip(128, 25, 80, 0);
    add_vip(192, 26, 443, 0);
    assert_int_equal(publish(), ISO_OK);
    const struct l4_vip_bank *bank = l4_bank(&t.view);
    assert_int_equal(bank->n_prefixes, 3);
    assert_true(bank->prefixes[0].mask[0] > bank->prefixes[1].mask[0]);
    assert_true(bank->prefixes[1].mask[0] > bank->prefixes[2].mask[0]);
}

static void announcement_names_each_served_address_once_I6(void **state)
{
    struct text text;
    add_real(1, 1);
    add_set(0, 1);
    add_set(0, 0);
    add_vip(1, 32, 80, 0);
    add_vip(1, 32, 443, 0);
    add_vip(2, 32, 80, 1); /* nobody serves it */
    text_init(&text);
    l4_routes_write(&t.spec, false, false, &text);
    assert_string_equal(text.data,
                        "# Written by isobar l4; changes are lost.\n"
                        "protocol static isobar4 {\n    ipv4;\n    route 10.200.1.1/32 blackhole;\n}\n"
                        "protocol static isobar6 {\n    ipv6;\n}\n");
    text_fini(&text);
    text_init(&text);
    l4_routes_write(&t.spec, true, true, &text);
    assert_null(strstr(text.data, "route"));
    text_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)
        CASE(vips_of_one_set_share_a_ring_and_shares_follow_weights_I2),
        CASE(order_of_the_input_does_not_matter_I2),
        CASE(only_the_tables_of_changed_sets_are_computed_again_I2),
        CASE(a_ring_with_moves_is_looked_at_again),
        CASE(one_store_makes_everything_current_and_a_fault_nothing_I9),
        CASE(ids_and_counters_stay_with_their_vip_and_real),
        CASE(table_of_a_thousand_vips_fits),
        CASE(reals_come_and_go_for_ever),
        CASE(more_reals_than_slots_is_refused_C_112),
        CASE(id_that_is_used_again_catches_no_old_flows),
        CASE(longest_prefix_comes_first),
        CASE(announcement_names_each_served_address_once_I6),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
