/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to which VIP and how it leaves: encapsulation, tags, options, ICMP, and what passes or is
 * dropped. Names end in the case or requirement they show. */
#include "harness.h"

#include <stdio.h>

static const char CLIENT[] = "192.0.2.7", VIP[] = "10.200.1.1", CLIENT6[] = "2001:db8::7",
                  VIP6[] = "fc00:1::1";

static struct rig rig;

static int start(void **state)
{
    rig_init(&rig);
    uint32_t a = rig_real(&rig, "10.0.0.1", 100), b = rig_real(&rig, "10.0.0.2", 100);
    uint32_t c = rig_real(&rig, "fc00::1", 100), d = rig_real(&rig, "fc00::2", 100);
    uint32_t v4 = rig_set(&rig, 2, a, b), v6 = rig_set(&rig, 2, c, d), none = rig_set(&rig, 0);
    rig_vip(&rig, VIP, 80, 6, 0, v4);
    rig_vip(&rig, VIP, 80, 17, 0, v4);
    rig_vip(&rig, "10.200.1.2", 0, 6, 0, v4);
    rig_vip(&rig, "10.200.1.3", 80, 6, 0, v6);
    rig_vip(&rig, VIP6, 80, 6, 0, v6);
    rig_vip(&rig, "fc00:1::2", 80, 17, 0, v4);
    rig_vip(&rig, "10.200.1.4", 0, 6, L4_VIP_HASH_PORT, v4);
    rig_vip(&rig, "10.200.1.5", 80, 6, L4_VIP_HASH_SOURCE, v4);
    rig_vip(&rig, "10.200.1.6", 80, 17, L4_VIP_FRAGMENTS, v4);
    rig_vip(&rig, "10.200.1.99", 80, 6, 0, none);
    rig_vip(&rig, "203.0.113.0/24", 443, 6, 0, v4);
    rig_vip(&rig, "fc00:3::/64", 0, 17, 0, v6);
    return 0;
}

static int stop(void **state)
{
    if (rig.loader)
        rig_stop(&rig);
    return 0;
}

static void ready(void)
{
    if (!rig.loader)
        rig_start(&rig);
}

/* The inner packet must come out as it went in. */
static void check_tunnel(const struct frame *in, const struct frame *out, uint32_t l2, uint32_t outer)
{
    assert_int_equal(out->n, in->n + outer);
    assert_memory_equal(out->b + l2 + outer, in->b + l2, in->n - l2);
    assert_true(frame_sums_right(out, l2));
}

static void tcp_over_ipv4_leaves_in_ipip_towards_a_real_I1(void **state)
{
    ready();
    struct frame in = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello"), out;
    in.b[15] = 0x8d; /* DSCP and ECN */
    frame_fix_ip(&in);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    check_tunnel(&in, &out, 14, 20);
    assert_in_range(rig_real_of(&rig, &out), 0, 1);
    assert_memory_equal(out.b, in.b + 6, 6); /* back to where it came from */
    assert_memory_equal(out.b + 6, in.b, 6);
    assert_int_equal(out.b[15], 0x8d);
    assert_int_equal(out.b[14 + 8], 64);
    assert_int_equal(out.b[14 + 9], 4);
    assert_int_equal(frame_u16(&out, 16), in.n - 14 + 20);
    assert_int_equal(out.b[14 + 12], 198);
    assert_int_equal(out.b[14 + 13], 18);
}

static void tcp_over_ipv6_leaves_in_ip6ip6(void **state)
{
    ready();
    struct frame in = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "hello"), out;
    in.b[14] = 0x68; /* traffic class 0x8c */
    in.b[15] = 0xc0;
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    check_tunnel(&in, &out, 14, 40);
    assert_in_range(rig_real_of(&rig, &out), 2, 3);
    assert_int_equal(out.b[14], 0x68);
    assert_int_equal(out.b[15], 0xc0);
    assert_int_equal(out.b[14 + 6], 41);
    assert_int_equal(out.b[14 + 7], 64);
    assert_int_equal(frame_u16(&out, 18), in.n - 14);
}

