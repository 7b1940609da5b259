/* SPDX-License-Identifier: Apache-2.0 */
#include "config/redis_url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void each_part_is_found(void **state)
{
    struct arena arena;
    struct redis_url url;
    const char *why;
    arena_init(&arena);
    assert_true(redis_url_parse(SLICE("redis://10.0.0.1"), &arena, &url, &why));
    assert_true(!url.is_tls && slice_eq(url.host, SLICE("10.0.0.1")) && url.port == 6379 && url.db == 0);
    assert_true(url.user.len == 0 && url.password.len == 0);
    assert_true(redis_url_parse(SLICE("rediss://anna:p%40ss%3A@redis.internal:6390/12"), &arena, &url, &why));
    assert_true(url.is_tls && slice_eq(url.user, SLICE("anna")) && slice_eq(url.password, SLICE("p@ss:")));
    assert_true(slice_eq(url.host, SLICE("redis.internal")) && url.port == 6390 && url.db == 12);
    assert_true(redis_url_parse(SLICE("redis://:secret@[::1]:7000/"), &arena, &url, &why));
    assert_true(url.user.len == 0 && slice_eq(url.password, SLICE("secret")) &&
                slice_eq(url.host, SLICE("::1")));
    assert_int_equal(url.port, 7000);
    arena_fini(&arena);
}

static void rejects_what_is_no_url_of_a_redis(void **state)
{
    static const char *const bad[] = {"",
                                      "127.0.0.1:6379",
                                      "http://127.0.0.1",
                                      "redis://",
                                      "redis://:6379",
                                      "redis://h:0",
                                      "redis://h:65536",
                                      "redis://h:x",
                                      "redis://h/x",
                                      "redis://h/70000",
                                      "redis://user@h",
                                      "redis://u:%4@h",
                                      "redis://u:%zz@h",
                                      "redis://[::1",
                                      "redis://[::1]x",
                                      "redis://a b"};
    struct arena arena;
    arena_init(&arena);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct redis_url url;
        const char *why = NULL;
        assert_false(redis_url_parse(slice_str(bad[i]), &arena, &url, &why));
        assert_non_null(why);
    }
    arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_part_is_found),
        cmocka_unit_test(rejects_what_is_no_url_of_a_redis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
