/* SPDX-License-Identifier: Apache-2.0 */
/* Where flows go when owners change: moved slots, the flow table, drained and failed reals, SYN floods. Each
 * test has tables of its own. */
#include "harness.h"

#include "l4/explain.h"

#include <stdio.h>

enum { FLOWS = 600, TCP = 6, UDP = 17 };

static const char CLIENT[] = "192.0.2.7", VIP[] = "10.200.1.1", TRACKED[] = "10.200.1.2",
                  NEVER[] = "10.200.1.3";

static struct rig rig;
static int owner[FLOWS];

static int start(void **state)
{
    rig_init(&rig);
    uint32_t a = rig_real(&rig, "10.0.0.1", 100), b = rig_real(&rig, "10.0.0.2", 100);
    uint32_t c = rig_real(&rig, "10.0.0.3", 100), d = rig_real(&rig, "10.0.0.4", 100);
    uint32_t all = rig_set(&rig, 4, a, b, c, d);
    rig.spec.sets[all].n_reals = 3; /* the fourth comes later */
    rig.spec.reals[3].weight = 0;
    rig_vip(&rig, VIP, 80, TCP, 0, all);
    rig_vip(&rig, VIP, 80, UDP, 0, all);
    rig_vip(&rig, TRACKED, 80, TCP, L4_VIP_TRACK, all);
    rig_vip(&rig, TRACKED, 80, UDP, L4_VIP_TRACK, all);
    rig_vip(&rig, NEVER, 80, TCP, L4_VIP_NO_TABLE, all);
    rig_vip(&rig, "10.200.1.5", 443, UDP, L4_VIP_QUIC, all);
    rig.spec.reals[0].server_ids[0] = 1022;
    rig.spec.reals[1].server_ids[0] = 197631;
    return 0;
}

static int stop(void **state)
{
    if (rig.loader)
        rig_stop(&rig);
    return 0;
}

static uint16_t port_of(int flow)
{
    return (uint16_t)(2000 + flow);
}

static int send_tcp(const char *vip, int flow, uint8_t flags)
{
    struct frame in = frame_tcp(CLIENT, vip, port_of(flow), 80, flags, "");
    return rig_target(&rig, &in);
}

static int send_udp(const char *vip, int flow)
{
    struct frame in = frame_udp(CLIENT, vip, port_of(flow), 80, "x", 1);
    return rig_target(&rig, &in);
}

static void open_flows(const char *vip)
{
    for (int i = 0; i < FLOWS; i++) {
        owner[i] = send_tcp(vip, i, SYN);
        assert_in_range(owner[i], 0, 2);
        assert_int_equal(send_tcp(vip, i, ACK), owner[i]);
    }
}

static void add_fourth(void)
{
    rig.spec.sets[0].n_reals = 4;
    rig.spec.reals[3].weight = 100;
    rig_publish(&rig);
}

static void slots_that_did_not_move_need_no_table(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    assert_int_equal(rig_event(&rig, L4_FLOW_INSERT), 0);
    assert_int_equal(rig_event(&rig, L4_MOVED_MISS), 0);
}

static void flows_older_than_a_move_stay_and_new_ones_follow_the_ring_I5(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    int moved = 0;
    for (int i = 0; i < FLOWS; i++) {
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
        int now = send_tcp(VIP, i + FLOWS, SYN);
        moved += now == 3;
        assert_int_equal(send_tcp(VIP, i + FLOWS, ACK), now);
        assert_int_equal(send_tcp(VIP, i + FLOWS, ACK | PSH), now);
    }
    assert_in_range(moved, FLOWS / 6, FLOWS / 3);
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
}

static void another_node_without_any_entry_decides_the_same_I8(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    memset(rig.view->flows, 0, sizeof(struct l4_flow_set) * rig.view->flow_sets);
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
}