static void ipv4_to_ipv6_reals_and_back(void **state)
{
    ready();
    struct frame in = frame_tcp(CLIENT, "10.200.1.3", 31337, 80, ACK, "hello"), out;
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(out.n, in.n + 40);
    assert_int_equal(out.b[14 + 6], 4);
    assert_memory_equal(out.b + 54, in.b + 14, in.n - 14);
    in = frame_udp(CLIENT6, "fc00:1::2", 31337, 80, "x", 1);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(out.n, in.n + 20);
    assert_int_equal(out.b[14 + 9], 41);
    assert_memory_equal(out.b + 34, in.b + 14, in.n - 14);
    assert_true(frame_sums_right(&out, 14));
}

static void padding_is_not_counted_C_157(void **state)
{
    ready();
    struct frame in = frame_tcp(CLIENT, VIP, 31337, 80, ACK, ""), out;
    in.n += 6; /* a 54-byte frame padded to the Ethernet minimum */
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(frame_u16(&out, 16), 60);
}

static void any_port_and_prefix_vips_match(void **state)
{
    ready();
    struct frame in = frame_tcp(CLIENT, "10.200.1.2", 31337, 4242, ACK, "");
    assert_in_range(rig_target(&rig, &in), 0, 1);
    in = frame_tcp(CLIENT, "203.0.113.200", 31337, 443, ACK, "");
    assert_in_range(rig_target(&rig, &in), 0, 1);
    in = frame_tcp(CLIENT, "203.0.113.200", 31337, 80, ACK, "");
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_PASS_);
    in = frame_tcp(CLIENT, "203.0.114.1", 31337, 443, ACK, "");
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_PASS_);
    in = frame_udp(CLIENT6, "fc00:3::99", 31337, 9, "x", 1);
    assert_in_range(rig_target(&rig, &in), 2, 3);
    in = frame_udp(CLIENT6, "fc00:3:0:1::", 31337, 9, "x", 1);
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_PASS_);
}

static void one_flow_always_gets_the_same_real_and_many_spread_B5(void **state)
{
    ready();
    int count[2] = {0};
    for (uint16_t port = 1024; port < 3024; port++) {
        struct frame in = frame_tcp(CLIENT, VIP, port, 80, SYN, "");
        int real = rig_target(&rig, &in);
        assert_in_range(real, 0, 1);
        count[real]++;
        struct frame later = frame_tcp(CLIENT, VIP, port, 80, ACK, "data");
        assert_int_equal(rig_target(&rig, &later), real);
    }
    assert_in_range(count[0], 900, 1100);
}

static void hashing_by_port_or_source_only_ignores_the_rest(void **state)
{
    ready();
    struct frame first = frame_tcp(CLIENT, "10.200.1.4", 31337, 42, ACK, "");
    struct frame other = frame_tcp("198.51.100.77", "10.200.1.4", 1337, 42, ACK, "");
    assert_int_equal(rig_target(&rig, &first), rig_target(&rig, &other));
    struct frame source = frame_tcp(CLIENT, "10.200.1.5", 1, 80, ACK, "");
    int real = rig_target(&rig, &source);
    for (uint16_t port = 2; port < 50; port++) {
        source = frame_tcp(CLIENT, "10.200.1.5", port, 80, ACK, "");
        assert_int_equal(rig_target(&rig, &source), real);
    }
}

static void vip_without_reals_drops_and_counts_A11(void **state)
{
    ready();
    struct frame in = frame_tcp(CLIENT, "10.200.1.99", 31337, 80, SYN, "");
    uint64_t before = rig_event(&rig, L4_DROP_NO_REAL);
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_DROP_);
    assert_int_equal(rig_event(&rig, L4_DROP_NO_REAL), before + 1);
}

