/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxyproto.h"

#include "core/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define SIGNATURE      "\r\n\r\n\0\r\nQUIT\n"
#define V2(head, body) SLICE(SIGNATURE head body)
#define IPV4           "\xc0\0\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb" /* 192.0.2.1:56324 to 198.51.100.2:443 */

static enum proxyproto_result read_text(struct slice text, struct proxyproto *out)
{
    return proxyproto_read(text.ptr, text.len, out);
}

static struct proxyproto complete(struct slice text)
{
    struct proxyproto header;
    assert_int_equal(read_text(text, &header), PROXYPROTO_COMPLETE);
    return header;
}

static void assert_ip(const struct ip_addr *ip, const char *wanted)
{
    char text[IP_TEXT_MAX];
    struct slice have = slice_of(text, ip_print(ip, text));
    assert_true(slice_eq(have, slice_str(wanted)));
}

static void a_line_names_both_ends(void **state)
{
    struct proxyproto header = complete(SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\nGET"));
    assert_int_equal(header.version, 1);
    assert_true(header.has_addresses);
    assert_int_equal(header.len, 45);
    assert_ip(&header.src, "192.0.2.1");
    assert_ip(&header.dst, "198.51.100.2");
    assert_int_equal(header.src_port, 56324);
    assert_int_equal(header.dst_port, 443);
}

static void an_unknown_line_says_nothing_whatever_follows(void **state)
{
    assert_false(complete(SLICE("PROXY UNKNOWN\r\n")).has_addresses);
    assert_false(complete(SLICE("PROXY UNKNOWN ffff::1 junk 1 2\r\n")).has_addresses);
}

static void the_longest_line_is_read(void **state)
{
    struct proxyproto header =
        complete(SLICE("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ffff:ffff:ffff:ffff:ffff:ffff:"
                       "ffff:ffff 65535 65535\r\n"));
    assert_int_equal(header.src.family, 6);
    assert_int_equal(header.dst_port, 65535);
}

static void every_beginning_of_a_header_is_incomplete(void **state)
{
    struct slice all[] = {SLICE("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n"),
                          V2("\x21\x11\0\x0f", IPV4 "\x04\0\0")};
    struct proxyproto header;
    for (size_t i = 0; i < iso_countof(all); i++)
        for (size_t n = 0; n < all[i].len; n++)
            assert_int_equal(proxyproto_read(all[i].ptr, n, &header), PROXYPROTO_INCOMPLETE);
}

static void rejects_lines_that_break_the_rules(void **state)
{
    static const char *const lines[] = {
        "proxy TCP4 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.256 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 65536 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 01 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 +1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2 3\r\n",
        "PROXY TCP4  192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2 \r\n",
        "PROXY TCP4 2001:db8::1 2001:db8::2 1 2\r\n",
        "PROXY TCP6 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP6 [2001:db8::1] 2001:db8::2 1 2\r\n",
        "PROXY TCP5 192.0.2.1 198.51.100.2 1 2\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 1 2\rX",
        "PROXY UNKNOWNX\r\n",
        "PROXY \r\n",
        ("PROXY TCP4 192.0.2.1 198.51.100.2 1 2                                                              "
         " "
         "                               \r\n"),
        "GET / HTTP/1.1\r\n",
    };
    struct proxyproto header;
    for (size_t i = 0; i < iso_countof(lines); i++)
        if (read_text(slice_str(lines[i]), &header) != PROXYPROTO_INVALID)
            fail_msg("accepted: %s", lines[i]);
}

static void version_2_names_both_ends_and_keeps_tlvs(void **state)
{
    struct proxyproto header = complete(V2("\x21\x11\0\x18", IPV4 "\x01\0\x02h2"
                                                                  "\x05\0\x01u"
                                                                  "\xee\0\0"));
    assert_ip(&header.src, "192.0.2.1");
    assert_int_equal(header.dst_port, 443);
    assert_true(slice_eq(proxyproto_find_tlv(header.tlvs, PROXYPROTO_ALPN), SLICE("h2")));
    assert_true(slice_eq(proxyproto_find_tlv(header.tlvs, PROXYPROTO_UNIQUE_ID), SLICE("u")));
    assert_null(proxyproto_find_tlv(header.tlvs, PROXYPROTO_AUTHORITY).ptr);
}

static void mapped_addresses_are_ipv4(void **state)
{
    struct proxyproto header = complete(V2("\x21\x21\0\x24", "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x01"
                                                             "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"
                                                             "\0\x01\0\x02"));
    assert_ip(&header.src, "192.0.2.1");
    assert_ip(&header.dst, "2001:db8::2");
}

static void local_skips_whatever_its_length_says_C_086(void **state)
{
    struct proxyproto header = complete(V2("\x20\x11\0\x0c", "\0\0\0\0\0\0\0\0\0\0\0\0"));
    assert_true(header.is_local);
    assert_false(header.has_addresses);
    assert_int_equal(header.len, 28);
    assert_int_equal(complete(V2("\x20\0\0\0", "")).len, 16);
    assert_int_equal(complete(V2("\x20\x11\0\x03", "\xff\xff\xff")).len, 19);
}

static void a_unix_client_has_no_address(void **state)
{
    char data[16 + 216] = SIGNATURE "\x21\x31\0\xd8";
    struct proxyproto header = complete(slice_of(data, sizeof(data)));
    assert_true(header.has_addresses);
    assert_int_equal(header.src.family, 0);
}

static void the_checksum_is_checked(void **state)
{
    char data[] = SIGNATURE "\x21\x11\0\x13" IPV4 "\x03\0\x04\0\0\0\0";
    struct proxyproto header;
    size_t len = sizeof(data) - 1;
    /* CRC32c of these 35 bytes, by another implementation. */
    memcpy(data + len - 4, "\x20\xec\x95\x49", 4);
    assert_int_equal(proxyproto_read(data, len, &header), PROXYPROTO_COMPLETE);
    data[20] ^= 1;
    assert_int_equal(proxyproto_read(data, len, &header), PROXYPROTO_INVALID);
}

static void rejects_binary_headers_that_break_the_rules(void **state)
{
    struct slice all[] = {
        V2("\x31\x11\0\x0c", IPV4),                       /* version 3 */
        V2("\x2f\x11\0\x0c", IPV4),                       /* command 15 */
        V2("\x21\x41\0\x0c", IPV4),                       /* family 4 */
        V2("\x21\x13\0\x0c", IPV4),                       /* transport 3 */
        V2("\x21\x11\0\x08", "\0\0\0\0\0\0\0\0"),         /* shorter than its addresses */
        V2("\x21\x11\0\x0f", IPV4 "\x01\0\x01"),          /* a TLV beyond the end */
        V2("\x21\x11\0\x0e", IPV4 "\x01\0"),              /* half a TLV */
        V2("\x21\x11\0\x0f", IPV4 "\x03\0\0"),            /* a checksum of no bytes */
        V2("\x21\x11\x40\0", IPV4),                       /* longer than we read */
        SLICE("\r\n\r\n\0\r\nQUIT\v\x21\x11\0\x0c" IPV4), /* the signature's last byte */
    };
    struct proxyproto header;
    for (size_t i = 0; i < iso_countof(all); i++)
        assert_int_equal(read_text(all[i], &header), PROXYPROTO_INVALID);
}

static void what_is_written_reads_the_same(void **state)
{
    static const char *const pairs[][2] = {{"192.0.2.1", "198.51.100.2"}, {"2001:db8::1", "2001:db8::2"}};
    char data[512];
    for (int i = 0; i < 4; i++) {
        struct proxyproto header = {
            .version = (uint8_t)(1 + i / 2), .has_addresses = true, .src_port = 7, .dst_port = 80};
        assert_true(ip_parse(slice_str(pairs[i % 2][0]), &header.src));
        assert_true(ip_parse(slice_str(pairs[i % 2][1]), &header.dst));
        if (header.version == 2)
            header.tlvs = SLICE("\x02\0\x01x");
        size_t len = proxyproto_write(&header, data, sizeof(data));
        struct proxyproto again = complete(slice_of(data, len));
        assert_int_equal(again.len, len);
        assert_ip(&again.src, pairs[i % 2][0]);
        assert_ip(&again.dst, pairs[i % 2][1]);
        assert_int_equal(again.src_port, 7);
        assert_int_equal(again.dst_port, 80);
        assert_int_equal(again.tlvs.len, header.tlvs.len);
    }
}

static void ends_of_two_families_are_written_as_ipv6(void **state)
{
    struct proxyproto header = {.version = 1, .has_addresses = true};
    char data[PROXYPROTO_V1_BYTES];
    assert_true(ip_parse(SLICE("192.0.2.1"), &header.src) && ip_parse(SLICE("2001:db8::2"), &header.dst));
    size_t len = proxyproto_write(&header, data, sizeof(data));
    assert_true(slice_eq(slice_of(data, len), SLICE("PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 0 0\r\n")));
    struct proxyproto again = complete(slice_of(data, len));
    assert_ip(&again.src, "192.0.2.1");
}

static void without_addresses_it_is_unknown_or_local(void **state)
{
    struct proxyproto header = {.version = 1};
    char data[64];
    size_t len = proxyproto_write(&header, data, sizeof(data));
    assert_true(slice_eq(slice_of(data, len), SLICE("PROXY UNKNOWN\r\n")));
    header = (struct proxyproto){.version = 2, .is_local = true};
    len = proxyproto_write(&header, data, sizeof(data));
    assert_true(slice_eq(slice_of(data, len), V2("\x20\0\0\0", "")));
}

static void nothing_is_written_where_it_does_not_fit(void **state)
{
    struct proxyproto header = {.version = 2, .is_local = true};
    char data[16];
    assert_int_equal(proxyproto_write(&header, data, 15), 0);
    assert_int_equal(proxyproto_add_tlv(data, 10, sizeof(data), PROXYPROTO_ALPN, SLICE("http")), 10);
    assert_int_equal(proxyproto_add_tlv(data, 10, sizeof(data), PROXYPROTO_ALPN, SLICE("h2!")), 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_names_both_ends),
        cmocka_unit_test(an_unknown_line_says_nothing_whatever_follows),
        cmocka_unit_test(the_longest_line_is_read),
        cmocka_unit_test(every_beginning_of_a_header_is_incomplete),
        cmocka_unit_test(rejects_lines_that_break_the_rules),
        cmocka_unit_test(version_2_names_both_ends_and_keeps_tlvs),
        cmocka_unit_test(mapped_addresses_are_ipv4),
        cmocka_unit_test(local_skips_whatever_its_length_says_C_086),
        cmocka_unit_test(a_unix_client_has_no_address),
        cmocka_unit_test(the_checksum_is_checked),
        cmocka_unit_test(rejects_binary_headers_that_break_the_rules),
        cmocka_unit_test(what_is_written_reads_the_same),
        cmocka_unit_test(ends_of_two_families_are_written_as_ipv6),
        cmocka_unit_test(without_addresses_it_is_unknown_or_local),
        cmocka_unit_test(nothing_is_written_where_it_does_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