static void drained_real_keeps_its_flows_and_gets_no_new_ones_C_159(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    rig.spec.reals[1].weight = 0;
    rig_publish(&rig);
    for (int i = 0; i < FLOWS; i++) {
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
        assert_int_not_equal(send_tcp(VIP, i + FLOWS, SYN), 1);
    }
    /* A new connection from the ports of an old one: its later packets must not follow the old entry. */
    for (int i = 0; i < FLOWS; i++) {
        int now = send_tcp(VIP, i, SYN);
        assert_int_not_equal(now, 1);
        assert_int_equal(send_tcp(VIP, i, ACK), now);
    }
}

static void flows_of_a_failed_real_go_elsewhere_and_all_others_stay_C_159(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    rig.spec.reals[1].usable = false;
    rig_publish(&rig);
    for (int i = 0; i < FLOWS; i++) {
        int now = send_tcp(VIP, i, ACK);
        assert_true(now == 0 || now == 2);
        if (owner[i] != 1)
            assert_int_equal(now, owner[i]);
    }
}

static void unchanged_configuration_changes_nothing_after_a_restart_C_159(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    l4_tables_fini(&rig.tables);
    l4_tables_init(&rig.tables, rig.view); /* what a new process does with the old maps */
    rig_publish(&rig);
    assert_int_equal(rig.tables.moved, 0);
    assert_int_equal(rig.tables.rebuilt, 0);
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
}

static void all_reals_gone_drops_and_all_back_serves_A11(void **state)
{
    rig_start(&rig);
    for (int i = 0; i < 3; i++)
        rig.spec.reals[i].usable = false;
    rig_publish(&rig);
    assert_int_equal(send_tcp(VIP, 1, SYN), -1);
    assert_true(rig_event(&rig, L4_DROP_NO_REAL) > 0);
    for (int i = 0; i < 3; i++)
        rig.spec.reals[i].usable = true;
    rig_publish(&rig);
    assert_in_range(send_tcp(VIP, 1, SYN), 0, 2);
}

static void window_that_is_over_leaves_the_ring_alone(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    uint32_t now = l4_loader_tick(rig.loader);
    for (uint32_t ring = 1; ring < rig.view->n_rings; ring++)
        for (uint32_t slot = 0; slot < rig.view->slots; slot++)
            l4_ring_moves(rig.view, ring)[slot].until = now - 1;
    int elsewhere = 0;
    for (int i = 0; i < FLOWS; i++)
        elsewhere += send_tcp(VIP, i, ACK) != owner[i];
    assert_in_range(elsewhere, FLOWS / 6, FLOWS / 3);
    assert_int_equal(rig_event(&rig, L4_FLOW_INSERT), 0);
    assert_int_equal(l4_tables_sweep(&rig.tables, now), 0);
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), send_tcp(VIP, i, ACK));
    assert_int_equal(rig_event(&rig, L4_MOVED_MISS), 0);
}

static void flow_in_the_table_survives_a_second_move_of_its_slot(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]); /* now in the table */
    rig.spec.reals[3].weight = 0;
    rig_publish(&rig);
    rig.spec.reals[0].weight = 1;
    rig_publish(&rig);
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
}

static void syn_flood_pushes_out_no_established_flow(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
    int opened[FLOWS];
    for (int i = 0; i < FLOWS; i++) {
        opened[i] = send_tcp(VIP, i + FLOWS, SYN);
        assert_int_equal(send_tcp(VIP, i + FLOWS, ACK), opened[i]);
    }
    for (unsigned n = 0; n < 60000; n++) {
        char source[32];
        snprintf(source, sizeof(source), "100.64.%u.%u", n >> 8 & 255, n & 255);
        struct frame syn = frame_tcp(source, VIP, (uint16_t)(1024 + n % 50000), 80, SYN, "");
        rig_run(&rig, &syn, NULL);
    }
    for (int i = 0; i < FLOWS; i++) {
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
        assert_int_equal(send_tcp(VIP, i + FLOWS, ACK), opened[i]);
    }
}