static void what_is_not_for_a_vip_passes_untouched_C_164(void **state)
{
    ready();
    struct frame arp = {.n = 60, .b = {[12] = 0x08, [13] = 0x06}};
    struct frame lldp = {.n = 60, .b = {[12] = 0x88, [13] = 0xcc}};
    struct frame short_ip = {.n = 20, .b = {[12] = 0x08, [13] = 0x00, [14] = 0x45}};
    struct frame ssh = frame_tcp(CLIENT, "10.99.0.1", 31337, 22, SYN, "");
    struct frame port = frame_tcp(CLIENT, VIP, 31337, 81, SYN, "");
    struct frame from_vip = frame_tcp(VIP, CLIENT, 80, 31337, ACK, "");
    struct frame broken = frame_tcp(CLIENT, "10.99.0.1", 31337, 80, SYN, "");
    broken.b[14 + 20 + 12] = 0x30;
    struct frame fragment = frame_udp(CLIENT, "10.99.0.1", 31337, 80, "x", 1);
    fragment.b[20] = 0x20;
    frame_fix_ip(&fragment);
    struct frame options = frame_tcp(CLIENT, "10.99.0.1", 31337, 80, SYN, "");
    options.b[14] = 0x46;
    frame_insert(&options, 34, "\1\1\1\1", 4);
    frame_fix_ip(&options);
    struct frame ping = frame_icmp(CLIENT, "10.99.0.1", 8, 0, 1, "ping", 4);
    struct frame esp = frame_udp(CLIENT, VIP, 31337, 80, "x", 1);
    esp.b[23] = 50;
    frame_fix_ip(&esp);
    struct frame *const all[] = {&arp,    &lldp,     &short_ip, &ssh,  &port, &from_vip,
                                 &broken, &fragment, &options,  &ping, &esp};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct frame out;
        assert_int_equal(rig_run(&rig, all[i], &out), XDP_PASS_);
        assert_int_equal(out.n, all[i]->n);
        assert_memory_equal(out.b, all[i]->b, out.n);
    }
}

static void malformed_vip_packets_are_dropped_each_under_its_own_name(void **state)
{
    ready();
    struct frame ihl4 = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "");
    ihl4.b[14] = 0x44;
    struct frame cut = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello");
    cut.n -= 3;
    struct frame no_tcp = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "");
    no_tcp.n -= 10;
    frame_fix_ip(&no_tcp);
    struct frame offset = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "");
    offset.b[46] = 0x30;
    struct frame synfin = frame_tcp(CLIENT, VIP, 31337, 80, SYN | FIN, "");
    struct frame synack = frame_tcp(CLIENT, VIP, 31337, 80, SYN | ACK, "");
    struct frame short_total = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "");
    short_total.b[16] = 0;
    short_total.b[17] = 19;
    const struct {
        struct frame *in;
        enum l4_event event;
    } cases[] = {{&ihl4, L4_DROP_IP_HEADER},       {&cut, L4_DROP_TRUNCATED},    {&no_tcp, L4_DROP_TRUNCATED},
                 {&offset, L4_DROP_TCP_HEADER},    {&synfin, L4_DROP_TCP_FLAGS}, {&synack, L4_DROP_TCP_FLAGS},
                 {&short_total, L4_DROP_IP_HEADER}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint64_t before = rig_event(&rig, cases[i].event);
        assert_int_equal(rig_run(&rig, cases[i].in, NULL), XDP_DROP_);
        assert_int_equal(rig_event(&rig, cases[i].event), before + 1);
    }
}

static void ip_options_of_every_length_are_followed_C_157(void **state)
{
    ready();
    struct frame plain = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello");
    int real = rig_target(&rig, &plain);
    for (uint8_t words = 1; words <= 10; words++) {
        struct frame in = plain, out;
        uint8_t nops[40];
        memset(nops, 1, sizeof(nops));
        frame_insert(&in, 34, nops, words * 4u);
        in.b[14] = (uint8_t)(0x45 + words);
        frame_fix_ip(&in);
        assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
        assert_int_equal(rig_real_of(&rig, &out), real);
        check_tunnel(&in, &out, 14, 20);
    }
}

