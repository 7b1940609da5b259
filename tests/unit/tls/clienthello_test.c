/* SPDX-License-Identifier: Apache-2.0 */
#include "tls/clienthello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char scratch[CLIENT_HELLO_BYTES + 4];

/* A hello under construction: the message without records. */
struct bytes {
    char data[40000];
    size_t len;
};

static void put(struct bytes *out, const char *data, size_t len)
{
    memcpy(out->data + out->len, data, len);
    out->len += len;
}

static void put_number(struct bytes *out, unsigned n_bytes, size_t value)
{
    for (unsigned i = n_bytes; i-- > 0;)
        out->data[out->len++] = (char)(value >> (8 * i));
}

static void add_extension(struct bytes *out, unsigned type, const char *data, size_t len)
{
    put_number(out, 2, type);
    put_number(out, 2, len);
    put(out, data, len);
}

static void add_name(struct bytes *out, const char *name, size_t len)
{
    struct bytes body = {.len = 0};
    put_number(&body, 2, len + 3);
    put_number(&body, 1, 0);
    put_number(&body, 2, len);
    put(&body, name, len);
    add_extension(out, 0, body.data, body.len);
}

/* The whole message around extensions. */
static struct bytes message(const struct bytes *extensions)
{
    static const char random[32];
    struct bytes body = {.len = 0}, out = {.len = 0};
    put_number(&body, 2, 0x0303);
    put(&body, random, sizeof(random));
    put_number(&body, 1, 0);
    put_number(&body, 2, 2);
    put_number(&body, 2, 0x1301);
    put_number(&body, 1, 1);
    put_number(&body, 1, 0);
    if (extensions) {
        put_number(&body, 2, extensions->len);
        put(&body, extensions->data, extensions->len);
    }
    put_number(&out, 1, 1);
    put_number(&out, 3, body.len);
    put(&out, body.data, body.len);
    return out;
}

static struct bytes records(const struct bytes *of, size_t piece)
{
    struct bytes out = {.len = 0};
    for (size_t at = 0; at < of->len; at += piece) {
        size_t part = of->len - at < piece ? of->len - at : piece;
        put_number(&out, 1, 22);
        put_number(&out, 2, 0x0301);
        put_number(&out, 2, part);
        put(&out, of->data + at, part);
    }
    return out;
}

static enum client_hello_result peek(const struct bytes *extensions, size_t piece, struct client_hello *hello)
{
    static struct bytes wire; /* the slices borrow from it */
    struct bytes whole = message(extensions);
    wire = records(&whole, piece);
    for (size_t n = 0; n < wire.len; n++)
        if (client_hello_peek(wire.data, n, scratch, hello) == CLIENT_HELLO_COMPLETE)
            return CLIENT_HELLO_INVALID;
    return client_hello_peek(wire.data, wire.len, scratch, hello);
}

static struct bytes usual(void)
{
    static const char alpn[] = "\0\x0c\x02h2\x08http/1.1", versions[] = "\x04\x0a\x0a\x03\x04";
    struct bytes out = {.len = 0};
    add_extension(&out, 0x1a1a, "", 0); /* GREASE */
    add_name(&out, "shop.example", 12);
    add_extension(&out, 16, alpn, sizeof(alpn) - 1);
    add_extension(&out, 43, versions, sizeof(versions) - 1);
    return out;
}

static void name_and_protocols_are_read(void **state)
{
    struct bytes extensions = usual();
    struct client_hello hello;
    struct slice name;
    assert_int_equal(client_hello_peek("\x16\x03\x01\x01\x00", 5, scratch, &hello), CLIENT_HELLO_INCOMPLETE);
    assert_int_equal(peek(&extensions, 16000, &hello), CLIENT_HELLO_COMPLETE);
    assert_true(slice_eq(hello.server_name, SLICE("shop.example")));
    assert_true(hello.offers_tls_1_3);
    assert_true(client_hello_next_alpn(&hello.alpn, &name) && slice_eq(name, SLICE("h2")));
    assert_true(client_hello_next_alpn(&hello.alpn, &name) && slice_eq(name, SLICE("http/1.1")));
    assert_false(client_hello_next_alpn(&hello.alpn, &name));
}