static void tracked_vip_enters_flows_at_their_first_ack_and_not_at_syn(void **state)
{
    rig_start(&rig);
    for (int i = 0; i < FLOWS; i++)
        owner[i] = send_tcp(TRACKED, i, SYN);
    assert_int_equal(rig_event(&rig, L4_FLOW_INSERT), 0);
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(TRACKED, i, ACK), owner[i]);
    assert_int_equal(rig_event(&rig, L4_FLOW_INSERT), FLOWS);
    add_fourth();
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(TRACKED, i, ACK), owner[i]);
}

static void datagrams_stay_by_table_where_tracked_and_by_slot_elsewhere(void **state)
{
    rig_start(&rig);
    int tracked[FLOWS];
    for (int i = 0; i < FLOWS; i++) {
        owner[i] = send_udp(VIP, i);
        tracked[i] = send_udp(TRACKED, i);
    }
    add_fourth();
    int fresh = 0;
    for (int i = 0; i < FLOWS; i++) {
        assert_int_equal(send_udp(VIP, i), owner[i]);
        assert_int_equal(send_udp(TRACKED, i), tracked[i]);
        fresh += send_udp(TRACKED, i + FLOWS) == 3;
    }
    assert_in_range(fresh, FLOWS / 6, FLOWS / 3);
}

static void vip_without_table_follows_the_ring_at_once(void **state)
{
    rig_start(&rig);
    open_flows(NEVER);
    add_fourth();
    int moved = 0;
    for (int i = 0; i < FLOWS; i++)
        moved += send_tcp(NEVER, i, ACK) != owner[i];
    assert_in_range(moved, FLOWS / 6, FLOWS / 3);
    assert_int_equal(rig_event(&rig, L4_FLOW_INSERT), 0);
}

static void over_the_insert_limit_flows_still_go_to_their_owner(void **state)
{
    rig.spec.node.max_inserts_per_s = 5;
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
    assert_true(rig_event(&rig, L4_FLOW_LIMIT) > 0);
}

static void reset_enters_nothing_and_does_not_end_an_entry(void **state)
{
    rig_start(&rig);
    add_fourth();
    for (int i = 0; i < FLOWS; i++)
        owner[i] = send_tcp(VIP, i, RST);
    assert_int_equal(rig_event(&rig, L4_FLOW_INSERT), 0);
    for (int i = 0; i < FLOWS; i++) {
        owner[i] = send_tcp(VIP, i, ACK);
        assert_int_equal(send_tcp(VIP, i, RST), owner[i]); /* blind, perhaps */
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
    }
}

static void per_cpu_flow_table_works_alike(void **state)
{
    rig.spec.node.flow_per_cpu = true;
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    for (int i = 0; i < FLOWS; i++)
        assert_int_equal(send_tcp(VIP, i, ACK), owner[i]);
    assert_true(rig_event(&rig, L4_FLOW_INSERT) > 0);
}

static void user_space_explains_what_the_program_does_K3(void **state)
{
    rig_start(&rig);
    open_flows(VIP);
    add_fourth();
    struct l4_tuple tuple = {.dport = 80, .protocol = TCP};
    struct l4_verdict v;
    assert_true(ip_parse(SLICE("192.0.2.7"), &tuple.src));
    assert_true(ip_parse(SLICE("10.200.1.1"), &tuple.dst));
    uint32_t seen[L4_WHY_NO_REAL + 1] = {0};
    for (int i = 0; i < FLOWS; i++) {
        for (int round = 0; round < 2; round++) {
            tuple.sport = port_of(i + round * FLOWS);
            tuple.syn = round;
            l4_explain(rig.view, &tuple, l4_loader_tick(rig.loader), &v);
            int real = send_tcp(VIP, i + round * FLOWS, round ? SYN : ACK);
            assert_int_equal(v.real, l4_real_id(rig.view, &rig.spec.reals[real].ip, false));
            seen[v.why]++;
        }
        tuple.syn = false;
        l4_explain(rig.view, &tuple, l4_loader_tick(rig.loader), &v);
        seen[v.why]++;
    }
    assert_true(seen[L4_WHY_RING] && seen[L4_WHY_PREVIOUS] && seen[L4_WHY_SYN] && seen[L4_WHY_FLOW]);
    tuple.dport = 81;
    l4_explain(rig.view, &tuple, l4_loader_tick(rig.loader), &v);
    assert_int_equal(v.why, L4_WHY_NO_VIP);
}