static void ipv6_extension_headers_are_followed_up_to_eight(void **state)
{
    ready();
    struct frame plain = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "hello");
    int real = rig_target(&rig, &plain);
    struct frame in = plain;
    for (int n = 1; n <= 9; n++) {
        uint8_t header[8] = {in.b[20], 0, 1, 4}; /* destination options, one PadN */
        frame_insert(&in, 54, header, 8);
        in.b[20] = 60;
        frame_fix_ip(&in);
        if (n < 8) {
            assert_int_equal(rig_target(&rig, &in), real);
        } else {
            uint64_t before = rig_event(&rig, L4_DROP_EXTENSIONS);
            assert_int_equal(rig_run(&rig, &in, NULL), XDP_DROP_);
            assert_int_equal(rig_event(&rig, L4_DROP_EXTENSIONS), before + 1);
        }
    }
}

static void one_and_two_vlan_tags_stay_on_three_pass_C_161(void **state)
{
    ready();
    struct frame plain = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello"), in = plain, out;
    int real = rig_target(&rig, &plain);
    frame_insert(&in, 12, "\x81\x00\x00\x2a", 4);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(rig_real_of(&rig, &out), real);
    check_tunnel(&in, &out, 18, 20);
    assert_memory_equal(out.b + 12, "\x81\x00\x00\x2a\x08\x00", 6);
    frame_insert(&in, 12, "\x88\xa8\x00\x07", 4);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(rig_real_of(&rig, &out), real);
    check_tunnel(&in, &out, 22, 20);
    assert_memory_equal(out.b + 12, "\x88\xa8\x00\x07\x81\x00\x00\x2a\x08\x00", 10);
    frame_insert(&in, 12, "\x88\xa8\x00\x08", 4);
    uint64_t before = rig_event(&rig, L4_VLAN_DEEP);
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_PASS_);
    assert_int_equal(rig_event(&rig, L4_VLAN_DEEP), before + 1);
    struct frame six = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "hello");
    real = rig_target(&rig, &six);
    frame_insert(&six, 12, "\x81\x00\x00\x00", 4); /* priority tag */
    assert_int_equal(rig_run(&rig, &six, &out), XDP_TX_);
    assert_int_equal(rig_real_of(&rig, &out), real);
    check_tunnel(&six, &out, 18, 40);
}

static void fragments_of_vips_are_dropped_and_counted_I4(void **state)
{
    ready();
    struct frame first = frame_udp(CLIENT, VIP, 31337, 80, "12345678", 8), later = first;
    first.b[20] = 0x20;
    frame_fix_ip(&first);
    later.b[21] = 2;
    frame_fix_ip(&later);
    struct frame six = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, "hello");
    frame_insert(&six, 54, "\x06\x00\x00\x01\x00\x00\x00\x09", 8);
    six.b[20] = 44;
    frame_fix_ip(&six);
    struct frame *const all[] = {&first, &later, &six};
    for (size_t i = 0; i < 3; i++) {
        uint64_t before = rig_event(&rig, L4_DROP_FRAGMENT);
        assert_int_equal(rig_run(&rig, all[i], NULL), XDP_DROP_);
        assert_int_equal(rig_event(&rig, L4_DROP_FRAGMENT), before + 1);
    }
    six.b[54 + 3] = 0; /* an atomic fragment is whole */
    assert_in_range(rig_target(&rig, &six), 2, 3);
}

static void fragments_go_where_whole_packets_go_when_asked_I4(void **state)
{
    ready();
    for (uint8_t host = 1; host < 40; host++) {
        char client[32];
        snprintf(client, sizeof(client), "192.0.2.%u", host);
        struct frame whole = frame_udp(client, "10.200.1.6", 31337, 80, "12345678", 8), piece = whole;
        int real = rig_target(&rig, &whole);
        assert_in_range(real, 0, 1);
        piece.b[20] = 0x20;
        frame_fix_ip(&piece);
        assert_int_equal(rig_target(&rig, &piece), real);
        piece.b[20] = 0;
        piece.b[21] = 7;
        frame_fix_ip(&piece);
        assert_int_equal(rig_target(&rig, &piece), real);
    }
}

