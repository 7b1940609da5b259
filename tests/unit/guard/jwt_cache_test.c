/* SPDX-License-Identifier: Apache-2.0 */
#include "guard/jwt_cache.h"

#include "core/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <cmocka.h>

static struct jwt_tag tag_of(const struct jwt_cache *cache, uint64_t keys, const char *token)
{
    struct jwt_tag tag;
    jwt_cache_tag(cache, keys, slice_str(token), &tag);
    return tag;
}

static void what_was_added_is_known_with_its_keys_only(void **state)
{
    struct jwt_cache *cache = jwt_cache_new();
    struct jwt_tag a = tag_of(cache, 1, "a.b.c"),
                   others[] = {tag_of(cache, 2, "a.b.c"), tag_of(cache, 1, "a.b.d"), tag_of(cache, 1, "a.b."),
                               tag_of(cache, 1, "")};
    assert_false(jwt_cache_knows(cache, &a));
    jwt_cache_add(cache, &a);
    assert_true(jwt_cache_knows(cache, &a));
    for (size_t i = 0; i < iso_countof(others); i++)
        assert_false(jwt_cache_knows(cache, &others[i]));
    jwt_cache_free(&cache);
    assert_null(cache);
}

static void two_workers_know_a_token_by_different_tags(void **state)
{
    struct jwt_cache *one = jwt_cache_new(), *two = jwt_cache_new();
    struct jwt_tag a = tag_of(one, 1, "a.b.c"), b = tag_of(two, 1, "a.b.c");
    assert_true(a.low != b.low && a.high != b.high && a.low != a.high);
    jwt_cache_free(&one);
    jwt_cache_free(&two);
}

static void half_of_its_size_fits_mostly_and_the_newest_are_there(void **state)
{
    enum { N = JWT_CACHE_TOKENS * 4 };
    struct jwt_cache *cache = jwt_cache_new();
    char token[16];
    unsigned n_half = 0, n_last = 0;
    for (int i = 0; i < JWT_CACHE_TOKENS / 2; i++) {
        snprintf(token, sizeof(token), "t%d", i);
        struct jwt_tag tag = tag_of(cache, 1, token);
        jwt_cache_add(cache, &tag);
    }
    for (int i = 0; i < JWT_CACHE_TOKENS / 2; i++) {
        snprintf(token, sizeof(token), "t%d", i);
        struct jwt_tag tag = tag_of(cache, 1, token);
        n_half += jwt_cache_knows(cache, &tag);
    }
    assert_in_range(n_half, JWT_CACHE_TOKENS / 2 * 9 / 10, JWT_CACHE_TOKENS / 2); /* Poisson: 95% */
    for (int i = 0; i < N; i++) {
        snprintf(token, sizeof(token), "t%d", i);
        struct jwt_tag tag = tag_of(cache, 1, token);
        jwt_cache_add(cache, &tag);
        assert_true(jwt_cache_knows(cache, &tag));
    }
    for (int i = N - 100; i < N; i++) {
        snprintf(token, sizeof(token), "t%d", i);
        struct jwt_tag tag = tag_of(cache, 1, token);
        n_last += jwt_cache_knows(cache, &tag);
    }
    assert_in_range(n_last, 99, 100);
    jwt_cache_free(&cache);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_known_with_its_keys_only),
        cmocka_unit_test(two_workers_know_a_token_by_different_tags),
        cmocka_unit_test(half_of_its_size_fits_mostly_and_the_newest_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
