/* SPDX-License-Identifier: Apache-2.0 */
#include "config/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void what_is_read_prints_the_same(void **state)
{
    static const char *const texts[] = {"127.0.0.1:80", "[::1]:8443", ":0", "unix:/run/x.sock",
                                        "10.0.0.1:65535"};
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct config_endpoint endpoint;
        const char *why;
        assert_true(endpoint_parse(slice_str(texts[i]), &endpoint, &why));
        endpoint_name(&endpoint, &arena);
        assert_string_equal(endpoint.text.ptr, texts[i]);
    }
    arena_fini(&arena);
}

static void rejects_what_is_no_endpoint(void **state)
{
    static const char *const bad[] = {
        "",           "80",           "127.0.0.1",     "127.0.0.1:",    "127.0.0.1:65536",
        "::1:80",     "localhost:80", "127.0.0.1:+80", "[::1]",         "unix:",
        "unix:/a\nb", "127.0.0.1:8 ", "256.0.0.1:1",   "[127.0.0.1]:80"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct config_endpoint endpoint;
        const char *why = NULL;
        assert_false(endpoint_parse(slice_str(bad[i]), &endpoint, &why));
        assert_non_null(why);
    }
}

static void rejects_socket_paths_that_the_kernel_would_cut(void **state)
{
    char text[5 + ENDPOINT_UNIX_MAX + 1] = "unix:";
    struct config_endpoint endpoint;
    const char *why;
    memset(text + 5, 'x', sizeof(text) - 5);
    assert_true(endpoint_parse(slice_of(text, sizeof(text) - 1), &endpoint, &why));
    assert_false(endpoint_parse(slice_of(text, sizeof(text)), &endpoint, &why));
}

static bool is_local(const char *text)
{
    struct config_endpoint endpoint;
    const char *why;
    assert_true(endpoint_parse(slice_str(text), &endpoint, &why));
    return endpoint_is_local(&endpoint);
}

static void loopback_and_unix_sockets_are_local(void **state)
{
    assert_true(is_local("127.0.0.1:1"));
    assert_true(is_local("127.9.9.9:1"));
    assert_true(is_local("[::1]:1"));
    assert_true(is_local("[::ffff:127.0.0.1]:1"));
    assert_true(is_local("unix:/x"));
    assert_false(is_local(":1"));
    assert_false(is_local("0.0.0.0:1"));
    assert_false(is_local("[::]:1"));
    assert_false(is_local("10.0.0.1:1"));
    assert_false(is_local("128.0.0.1:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_read_prints_the_same),
        cmocka_unit_test(rejects_what_is_no_endpoint),
        cmocka_unit_test(rejects_socket_paths_that_the_kernel_would_cut),
        cmocka_unit_test(loopback_and_unix_sockets_are_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