static void pings_of_vips_are_answered(void **state)
{
    ready();
    struct frame in = frame_icmp(CLIENT, VIP, 8, 0, 0x00120034, "abcdefgh", 8), out;
    in.b[22] = 3;
    frame_fix_ip(&in);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    struct frame want = frame_icmp(VIP, CLIENT, 0, 0, 0x00120034, "abcdefgh", 8);
    assert_int_equal(out.n, want.n);
    assert_memory_equal(out.b + 14, want.b + 14, want.n - 14);
    in = frame_icmp(CLIENT6, VIP6, 128, 0, 0x00120034, "abcdefgh", 8);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    want = frame_icmp(VIP6, CLIENT6, 129, 0, 0x00120034, "abcdefgh", 8);
    assert_memory_equal(out.b + 14, want.b + 14, want.n - 14);
    assert_memory_equal(out.b, in.b + 6, 6);
    in =
        frame_icmp(CLIENT, VIP, 8, 0, 0, "", 0); /* the answer is nothing but zeros: its sum must be 0xffff */
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(frame_u16(&out, 36), 0xffff);
}

/* The packet that a router complains about: from the VIP to the client. */
static struct frame error_about(const char *router, uint8_t type, uint8_t code, const struct frame *inner,
                                uint32_t quoted)
{
    bool v6 = inner->b[14] >> 4 == 6;
    return frame_icmp(router, v6 ? VIP6 : VIP, type, code, 1400, inner->b + 14, quoted);
}

static void icmp_errors_reach_the_owner_even_with_eight_quoted_bytes_C_152(void **state)
{
    ready();
    static const uint8_t types[] = {3, 11, 12};
    for (uint16_t port = 2000; port < 2100; port++) {
        struct frame flow = frame_tcp(CLIENT, VIP, port, 80, ACK, "data");
        struct frame reply = frame_tcp(VIP, CLIENT, 80, port, ACK, "data");
        int real = rig_target(&rig, &flow);
        for (uint32_t quoted = 28; quoted <= 44; quoted += 8) {
            struct frame in = error_about("203.0.113.1", types[port % 3], 4, &reply, quoted), out;
            assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
            assert_int_equal(rig_real_of(&rig, &out), real);
            check_tunnel(&in, &out, 14, 20);
        }
    }
    struct frame flow = frame_tcp(CLIENT6, VIP6, 7777, 80, ACK, "data");
    struct frame reply = frame_tcp(VIP6, CLIENT6, 80, 7777, ACK, "data");
    int real = rig_target(&rig, &flow);
    for (uint8_t type = 1; type <= 4; type++) {
        struct frame in = error_about("fc00:200::1", type, 0, &reply, 48);
        assert_int_equal(rig_target(&rig, &in), real);
    }
}

static void icmp_errors_with_options_in_the_quoted_header_and_for_udp(void **state)
{
    ready();
    struct frame flow = frame_udp(CLIENT, VIP, 5555, 80, "data", 4);
    int real = rig_target(&rig, &flow);
    struct frame reply = frame_udp(VIP, CLIENT, 80, 5555, "data", 4);
    frame_insert(&reply, 34, "\1\1\1\1\1\1\1\1", 8);
    reply.b[14] = 0x47;
    frame_fix_ip(&reply);
    struct frame in = error_about("203.0.113.1", 3, 4, &reply, 36);
    assert_int_equal(rig_target(&rig, &in), real);
}

static void icmp_errors_about_something_else_pass(void **state)
{
    ready();
    struct frame other = frame_tcp(VIP, CLIENT, 22, 31337, ACK, "data");
    struct frame in = error_about("203.0.113.1", 3, 4, &other, 28);
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_PASS_);
    other = frame_tcp("10.99.0.1", CLIENT, 80, 31337, ACK, "data");
    in = error_about("203.0.113.1", 3, 4, &other, 28);
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_PASS_);
}