static int send_quic(const uint8_t *packet, uint32_t bytes, uint16_t port)
{
    struct frame in = frame_udp(CLIENT, "10.200.1.5", port, 443, packet, bytes);
    return rig_target(&rig, &in);
}

static void quic_server_id_decides_and_unknown_ones_are_balanced(void **state)
{
    rig_start(&rig);
    /* Short headers: 16 bits behind 01, 24 behind 10; a client's Initial has an id of its own making. */
    const uint8_t id16[] = {0x40, 0x40 | 1022 >> 10, 1022 >> 2 & 0xff, (1022 & 3) << 6, 0, 0, 0, 0, 0};
    const uint8_t id24[] = {0x40, 0x80, 197631 >> 16, 197631 >> 8 & 0xff, 197631 & 0xff, 0, 0, 0, 0};
    const uint8_t unknown[] = {0x40, 0x80, 9, 9, 9, 0, 0, 0, 0};
    uint8_t initial[32] = {0xc0, 0, 0, 0, 1, 8, 0x40 | 1022 >> 10, 1022 >> 2 & 0xff, (1022 & 3) << 6};
    uint8_t handshake[32];
    memcpy(handshake, initial, sizeof(handshake));
    handshake[0] = 0xe0;
    int initials = 0;
    for (uint16_t port = 5000; port < 5060; port++) {
        assert_int_equal(send_quic(id16, sizeof(id16), port), 0);
        assert_int_equal(send_quic(id24, sizeof(id24), port), 1);
        assert_int_equal(send_quic(handshake, sizeof(handshake), port), 0);
        initials += send_quic(initial, sizeof(initial), port) == 0;
        assert_in_range(send_quic(unknown, sizeof(unknown), port), 0, 2);
    }
    assert_in_range(initials, 5, 40);
    assert_int_equal(rig_event(&rig, L4_QUIC_UNKNOWN_ID), 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, start, stop)
        CASE(slots_that_did_not_move_need_no_table),
        CASE(flows_older_than_a_move_stay_and_new_ones_follow_the_ring_I5),
        CASE(another_node_without_any_entry_decides_the_same_I8),
        CASE(drained_real_keeps_its_flows_and_gets_no_new_ones_C_159),
        CASE(flows_of_a_failed_real_go_elsewhere_and_all_others_stay_C_159),
        CASE(unchanged_configuration_changes_nothing_after_a_restart_C_159),
        CASE(all_reals_gone_drops_and_all_back_serves_A11),
        CASE(window_that_is_over_leaves_the_ring_alone),
        CASE(flow_in_the_table_survives_a_second_move_of_its_slot),
        CASE(syn_flood_pushes_out_no_established_flow),
        CASE(tracked_vip_enters_flows_at_their_first_ack_and_not_at_syn),
        CASE(datagrams_stay_by_table_where_tracked_and_by_slot_elsewhere),
        CASE(vip_without_table_follows_the_ring_at_once),
        CASE(over_the_insert_limit_flows_still_go_to_their_owner),
        CASE(reset_enters_nothing_and_does_not_end_an_entry),
        CASE(per_cpu_flow_table_works_alike),
        CASE(user_space_explains_what_the_program_does_K3),
        CASE(quic_server_id_decides_and_unknown_ones_are_balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
