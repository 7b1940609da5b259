/* SPDX-License-Identifier: Apache-2.0 */
/* What the machines behind the packet tier do with tunnel packets (I3), congestion marks, and a fuzzer's
 * worth of damaged packets through both programs. */
#include "harness.h"

#include "core/random.h"

#include "l4/decap.h"

static const char CLIENT[] = "192.0.2.7", VIP[] = "10.200.1.1", CLIENT6[] = "2001:db8::7",
                  VIP6[] = "fc00:1::1";

static struct ip_addr vips[2];
static struct l4_decap decap = {.vips = vips, .n_vips = 2, .gue_port = 6080};
static struct iso_diag diag;

/* Runs the decapsulation; skips where it cannot be loaded. */
static uint32_t run(const struct frame *in, struct frame *out)
{
    uint32_t verdict;
    assert_true(ip_parse(slice_str(VIP), &vips[0]));
    assert_true(ip_parse(slice_str(VIP6), &vips[1]));
    diag_init(&diag);
    iso_err err = l4_decap_run(&decap, in->b, in->n, out->b, sizeof(out->b), &out->n, &verdict, &diag);
    diag_fini(&diag);
    if (err) {
        print_message("skipped, because loading XDP programs needs root and a kernel that takes them\n");
        skip();
    }
    return verdict;
}

/* `inner` in a tunnel of the given outer family and TOS. */
static struct frame tunnel(const struct frame *inner, bool v6, uint8_t tos, bool gue)
{
    struct frame out = {0};
    uint32_t bytes = inner->n - 14, header = v6 ? 40 : 20;
    uint8_t *ip = out.b + 14, protocol = gue ? 17 : inner->b[14] >> 4 == 6 ? 41 : 4;
    memcpy(out.b, inner->b, 12);
    out.b[12] = v6 ? 0x86 : 0x08;
    out.b[13] = v6 ? 0xdd : 0x00;
    if (v6) {
        ip[0] = (uint8_t)(0x60 | tos >> 4);
        ip[1] = (uint8_t)(tos << 4);
        ip[6] = protocol;
        ip[7] = 64;
        ip[8] = ip[24] = 0xfd;
    } else {
        ip[0] = 0x45;
        ip[1] = tos;
        ip[8] = 64;
        ip[9] = protocol;
        ip[12] = 198;
        ip[16] = 10;
    }
    out.n = 14 + header;
    if (gue) {
        uint8_t udp[8] = {0xc0, 1, 6080 >> 8, 6080 & 0xff, (uint8_t)((bytes + 8) >> 8), (uint8_t)(bytes + 8)};
        frame_insert(&out, out.n, udp, 8);
    }
    frame_insert(&out, out.n, inner->b + 14, bytes);
    frame_fix_ip(&out);
    return out;
}

static void tunnels_of_all_kinds_are_taken_off_I3(void **state)
{
    struct frame four = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello"),
                 six = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "hi");
    struct frame *const inner[] = {&four, &six};
    for (int i = 0; i < 8; i++) {
        struct frame in = tunnel(inner[i & 1], i & 2, 0, i & 4), out;
        assert_int_equal(run(&in, &out), XDP_PASS_);
        assert_int_equal(out.n, inner[i & 1]->n);
        assert_memory_equal(out.b, inner[i & 1]->b, out.n);
    }
}

static void what_is_no_tunnel_for_our_vips_stays_as_it_is(void **state)
{
    struct frame plain = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello");
    struct frame other = frame_tcp(CLIENT, "10.99.0.1", 31337, 22, ACK, "hello");
    struct frame to_other = tunnel(&other, false, 0, false);
    struct frame wrong_port = tunnel(&plain, false, 0, true);
    wrong_port.b[37]++;
    struct frame cut = tunnel(&plain, false, 0, false);
    cut.n = 50;
    struct frame *const all[] = {&plain, &to_other, &wrong_port, &cut};
    for (size_t i = 0; i < 4; i++) {
        struct frame out;
        assert_int_equal(run(all[i], &out), XDP_PASS_);
        assert_int_equal(out.n, all[i]->n);
        assert_memory_equal(out.b, all[i]->b, out.n);
    }
}

static void congestion_marks_are_combined_C_160(void **state)
{
    for (uint8_t ecn = 0; ecn < 4; ecn++)
        for (int v6 = 0; v6 < 2; v6++) {
            struct frame inner = v6 ? frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "x")
                                    : frame_tcp(CLIENT, VIP, 31337, 80, ACK, "x");
            struct frame out;
            if (v6)
                inner.b[15] |= (uint8_t)(ecn << 4);
            else
                inner.b[15] = (uint8_t)(0x28 | ecn);
            frame_fix_ip(&inner);
            struct frame in = tunnel(&inner, false, 3, false);
            assert_int_equal(run(&in, &out), ecn ? XDP_PASS_ : XDP_DROP_);
            if (!ecn)
                continue;
            assert_int_equal(v6 ? out.b[15] >> 4 & 3 : out.b[15] & 3, 3);
            assert_true(frame_sums_right(&out, 14));
        }
}

static void pieces_of_tunnel_packets_are_dropped_and_counted(void **state)
{
    struct frame inner = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello"),
                 in = tunnel(&inner, false, 0, false), out;
    in.b[20] = 0x20;
    frame_fix_ip(&in);
    assert_int_equal(run(&in, &out), XDP_DROP_);
}

/* No machine here has a connection to the VIP: what the hint says is done with packets in the middle of one.
 */