static void records_may_cut_it_anywhere(void **state)
{
    struct bytes extensions = usual();
    struct client_hello hello;
    for (size_t piece = 2; piece < 130; piece++) {
        assert_int_equal(peek(&extensions, piece, &hello), CLIENT_HELLO_COMPLETE);
        assert_true(slice_eq(hello.server_name, SLICE("shop.example")));
    }
}

static void a_hello_of_16_KiB_is_read_and_a_longer_one_refused(void **state)
{
    static char padding[17000];
    struct bytes extensions = usual();
    struct client_hello hello;
    add_extension(&extensions, 21, padding, 16384 - 49 - extensions.len);
    assert_int_equal(message(&extensions).len, 4 + 16384 - 2);
    assert_int_equal(peek(&extensions, 1000, &hello), CLIENT_HELLO_COMPLETE);
    assert_int_equal(peek(&extensions, 16384, &hello), CLIENT_HELLO_COMPLETE);
    add_extension(&extensions, 0x2a2a, "", 0);
    assert_int_equal(peek(&extensions, 16384, &hello), CLIENT_HELLO_INVALID);
}

static void without_extensions_nothing_is_known(void **state)
{
    struct bytes none = {.len = 0};
    struct client_hello hello;
    assert_int_equal(peek(NULL, 16000, &hello), CLIENT_HELLO_COMPLETE);
    assert_null(hello.server_name.ptr);
    assert_null(hello.alpn.ptr);
    assert_false(hello.offers_tls_1_3);
    assert_int_equal(peek(&none, 16000, &hello), CLIENT_HELLO_COMPLETE);
}

static void rejects_names_that_are_none(void **state)
{
    static char longest[256];
    struct client_hello hello;
    struct bytes empty = {.len = 0}, nul = {.len = 0}, too_long = {.len = 0}, twice = {.len = 0};
    memset(longest, 'a', sizeof(longest));
    add_name(&empty, "", 0);
    add_name(&nul, "a\0b", 3);
    add_name(&too_long, longest, 256);
    add_name(&twice, "a", 1);
    add_name(&twice, "b", 1);
    assert_int_equal(peek(&empty, 16000, &hello), CLIENT_HELLO_INVALID);
    assert_int_equal(peek(&nul, 16000, &hello), CLIENT_HELLO_INVALID);
    assert_int_equal(peek(&too_long, 16000, &hello), CLIENT_HELLO_INVALID);
    assert_int_equal(peek(&twice, 16000, &hello), CLIENT_HELLO_INVALID);
}

static void rejects_what_is_no_hello(void **state)
{
    static const struct {
        const char *data;
        size_t len;
    } bad[] = {
        {"GET / HTTP/1.1\r\n", 16},
        {"G", 1},
        {"\x80\x2e\x01\x03\x01", 5},
        {"\x15\x03\x01\x00\x02\x02\x28", 7},
        {"\x16\x02", 2},
        {"\x16\x03\x01\x00\x00", 5},
        {"\x16\x03\x01\xff\xff", 5},
        {"\x16\x03\x01\x00\x01\x02", 6},
        {"\x16\x03\x01\x00\x04\x01\xff\xff\xff", 9},
    };
    struct client_hello hello;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(client_hello_peek(bad[i].data, bad[i].len, scratch, &hello), CLIENT_HELLO_INVALID);
}

static void rejects_a_hello_in_too_many_records(void **state)
{
    struct bytes extensions = usual();
    struct client_hello hello;
    assert_int_equal(peek(&extensions, 1, &hello), CLIENT_HELLO_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(name_and_protocols_are_read),
        cmocka_unit_test(records_may_cut_it_anywhere),
        cmocka_unit_test(a_hello_of_16_KiB_is_read_and_a_longer_one_refused),
        cmocka_unit_test(without_extensions_nothing_is_known),
        cmocka_unit_test(rejects_names_that_are_none),
        cmocka_unit_test(rejects_what_is_no_hello),
        cmocka_unit_test(rejects_a_hello_in_too_many_records),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