static void too_large_packets_are_answered_with_the_mtu_C_154(void **state)
{
    ready();
    char payload[2048] = {0};
    struct frame out, in = frame_udp(CLIENT, VIP, 31337, 80, payload, 1473);
    in.b[20] = 0x40;
    frame_fix_ip(&in);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(out.n, 14 + 112);
    assert_true(frame_sums_right(&out, 14));
    assert_int_equal(out.b[34], 3);
    assert_int_equal(out.b[35], 4);
    assert_int_equal(frame_u16(&out, 40), 1500);
    assert_int_equal(frame_u16(&out, 20), 0);
    assert_memory_equal(out.b + 42, in.b + 14, 84);
    in = frame_udp(CLIENT, VIP, 31337, 80, payload, 1473); /* may be fragmented: dropped, as documented */
    uint64_t before = rig_event(&rig, L4_DROP_TOO_BIG);
    assert_int_equal(rig_run(&rig, &in, NULL), XDP_DROP_);
    assert_int_equal(rig_event(&rig, L4_DROP_TOO_BIG), before + 1);
    memset(payload, 'x', 1441);
    in = frame_tcp(CLIENT6, VIP6, 31337, 80, ACK, payload);
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    assert_int_equal(out.b[54], 2);
    assert_int_equal(frame_u16(&out, 60), 1500);
    assert_true(frame_sums_right(&out, 14));
    assert_true(out.n <= 1280 + 14);
}

static void counters_say_packets_and_bytes_per_vip_and_real(void **state)
{
    ready();
    struct frame in = frame_tcp(CLIENT, VIP, 31337, 80, ACK, "hello"), out;
    assert_int_equal(rig_run(&rig, &in, &out), XDP_TX_);
    uint32_t id = l4_real_id(rig.view, &rig.spec.reals[rig_real_of(&rig, &out)].ip, false);
    uint64_t before[2] = {0}, after[2] = {0};
    for (uint32_t cpu = 0; cpu < rig.view->n_cpus; cpu++) {
        before[0] += rig.view->real_count[cpu * L4_REALS + id].packets;
        before[1] += rig.view->real_count[cpu * L4_REALS + id].bytes;
    }
    rig_run(&rig, &in, NULL);
    for (uint32_t cpu = 0; cpu < rig.view->n_cpus; cpu++) {
        after[0] += rig.view->real_count[cpu * L4_REALS + id].packets;
        after[1] += rig.view->real_count[cpu * L4_REALS + id].bytes;
    }
    assert_int_equal(after[0], before[0] + 1);
    assert_int_equal(after[1], before[1] + 45);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_over_ipv4_leaves_in_ipip_towards_a_real_I1),
        cmocka_unit_test(tcp_over_ipv6_leaves_in_ip6ip6),
        cmocka_unit_test(ipv4_to_ipv6_reals_and_back),
        cmocka_unit_test(padding_is_not_counted_C_157),
        cmocka_unit_test(any_port_and_prefix_vips_match),
        cmocka_unit_test(one_flow_always_gets_the_same_real_and_many_spread_B5),
        cmocka_unit_test(hashing_by_port_or_source_only_ignores_the_rest),
        cmocka_unit_test(vip_without_reals_drops_and_counts_A11),
        cmocka_unit_test(what_is_not_for_a_vip_passes_untouched_C_164),
        cmocka_unit_test(malformed_vip_packets_are_dropped_each_under_its_own_name),
        cmocka_unit_test(ip_options_of_every_length_are_followed_C_157),
        cmocka_unit_test(ipv6_extension_headers_are_followed_up_to_eight),
        cmocka_unit_test(one_and_two_vlan_tags_stay_on_three_pass_C_161),
        cmocka_unit_test(fragments_of_vips_are_dropped_and_counted_I4),
        cmocka_unit_test(fragments_go_where_whole_packets_go_when_asked_I4),
        cmocka_unit_test(pings_of_vips_are_answered),
        cmocka_unit_test(icmp_errors_reach_the_owner_even_with_eight_quoted_bytes_C_152),
        cmocka_unit_test(icmp_errors_with_options_in_the_quoted_header_and_for_udp),
        cmocka_unit_test(icmp_errors_about_something_else_pass),
        cmocka_unit_test(too_large_packets_are_answered_with_the_mtu_C_154),
        cmocka_unit_test(counters_say_packets_and_bytes_per_vip_and_real),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