static void packet_of_an_unknown_connection_is_handed_on_I8(void **state)
{
    struct l4_spec_real hops[2] = {{.server_ids = {7}}, {.server_ids = {8}}};
    struct frame four = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello"), out;
    struct frame six = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "hello");
    assert_true(ip_parse(SLICE("10.0.0.7"), &hops[0].ip));
    assert_true(ip_parse(SLICE("fc00::8"), &hops[1].ip));
    decap.hops = hops;
    decap.n_hops = 2;
    struct frame in = tunnel(&four, false, 0, false);
    in.b[19] = 7; /* the number, in the outer id */
    frame_fix_ip(&in);
    assert_int_equal(run(&in, &out), XDP_TX_);
    assert_int_equal(out.n, in.n);
    assert_memory_equal(out.b, in.b + 6, 6);
    assert_memory_equal(out.b + 30, "\x0a\0\0\x07", 4);
    assert_int_equal(frame_u16(&out, 18), 0); /* handed on once only */
    assert_true(frame_sums_right(&out, 14));
    in = tunnel(&six, true, 0, false);
    in.b[17] = 8; /* in the flow label */
    assert_int_equal(run(&in, &out), XDP_TX_);
    assert_memory_equal(out.b + 38, hops[1].ip.bytes, 16);
    assert_int_equal(out.b[17], 0);
    /* A SYN, an unknown number, a hop of the other family, no number: taken off here. */
    struct frame syn = frame_tcp(CLIENT, VIP, 31337, 80, SYN, "");
    struct frame cases[4] = {tunnel(&syn, false, 0, false), tunnel(&four, false, 0, false),
                             tunnel(&four, false, 0, false), tunnel(&four, false, 0, false)};
    const uint8_t numbers[4] = {7, 9, 8, 0};
    for (int i = 0; i < 4; i++) {
        cases[i].b[19] = numbers[i];
        frame_fix_ip(&cases[i]);
        assert_int_equal(run(&cases[i], &out), XDP_PASS_);
        assert_int_equal(out.n, cases[i].n - 20);
    }
    decap.n_hops = 0;
}

/* Damaged packets: any verdict is fine but the program must end, and what goes out must be a tunnel to a
 * real. */
static void damaged_packets_never_leave_malformed(void **state)
{
    struct rig rig;
    struct rng rng;
    rig_init(&rig);
    uint32_t a = rig_real(&rig, "10.0.0.1", 1), b = rig_real(&rig, "fc00::1", 1);
    uint32_t set = rig_set(&rig, 2, a, b);
    rig_vip(&rig, VIP, 80, 6, 0, set);
    rig_vip(&rig, VIP, 443, 17, L4_VIP_QUIC | L4_VIP_FRAGMENTS, set);
    rig_vip(&rig, VIP6, 0, 6, L4_VIP_TRACK, set);
    rig_vip(&rig, "fc00:1::/64", 0, 17, 0, set);
    rig_start(&rig);
    rng_init(&rng, 20240607);
    uint32_t verdicts[4] = {0}, rounds = 30000;
    struct frame quoted = frame_tcp(VIP, CLIENT, 80, 31337, ACK, "hello");
    for (uint32_t n = 0; n < rounds; n++) {
        struct frame in, out;
        switch (rng_below(&rng, 5)) {
        case 0:
            in = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello, world");
            break;
        case 1:
            in = frame_udp(CLIENT, VIP, 31337, 443, "\xe0\0\0\0\1\10\100\0\0\0\0\0\0\0\0\0", 16);
            break;
        case 2:
            in = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "hello, world");
            break;
        case 3:
            in = frame_icmp("203.0.113.9", VIP, 3, 4, 1400, quoted.b + 14, 40);
            break;
        default:
            in = frame_udp(CLIENT6, "fc00:1::9", 31337, 80, "hello, world", 12);
        }
        for (uint32_t hits = rng_below(&rng, 5); hits; hits--)
            in.b[12 + rng_below(&rng, in.n - 12)] = (uint8_t)rng_next(&rng);
        if (rng_below(&rng, 4) == 0)
            in.n = 14 + rng_below(&rng, in.n - 13);
        uint32_t verdict = rig_run(&rig, &in, &out);
        assert_in_range(verdict, XDP_DROP_, XDP_TX_);
        verdicts[verdict]++;
        if (verdict == XDP_PASS_) {
            assert_int_equal(out.n, in.n);
            assert_memory_equal(out.b, in.b, out.n);
        } else if (verdict == XDP_TX_ && rig_real_of(&rig, &out) < 0) {
            /* An answer of the VIP itself: ICMP, with a right header. */
            assert_true(out.b[12] == 0x86 || out.b[12] == 0x81 || out.b[12] == 0x88 || out.b[23] == 1);
        }
    }
    print_message("%u damaged packets: %u dropped, %u passed, %u sent\n", rounds, verdicts[XDP_DROP_],
                  verdicts[XDP_PASS_], verdicts[XDP_TX_]);
    rig_stop(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tunnels_of_all_kinds_are_taken_off_I3),
        cmocka_unit_test(what_is_no_tunnel_for_our_vips_stays_as_it_is),
        cmocka_unit_test(congestion_marks_are_combined_C_160),
        cmocka_unit_test(pieces_of_tunnel_packets_are_dropped_and_counted),
        cmocka_unit_test(packet_of_an_unknown_connection_is_handed_on_I8),
        cmocka_unit_test(damaged_packets_never_leave_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
